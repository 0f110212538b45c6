"""MEANTIME: a leader's append is committed within a bound, whenever nothing is broken.

Owns slow_commit. A follower that does not fetch leaves the ISR after replica.lag.time.max.ms, so that no
follower delays a commit for longer. A record that every ISR member has is committed by their next fetch. The
bound counts from the latest of these: the append, the last change of the leader or of the ISR, and the
beginning of the calm. A leader of an epoch that a later one has replaced commits nothing any more, and is not
asked. The time in which brokers worked on old segments is added to the bound.
"""

from collections import deque
from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.checkers.meantime.calm import Calm, row_ns
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.checkers.meantime.steps import Steps
from fencepost.traces.events import Event, Name

STEPS = 12
"""Messages in sequence: a fetch on the way, one for the record, the next one; a proposed ISR, its answer, and
the request that asks for it."""
SLACK_MS = 1_500
"""Time for disks."""


@define
class Reign:
    """The current leader of one partition and its uncommitted appends."""

    # The broker that leads.
    leader: int
    # When the bound begins to count, in nanoseconds.
    since: int
    # The leader's high watermark; -1 before it is known.
    high_watermark: int = -1
    # Appends that are not committed yet: (end offset, time, position) of each, in order.
    open: deque[tuple[int, int, int]] = field(factory=deque)
    # The in-sync replicas.
    isr: tuple[int, ...] = ()
    copied: dict[int, int] = field(factory=dict)
    """The end of each follower's log."""
    everywhere: int = -1
    """When the first of `open` was in the log of every ISR member; -1 before."""

    def look(self, now: int) -> None:
        """Update `everywhere`: does every ISR member have the first of `open`?"""
        if not self.open:
            self.everywhere = -1
            return
        end, copied = self.open[0][0], self.copied
        for member in self.isr:
            if copied.get(member, -1) < end and member != self.leader:
                self.everywhere = -1
                return
        if self.everywhere < 0:
            self.everywhere = now


@define
class Progress:
    """The state of the rule. reigns: by partition."""

    findings: Findings
    calm: Calm
    options: Options
    steps: Steps
    reigns: dict[Key, Reign] = field(factory=dict)
    epochs: dict[Key, int] = field(factory=dict)
    """The leader epoch of each partition in ZooKeeper."""
    going: set[str | None] = field(factory=set)
    patience: int = field(init=False)
    """Nanoseconds until a record must be committed, with any slow follower."""
    next_fetches: tuple[int, int] = field(init=False)
    """Nanoseconds until followers that have a record fetch the one after it: if no fault lost a fetch on its
    way, and if one may have; the follower then waits for the answer until it times out."""

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Appends and commits, and changes of the leader or the ISR."""
        return {
            Name.BECAME_LEADER: self._became_leader,
            Name.BECAME_FOLLOWER: self._became_follower,
            Name.PARTITION_STATE: self._written,
            Name.ISR_UPDATED: self._state,
            Name.ISR_PROPOSED: self._state,
            Name.APPENDED: self._appended,
            Name.TRUNCATED: self._truncated,
            Name.HIGH_WATERMARK: self._high_watermark,
            Name.BROKER_STARTED: self._started,
            Name.TOPIC_DELETION: self._deletion,
            Name.PHASE: self._phase,
        }

    @patience.default
    def _patience(self) -> int:
        cluster = self.options.cluster
        fetch_ms = (
            cluster.replica_fetch_wait_max_ms
            + cluster.controller_request_timeout_ms
            + cluster.replica_fetch_backoff_ms
        )
        lag_ms = cluster.replica_lag_time_max_ms * 3 // 2  # the leader checks twice in that time
        return (lag_ms + 2 * fetch_ms + SLACK_MS) * MILLISECOND + row_ns(self.options.network, STEPS)

    @next_fetches.default
    def _next_fetches(self) -> tuple[int, int]:
        cluster = self.options.cluster
        wait_ms = cluster.replica_fetch_backoff_ms + SLACK_MS
        lost_ms = wait_ms + cluster.replica_fetch_wait_max_ms + cluster.controller_request_timeout_ms
        row = row_ns(self.options.network, STEPS)
        return wait_ms * MILLISECOND + row, lost_ms * MILLISECOND + row

    def _became_leader(self, position: int, event: Event) -> None:
        if event.leader_epoch < self.epochs.get((event.topic, event.partition), -1):
            return
        reign = self.reigns[event.topic, event.partition] = Reign(event.node, event.time)
        reign.high_watermark, reign.isr = event.high_watermark, event.isr
        if 0 <= event.high_watermark < event.offset:
            reign.open.append((event.offset, event.time, position))

    def _became_follower(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        if key in self.reigns and self.reigns[key].leader == event.node:
            del self.reigns[key]

    def _written(self, position: int, event: Event) -> None:
        self.epochs[event.topic, event.partition] = event.leader_epoch
        self._state(position, event)

    def _state(self, position: int, event: Event) -> None:
        reign = self.reigns.get((event.topic, event.partition))
        if reign is not None:
            reign.since, reign.isr = event.time, event.isr
            reign.look(event.time)

    def _started(self, position: int, event: Event) -> None:
        for key in [key for key, reign in self.reigns.items() if reign.leader == event.node]:
            del self.reigns[key]

    def _truncated(self, position: int, event: Event) -> None:
        reign = self.reigns.get((event.topic, event.partition))
        if reign is not None:
            reign.copied.pop(event.node, None)
            if reign.leader == event.node:
                reign.open.clear()
            reign.look(event.time)

    def _deletion(self, position: int, event: Event) -> None:
        self.going.add(event.topic)

    def _appended(self, position: int, event: Event) -> None:
        reign = self.reigns.get((event.topic, event.partition))
        if reign is None:
            return
        end = event.end_offset if event.end_offset >= 0 else event.offset + len(event.values)
        if event.node == reign.leader:
            reign.open.append((end, event.time, position))
        else:
            reign.copied[event.node] = end
        reign.look(event.time)

    def _high_watermark(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        reign = self.reigns.get(key)
        if reign is None or event.node != reign.leader:
            return
        reign.high_watermark = event.high_watermark
        while reign.open and reign.open[0][0] <= event.high_watermark:
            self._judge(key, reign, position, event)
            reign.open.popleft()
            reign.everywhere = -1
            reign.look(event.time)

    def _phase(self, position: int, event: Event) -> None:
        if event.cause in ("heal", "end"):
            for key, reign in self.reigns.items():
                if reign.open:
                    self._judge(key, reign, position, event)

    def _judge(self, key: Key, reign: Reign, position: int, event: Event) -> None:
        """Check the first open append: it is committed now, or it is still open."""
        end, appended, place = reign.open[0]
        since = self.calm.after(max(appended, reign.since))
        if since is None or key[0] in self.going:
            return
        bound = self.patience
        next_fetch = self.next_fetches[self.calm.since > reign.everywhere]
        if reign.everywhere >= 0 and event.time - max(since, reign.everywhere) > next_fetch:
            since, bound = max(since, reign.everywhere), next_fetch
        bound += self.steps.cleaning(since, event.time, {reign.leader, *reign.isr})
        if event.time - since <= bound:
            return
        self.findings.add(
            "slow_commit",
            expected=f"leader {reign.leader} to commit up to {end} within {bound // MILLISECOND} ms, as "
            f"nothing was broken",
            seen=f"its high watermark was {reign.high_watermark} for {(event.time - since) // MILLISECOND} "
            f"ms",
            topic=key[0],
            partition=key[1],
            offset=end,
            events=(place, position),
        )

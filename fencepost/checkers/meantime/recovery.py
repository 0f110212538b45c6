"""MEANTIME: if nothing is broken for long enough, every broker is registered, every partition has a leader,
and every ISR is complete.

Owns slow_registration, slow_election, slow_recovery and slow_delivery. The liveness phase checks the same
once, after everything was healed, with a bound that any cluster can meet. Many defects repair themselves
before that. This check uses every period without an active fault and without an operator's request. The bound
follows from the options; each part of it states its reason. Networks that lose messages or hold many back for
seconds are not checked, because the number of resends is unbounded.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.checkers.meantime.calm import FAR_US, fault_of
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.traces.events import Event, Name

STEPS = 60
"""The longest sequence of messages from a broker's end to the last role: an election (4), the reads and
writes of a fail-over (20), then the remaining decisions. Each of these has reads, a write, and a request to a
broker that responds before the next one."""
NOT_RUNNING = "NotRunning"
SYNCS = 6
"""Syncs of a batch that begins a segment and is flushed at once: the old segment with its two indexes and
the snapshot of producers, the directory, and the batch."""
SLACK_MS = 3_000
"""Time for disks and slow hosts, and for waits between attempts to register."""


@define(kw_only=True)
class Bounds:
    """Nanoseconds after which each state must be reached.

    registered: the node of the last session may exist for a session timeout, and a broker that notices late
    ends its own session equally late. led: after that, the controller's session may have ended, and requests
    are sent again. in_sync: a follower asks where to truncate and fetches, and each request may have to time
    out first; the leader may first have to notice that another follower lags.
    """

    registered: int
    led: int
    in_sync: int
    informed: int
    """After a change of any state: the notification, and UpdateMetadata to every broker."""
    append: int
    """For each batch that a broker stores: how long its disk is busy, for fetches wait for the batches before
    them; and a fetch, which from a log of small segments gets one batch."""


def bounds_of(options: Options) -> Bounds | None:
    """The bounds that follow from the options; None if the options give none."""
    cluster, network = options.cluster, options.network
    if network.loss_ppm or network.late_ppm or network.latency_max_us > FAR_US:
        return None
    trips_ms = STEPS * network.latency_max_us // 1_000
    registered_ms = 2 * cluster.zookeeper_session_timeout_ms + SLACK_MS + trips_ms
    led_ms = registered_ms + cluster.zookeeper_session_timeout_ms + 2 * cluster.controller_request_timeout_ms
    patience_ms = cluster.replica_fetch_wait_max_ms + cluster.controller_request_timeout_ms
    in_sync_ms = (
        led_ms
        + cluster.replica_lag_time_max_ms
        + 3 * (patience_ms + cluster.replica_fetch_backoff_ms)
        + trips_ms
    )
    return Bounds(
        registered=registered_ms * MILLISECOND,
        led=led_ms * MILLISECOND,
        in_sync=in_sync_ms * MILLISECOND,
        informed=(led_ms + cluster.isr_change_propagation_ms) * MILLISECOND,
        append=(SYNCS * options.disk.fsync_us + 2 * network.latency_max_us) * 1_000,
    )


@define
class Recovery:
    """The state of the rules."""

    # The findings so far.
    findings: Findings
    # The bounds of this plan.
    bounds: Bounds
    # The number of brokers.
    brokers: int
    # Since when nothing was broken or requested (nanoseconds), and the position of the event before.
    calm: tuple[int, int] = (0, 0)
    # Which anomalies were checked in this calm already.
    asked: set[str] = field(factory=set)
    active: set[str] = field(factory=set)
    """Active faults by id."""
    appended: dict[int, int] = field(factory=dict)
    """For each broker the batches that it stored in this calm. A follower cannot catch up while its leader's
    disk takes all the time for batches of clients."""
    # Brokers that have a node.
    registered: set[int] = field(factory=set)
    states: dict[Key, tuple[int, int, tuple[int, ...]]] = field(factory=dict)
    """Leader, leader epoch and ISR of each partition, as in ZooKeeper."""
    led: dict[Key, tuple[int, int]] = field(factory=dict)
    """For each partition the broker that became leader last, and its epoch."""
    changed: tuple[int, int] = (0, 0)
    """When a state was last written, and the position of that event."""
    informed: dict[int, int] = field(factory=dict)
    """When each broker last handled an UpdateMetadata request."""
    roles: dict[tuple[int, Key], int] = field(factory=dict)
    """By broker and partition: the leader epoch of the broker's role."""
    # The replicas of each partition.
    assigned: dict[Key, tuple[int, ...]] = field(factory=dict)
    moving: set[Key] = field(factory=set)
    """Partitions with an entry in /admin/reassign_partitions."""
    going: set[str | None] = field(factory=set)
    """Topics that are being deleted."""

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Disturbances, and the state of the cluster."""
        return {
            Name.APPENDED: self._appended,
            Name.FAULT_BEGAN: self._fault_began,
            Name.FAULT_ENDED: self._fault_ended,
            Name.BROKER_STARTED: self._broker_started,
            Name.BROKER_STATE: self._broker_state,
            Name.BROKER_ZNODE: self._broker_znode,
            Name.PHASE: self._phase,
            Name.ASSIGNMENT: self._assignment,
            Name.REASSIGNMENT: self._reassignment,
            Name.TOPIC_DELETION: self._deletion,
            Name.PARTITION_STATE: self._partition_state,
            Name.BECAME_LEADER: self._became_leader,
            Name.BECAME_FOLLOWER: self._became_follower,
            Name.CONTROL_REQUEST_APPLIED: self._applied,
        }

    # ---- what disturbs

    def _disturbed(self, position: int, event: Event) -> None:
        self._ask(position, event)
        self._calm_from(position, event)

    def _calm_from(self, position: int, event: Event) -> None:
        self.calm, self.asked = (event.time, position), set()
        self.appended.clear()

    def _appended(self, position: int, event: Event) -> None:
        self.appended[event.node] = self.appended.get(event.node, 0) + 1

    def _fault_began(self, position: int, event: Event) -> None:
        self._disturbed(position, event)
        self.active.add(fault_of(event))

    def _broker_state(self, position: int, event: Event) -> None:
        """A broker that was asked to stop is down until it is started again, however long that takes."""
        if event.cause == NOT_RUNNING:
            self._disturbed(position, event)
            self.active.add(f"broker {event.node}")

    def _broker_started(self, position: int, event: Event) -> None:
        self._disturbed(position, event)
        self.active.discard(f"broker {event.node}")

    def _fault_ended(self, position: int, event: Event) -> None:
        self.active.discard(fault_of(event))
        self._calm_from(position, event)

    def _broker_znode(self, position: int, event: Event) -> None:
        self._disturbed(position, event)
        if event.broker_epoch < 0:
            self.registered.discard(event.node)
        else:
            self.registered.add(event.node)

    def _phase(self, position: int, event: Event) -> None:
        if event.cause == "end":
            self._ask(position, event)
        elif event.cause in ("safety", "heal"):
            self._disturbed(position, event)

    def _assignment(self, position: int, event: Event) -> None:
        self._disturbed(position, event)
        key = event.topic, event.partition
        if event.replicas:
            self.assigned[key] = event.replicas
        else:
            self.assigned.pop(key, None)
            self.states.pop(key, None)

    def _reassignment(self, position: int, event: Event) -> None:
        self._disturbed(position, event)
        key = event.topic, event.partition
        (self.moving.add if event.replicas else self.moving.discard)(key)

    def _deletion(self, position: int, event: Event) -> None:
        self._disturbed(position, event)
        self.going.add(event.topic)

    # ---- the state of the cluster

    def _partition_state(self, position: int, event: Event) -> None:
        self._ask(position, event)
        self.states[event.topic, event.partition] = event.leader, event.leader_epoch, event.isr
        self.changed = event.time, position
        self.asked.discard("slow_delivery")

    def _became_leader(self, position: int, event: Event) -> None:
        self._ask(position, event)
        key = event.topic, event.partition
        if (
            event.leader_epoch >= self.led.get(key, (-1, -1))[1]
        ):  # a request of an earlier epoch may arrive late
            self.led[key] = event.node, event.leader_epoch
        self.roles[event.node, key] = event.leader_epoch

    def _became_follower(self, position: int, event: Event) -> None:
        self._ask(position, event)
        self.roles[event.node, (event.topic, event.partition)] = event.leader_epoch

    def _applied(self, position: int, event: Event) -> None:
        self._ask(position, event)
        if event.cause == "UpdateMetadataRequest":
            self.informed[event.node] = event.time

    # ---- the checks

    def _ask(self, position: int, event: Event) -> None:
        """Before each event: check what is due by now."""
        quiet = event.time - self.calm[0]
        if self.active or quiet <= self.bounds.registered:
            return
        self._once("slow_registration", self._unregistered, self.bounds.registered, position, event)
        if len(self.registered) < self.brokers:
            return
        if quiet > self.bounds.led:
            self._once("slow_election", self._unled, self.bounds.led, position, event)
        if quiet > self.bounds.informed and event.time - self.changed[0] > self.bounds.informed:
            self._once("slow_delivery", self._untold, self.bounds.informed, position, event)
        if quiet > self.bounds.in_sync:
            in_sync = self.bounds.in_sync + self.bounds.append * max(self.appended.values(), default=0)
            if quiet > in_sync:
                self._once("slow_recovery", self._out_of_sync, in_sync, position, event)

    def _once(
        self,
        anomaly: str,
        missing: Callable[[], list[tuple[Key | None, str]]],
        bound: int,
        position: int,
        event: Event,
    ) -> None:
        if anomaly in self.asked:
            return
        self.asked.add(anomaly)
        for key, seen in missing():
            topic, partition = key or (None, -1)
            self.findings.add(
                anomaly,
                expected=f"it within {bound // MILLISECOND} ms, as nothing was broken and no operator "
                f"asked for anything",
                seen=f"{seen}, {(event.time - self.calm[0]) // MILLISECOND} ms after the last disturbance",
                topic=topic,
                partition=partition,
                events=(self.calm[1], position),
            )

    def _unregistered(self) -> list[tuple[Key | None, str]]:
        missing = sorted(set(range(1, self.brokers + 1)) - self.registered)
        return [(None, f"brokers {missing} are not registered")] if missing else []

    def _serving(self) -> list[Key]:
        return [key for key in sorted(self.assigned) if key not in self.moving and key[0] not in self.going]

    def _unled(self) -> list[tuple[Key | None, str]]:
        found: list[tuple[Key | None, str]] = []
        for key in self._serving():
            leader, epoch, _ = self.states.get(key, (-1, -1, ()))
            if leader < 0 or self.led.get(key) != (leader, epoch):
                found.append((key, f"leader {leader} of epoch {epoch} does not lead"))
        return found

    def _untold(self) -> list[tuple[Key | None, str]]:
        """Find a broker that did not get the last state, or a replica that did not take its role in it."""
        deaf = [
            broker for broker in sorted(self.registered) if self.informed.get(broker, -1) < self.changed[0]
        ]
        found: list[tuple[Key | None, str]] = []
        if deaf:
            found.append(
                (None, f"brokers {deaf} took over no UpdateMetadata since the last state was written")
            )
        for key in self._serving():
            leader, epoch, _ = self.states.get(key, (-1, -1, ()))
            idle = [broker for broker in self.assigned[key] if self.roles.get((broker, key), -1) != epoch]
            if leader >= 0 and idle:
                found.append((key, f"brokers {idle} have no role in leader epoch {epoch}"))
        return found

    def _out_of_sync(self) -> list[tuple[Key | None, str]]:
        found: list[tuple[Key | None, str]] = []
        for key in self._serving():
            _, _, isr = self.states.get(key, (-1, -1, ()))
            if set(isr) != set(self.assigned[key]):
                found.append((key, f"the ISR is {list(isr)} of the replicas {list(self.assigned[key])}"))
        return found

"""HW-KEPT: a broker that starts again knows the high watermarks that it had an interval of checkpoints before
it ended.

Owns stale_checkpoint. The invariant HW-KEPT (invariants/hw_kept.py) asks only for what an earlier start has
recovered, since it knows no options. Here the bound is replica.high.watermark.checkpoint.interval.ms: what
the replica had that long before its broker's end is in the file, which is replaced whole and durably. A high
watermark may go back meanwhile; the least one since then counts, and no more than is left of the log.

Not asked: a broker whose clock was wrong or whose disk lied in the run, and one that had a fault of another
kind within the interval.
"""

from collections import deque
from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.checkers.meantime.calm import STOPPING, STOPS, fault_of
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.checkers.meantime.shrinks import CLOCKS
from fencepost.traces.events import Event, Name

SLACK_MS = 2_000
"""Disks: the checkpoint's own files, and whatever the host does first."""
DELETED = "replica_deleted"
LIES = "lying_fsync"
DEATHS = STOPS | {"power_loss"}
"""Kinds of fault that end a process; what is in a checkpoint was synced."""


@define
class Checkpoints:
    """past: by broker and replica, times, high watermarks and positions, as far back as the interval."""

    findings: Findings
    options: Options
    past: dict[int, dict[Key, deque[tuple[int, int, int]]]] = field(factory=dict)
    ends: dict[int, int] = field(factory=dict)
    """When the process of a broker was ended, until it runs again."""
    well: dict[int, int] = field(factory=dict)
    """Since when a broker is without a fault."""
    active: dict[int, set[str]] = field(factory=dict)
    odd: set[int] = field(factory=set)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """High watermarks, starts, and what disturbs a broker."""
        return {
            Name.HIGH_WATERMARK: self._moved,
            Name.BECAME_LEADER: self._moved,
            Name.BECAME_FOLLOWER: self._moved,
            Name.LOG_RECOVERED: self._recovered,
            Name.FAULT_BEGAN: self._began,
            Name.FAULT_ENDED: self._ended,
            Name.BROKER_STATE: self._broker_state,
            Name.LOG_DIRECTORY_FAILED: self._over,
            Name.IMPLEMENTATION_ERROR: self._over,
            Name.MARK: self._mark,
        }

    @property
    def interval(self) -> int:
        """Nanoseconds after which a high watermark is in the file."""
        return (self.options.cluster.high_watermark_checkpoint_interval_ms + SLACK_MS) * MILLISECOND

    def _moved(self, position: int, event: Event) -> None:
        known = self.past.setdefault(event.node, {}).setdefault((event.topic, event.partition), deque())
        known.append((event.time, event.high_watermark, position))
        if event.node not in self.ends:
            while len(known) > 1 and known[1][0] <= event.time - self.interval:
                known.popleft()

    def _recovered(self, position: int, event: Event) -> None:
        key, ended = (event.topic, event.partition), self.ends.get(event.node, -1)
        known = self.past.setdefault(event.node, {}).pop(key, None)
        since = ended - self.interval
        if (
            known
            and since >= known[0][0]
            and self.well.get(event.node, 0) <= since
            and event.node not in self.odd
        ):
            while len(known) > 1 and known[1][0] <= since:
                known.popleft()
            least, place = min((high_watermark, place) for _, high_watermark, place in known)
            if 0 <= event.high_watermark < min(least, event.offset):
                self.findings.add(
                    "stale_checkpoint",
                    expected=f"broker {event.node} to recover a high watermark of at least "
                    f"{min(least, event.offset)}, "
                    f"which it had {self.interval // MILLISECOND} ms before its end",
                    seen=f"{event.high_watermark}, of a log that ends at {event.offset}",
                    topic=event.topic,
                    partition=event.partition,
                    offset=event.high_watermark,
                    events=(place, position),
                )
        self._moved(position, event)

    def _began(self, position: int, event: Event) -> None:
        if event.cause in (*CLOCKS, LIES):
            self.odd.add(event.node)
        if event.cause in DEATHS:
            self._over(position, event)
        else:
            self.active.setdefault(event.node, set()).add(fault_of(event))

    def _ended(self, position: int, event: Event) -> None:
        active = self.active.get(event.node, set())
        if fault_of(event) in active:
            active.discard(fault_of(event))
            self.well[event.node] = event.time

    def _over(self, position: int, event: Event) -> None:
        if self.active.get(event.node):
            self.well[event.node] = event.time
        self.ends.setdefault(event.node, event.time)

    def _broker_state(self, position: int, event: Event) -> None:
        if event.cause == STOPPING:
            self._over(position, event)
        elif event.cause.startswith("Running"):
            self.ends.pop(event.node, None)

    def _mark(self, position: int, event: Event) -> None:
        if event.cause == DELETED:
            self.past.get(event.node, {}).pop((event.topic, event.partition), None)

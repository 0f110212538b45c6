"""HW-KEPT: a restarted broker recovers the high watermarks that it had one checkpoint interval before it
ended.

Owns stale_checkpoint. The invariant HW-KEPT (invariants/hw_kept.py) compares only with what an earlier start
recovered, because it knows no options. Here the bound is replica.high.watermark.checkpoint.interval.ms. A
high watermark that is that old at the broker's end is in the file, which is replaced as a whole and durably.
A high watermark may decrease meanwhile. So the lowest value since then counts, limited by the end of the
remaining log.

The rule does not apply to a broker with a wrong clock or a lying disk in the run, or with another kind of
fault within the interval.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from operator import itemgetter

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.liveness.anytime.justified_elections import STOPPING
from fencepost.checkers.liveness.anytime.shrinks import CLOCKS
from fencepost.record.facts import ENDING as DEATHS
from fencepost.record.facts import fault_of
from fencepost.record.settings import MILLISECOND, Settings
from fencepost.traces.events import Event, Name

SLACK_MS = 2_000
"""Time for disks: writing the checkpoint files, and other work of the host before it."""
DELETED = "replica_deleted"
LIES = "lying_fsync"


@define
class Checkpoints:
    """The state of the rule."""

    # The findings so far.
    findings: Findings
    # The options of the plan.
    options: Settings
    # By broker, topic and partition: (time, high watermark, position), since the log was opened.
    past: dict[tuple[int, str | None, int], list[tuple[int, int, int]]] = field(factory=dict)
    # When the process of a broker ended, until it runs again.
    ends: dict[int, int] = field(factory=dict)
    # Since when a broker has no fault.
    well: dict[int, int] = field(factory=dict)
    # Faults that are active, by broker.
    active: dict[int, set[str]] = field(factory=dict)
    # Brokers with a wrong clock or a lying disk in this run; the rule does not apply to them.
    odd: set[int] = field(factory=set)
    # Nanoseconds after which a high watermark is in the file.
    interval: int = field(init=False)

    @interval.default
    def _interval(self) -> int:
        return (self.options.cluster.high_watermark_checkpoint_interval_ms + SLACK_MS) * MILLISECOND

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """High watermarks, starts, and faults of brokers."""
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

    def _moved(self, position: int, event: Event) -> None:
        place = event.node, event.topic, event.partition
        past = self.past.get(place)
        if past is None:
            past = self.past[place] = []
        past.append((event.time, event.high_watermark, position))

    def _recovered(self, position: int, event: Event) -> None:
        ended = self.ends.get(event.node, -1)
        past = self.past.pop((event.node, event.topic, event.partition), None)
        since = ended - self.interval
        if (
            past
            and since >= past[0][0]
            and self.well.get(event.node, 0) <= since
            and event.node not in self.odd
        ):
            at_least = past[bisect_right(past, since, key=itemgetter(0)) - 1 :]
            least, place = min((high_watermark, place) for _, high_watermark, place in at_least)
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
            self.past.pop((event.node, event.topic, event.partition), None)

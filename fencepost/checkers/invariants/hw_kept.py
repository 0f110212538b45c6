"""HW-KEPT: a high watermark in a checkpoint is not forgotten: a replica that starts again recovers no lower
one.

Owns high_watermark_forgotten. A high watermark that a replica recovers above its log start comes from its
checkpoint, so it was durable (R9). Until the next start the checkpoint is this one or a later one, which has
the replica's value at that time. So the next start recovers at least the lowest high watermark since then, or
the end of the remaining log. KAFKA-1647 breaks this: a checkpoint leaves out a partition with a leader that
is down, and the start after that begins at 0.

The rule does not apply to a replica that was deleted meanwhile, or after a power loss on a disk that had lied
about a sync, because then the durable state is not known.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name

DELETED = "replica_deleted"
"""The mark of a broker that deleted its replica."""
LIES, POWER_LOSS = "lying_fsync", "power_loss"
"""The faults after which a disk may have less than it acknowledged."""


@define
class HighWatermarkKept:
    """The state of the invariant."""

    findings: Findings
    # By broker and replica, the lowest high watermark since its last start, and the position of the event
    # that reported it.
    least: dict[int, dict[Key, tuple[int, int]]] = field(factory=dict)
    # Brokers with a disk that has lied since its last power loss.
    lied: set[int] = field(factory=set)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Starts, high watermarks, and the deletion of replicas."""
        return {
            Name.LOG_RECOVERED: self._recovered,
            Name.HIGH_WATERMARK: self._high_watermark,
            Name.MARK: self._mark,
            Name.FAULT_BEGAN: self._fault,
        }

    def _recovered(self, position: int, event: Event) -> None:
        known, key = self.least.setdefault(event.node, {}), (event.topic, event.partition)
        least, since = known.pop(key, (0, -1))
        if 0 <= event.high_watermark < min(least, event.offset):
            self.findings.add(
                "high_watermark_forgotten",
                expected=f"broker {event.node} to recover a high watermark of at least "
                f"{min(least, event.offset)}, as its checkpoint held",
                seen=f"{event.high_watermark}, of a log that ends at {event.offset}",
                topic=event.topic,
                partition=event.partition,
                offset=event.high_watermark,
                events=(since, position),
            )
        if event.high_watermark > max(event.log_start_offset, 0):
            known[key] = event.high_watermark, position

    def _high_watermark(self, position: int, event: Event) -> None:
        known = self.least.get(event.node)
        if not known:
            return
        key = event.topic, event.partition
        if key in known and event.high_watermark < known[key][0]:
            known[key] = event.high_watermark, position

    def _mark(self, position: int, event: Event) -> None:
        if event.cause == DELETED:
            self.least.get(event.node, {}).pop((event.topic, event.partition), None)

    def _fault(self, position: int, event: Event) -> None:
        if event.cause == LIES:
            self.lied.add(event.node)
        elif event.cause == POWER_LOSS and event.node in self.lied:
            self.lied.discard(event.node)
            self.least.pop(event.node, None)

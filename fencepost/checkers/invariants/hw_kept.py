"""HW-KEPT: a high watermark that a checkpoint held is not forgotten: a replica that starts again recovers
none that is lower.

Owns high_watermark_forgotten. What a replica recovers above its log start comes out of its checkpoint, so it
was durable (R9). Until the next start the checkpoint is either that one or a later one, which holds what the
replica had then: the next start finds no less than the least that it had since, or the end of what is left of
its log (KAFKA-1647: a checkpoint that leaves out a partition whose leader is down; the start after that
begins at 0).

Nothing is asked of a replica that was deleted meanwhile, nor after a power loss on a disk that had lied about
a sync: what was durable is not known then.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name

DELETED = "replica_deleted"
"""The mark of a broker that deleted its replica."""
LIES, POWER_LOSS = "lying_fsync", "power_loss"
"""The faults after which a disk may hold less than it was told to."""


@define
class HighWatermarkKept:
    """least: by broker and replica, the least high watermark that it had since it last started, and the
    position of the event that told it. lied: brokers whose disk has lied since its last power loss."""

    findings: Findings
    least: dict[int, dict[Key, tuple[int, int]]] = field(factory=dict)
    lied: set[int] = field(factory=set)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Starts, high watermarks, and what ends a replica."""
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
        known, key = self.least.get(event.node, {}), (event.topic, event.partition)
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

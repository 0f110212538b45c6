"""HW-BOUNDS: log start offset <= high watermark <= log end offset, at every replica and at all times.

Owns high_watermark_outside_log. Three bugs break it: retention beyond the high watermark (KAFKA-5634), a full
truncation that does not lower the high watermark (KAFKA-9491), and a high watermark from a checkpoint that is
not clamped (KAFKA-3978). An event may report only some of the three values; they are compared with the known
values of the others.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name


@define
class HighWatermarkBounds:
    """The state of the invariant."""

    findings: Findings
    # For each replica (log start offset, position of the event that reported it).
    starts: dict[tuple[Key, int], tuple[int, int]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that report a bound or a high watermark."""
        return {
            Name.LOG_START: self._bounds,
            Name.LOG_RECOVERED: self._bounds,
            Name.TRUNCATED: self._truncated,
            Name.HIGH_WATERMARK: self._high_watermark,
            Name.BECAME_LEADER: self._high_watermark,
            Name.BECAME_FOLLOWER: self._high_watermark,
        }

    def _truncated(self, position: int, event: Event) -> None:
        """The events after a truncation report what it left."""
        self.starts.pop(((event.topic, event.partition), event.node), None)

    def _bounds(self, position: int, event: Event) -> None:
        end = event.end_offset if event.name is Name.LOG_START else event.offset
        if event.log_start_offset >= 0:
            self.starts[(event.topic, event.partition), event.node] = event.log_start_offset, position
        self._compare(position, event, end)

    def _high_watermark(self, position: int, event: Event) -> None:
        self._compare(position, event, event.offset)

    def _compare(self, position: int, event: Event, end: int) -> None:
        start, said = 0, position
        if self.starts:  # no replica has reported another start than 0
            start, said = self.starts.get(((event.topic, event.partition), event.node), (0, position))
        if start <= event.high_watermark and (end < 0 or event.high_watermark <= end):
            return
        upper = f" and its log end offset {end}" if end >= 0 else ""
        self.findings.add(
            "high_watermark_outside_log",
            expected=f"the high watermark of broker {event.node} between its log start offset {start}{upper}",
            seen=f"{event.high_watermark}",
            topic=event.topic,
            partition=event.partition,
            offset=max(event.high_watermark, 0),
            events=(said, position) if said != position else (position,),
        )

"""Retention: old segments that a log no longer needs.

Owns the three reasons (below the log start, too old, too much) and the bound on removal. Must not know
leaders; the caller passes the high watermark. Whole segments are removed, the oldest first, so that the rest
is a log without a hole.
"""

from attrs import define

from fencepost.impl.log.log_options import UNLIMITED
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segmented_log import SegmentedLog


@define
class Retention:
    """The retention of one log."""

    log: SegmentedLog

    def apply(self, *, high_watermark: int, now_ms: int) -> int:
        """Remove old segments.

        Segments below the log start are removed under any policy, including those of a compacted topic
        (KAFKA-7400). The active segment is rolled if it may be removed too.

        Args:
            high_watermark: segments that may hold records from here on stay.
            now_ms: the current time in milliseconds.

        Returns:
            the number of removed segments.
        """
        self._roll_if_due(now_ms)
        count = self._count(high_watermark, now_ms)
        if count == len(self.log.segments):
            if not self.log.segments.active.size:
                count -= 1
            else:
                self.log.roll()
        if count:
            self.log.remove_oldest(count)
        return count

    def _roll_if_due(self, now_ms: int) -> None:
        active = self.log.segments.active
        if active.size and active.must_roll(0, active.next_offset - 1, now_ms):
            self.log.roll()

    def _count(self, high_watermark: int, now_ms: int) -> int:
        """How many of the oldest segments may go. One that compaction emptied has no time: it goes with a
        later one."""
        segments, count = self.log.segments.all, 0
        excess = sum(segment.size for segment in segments) - self.log.options.retention_bytes
        for number, segment in enumerate(segments):
            end = segments[number + 1].base_offset if number + 1 < len(segments) else self.log.log_end_offset
            if not self.below_high_watermark(end, high_watermark):
                break
            excess -= segment.size
            if self.below_log_start(end) or self._too_old(segment, now_ms) or self._too_much(excess):
                count = number + 1
            elif segment.size:
                break
        return count

    def below_high_watermark(self, end_offset: int, high_watermark: int) -> bool:
        """Protection L4: a segment that may hold uncommitted records stays, because a follower may have to
        fetch it.

        Args:
            end_offset: the offset after the segment.
            high_watermark: the leader's high watermark.

        Returns:
            whether the segment may be removed.
        """
        return end_offset <= high_watermark

    def below_log_start(self, end_offset: int) -> bool:
        """Protection KAFKA-7400: records that may not be read any more are removed under any policy."""
        return end_offset <= self.log.log_start_offset

    def _too_old(self, segment: Segment, now_ms: int) -> bool:
        options, latest = self.log.options, segment.largest_timestamp_ms
        return (
            options.delete
            and options.retention_ms != UNLIMITED
            and 0 <= latest < now_ms - options.retention_ms
        )

    def _too_much(self, excess: int) -> bool:
        """excess: bytes over the bound after this segment and all before it are removed."""
        options = self.log.options
        return options.delete and options.retention_bytes != UNLIMITED and excess >= 0

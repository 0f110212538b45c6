"""Bugs of reading while others write."""

from fencepost.impl.log.batch.batch_file import whole_batches
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segmented_log import SegmentedLog

NO_BOUND = 1 << 62


class ReadsWhatTheFileHolds(SegmentedLog):
    """KAFKA-2477: a read up to the end of the log takes what the file holds by then, and answers batches of
    which the log does not know yet."""

    def bounded_read(self, segment: Segment, offset: int, *, max_bytes: int, end_offset: int) -> bytes:
        """Bounded by the file."""
        if end_offset < self.log_end_offset:
            return super().bounded_read(segment, offset, max_bytes=max_bytes, end_offset=end_offset)
        start = segment.position_of(offset)
        data = segment.file.read_at(start.position if start else segment.size, max_bytes)
        return data[: whole_batches(data, below=NO_BOUND)]

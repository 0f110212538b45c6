"""KAFKA-3978: a high watermark is believed wherever it comes from, and may lie outside the log."""

from fencepost.impl.replication.partition import Partition


class TakesAnyHighWatermark(Partition):
    """Does not compare it with the log's bounds."""

    def high_watermark_within_log(self, offset: int) -> int:
        """Whatever was said."""
        return offset

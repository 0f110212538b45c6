"""KAFKA-9491: a full truncation moves the log start, and leaves the high watermark behind."""

from fencepost.impl.replication.partition import Partition


class LeavesTheHighWatermarkBehind(Partition):
    """Starts over at the leader's log start with the high watermark that it had."""

    def high_watermark_follows_log_start(self) -> None:
        """Move nothing."""

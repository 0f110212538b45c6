"""KIP-101 (KAFKA-1211): a follower truncates to its own high watermark, which lags behind its leader's by one
fetch."""

from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.truncation import FollowerTruncation


class TruncateToHighWatermark(FollowerTruncation):
    """Cuts before it fetches, without asking the leader where their logs part."""

    def question(self, partition: Partition) -> int:
        """Ask nothing."""
        partition.truncate_to(partition.high_watermark, cause="high_watermark")
        return -1

"""KIP-279 (KAFKA-6361): a follower takes the leader's end offset without asking of which epoch it is."""

from fencepost.impl.messages import EpochEnd
from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.truncation import FollowerTruncation


class TrustsTheEndOffset(FollowerTruncation):
    """Cuts once, to where the leader says that the epoch ended."""

    def truncate_by_epoch(self, partition: Partition, answer: EpochEnd) -> bool:
        """As before the answer named its epoch."""
        if answer.end_offset < 0:
            return super().truncate_by_epoch(partition, answer)
        partition.truncate_to(min(answer.end_offset, partition.log.log_end_offset), cause="leader_epoch")
        return True

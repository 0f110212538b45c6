"""KIP-279 (KAFKA-6361): an answer is taken for an end offset alone, so a follower keeps what it has of epochs
that its leader never had.

1. epoch 1: B leads and appends m1, which nobody fetches; A does not hear of this epoch
2. epoch 2: A leads and appends m2 at the same offset, which nobody fetches
3. epoch 3: B leads; A asks where epoch 2 ends; B never had it and answers with the largest below: epoch 1
   ends after m1
4. A reads that as "cut at the offset after m1", cuts nothing and fetches on: B has m1 there, A has m2
"""

from fencepost.impl.messages.broker_api import EpochEnd
from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.truncation import FollowerTruncation


class TrustsTheEndOffset(FollowerTruncation):
    """KIP-101 without KIP-279."""

    def truncate_below_own_epoch(self, partition: Partition, answer: EpochEnd) -> bool:
        """One answer is enough, whatever epoch it is about."""
        partition.truncate_to(min(answer.end_offset, partition.log.log_end_offset), cause="leader_epoch")
        return True

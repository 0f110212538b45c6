"""KAFKA-7128: a follower joins the ISR at a new leader's high watermark, which lags behind what the old one
had exposed.

1. epoch 0: b1 leads, ISR b1 and b2; both hold 0..9, and b1 has exposed the high watermark 10; b2 has heard of
   5 only; b3 is outside, at 6
2. epoch 1: b2 leads with the high watermark 5; b3 fetches from 6 on, which is past it, and joins the ISR
3. epoch 2: b2 fails before b3 has fetched more; b3 is in the ISR and leads without 6..9
"""

from fencepost.impl.replication.isr import InSyncReplicas
from fencepost.impl.replication.partition import FollowerState, Partition


class JoinsAtTheHighWatermark(InSyncReplicas):
    """Asks for the high watermark alone."""

    def isr_expand_after_epoch_start(self, partition: Partition, follower: FollowerState) -> bool:
        """Wherever the epoch began."""
        return True

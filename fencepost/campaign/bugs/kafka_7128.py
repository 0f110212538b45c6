"""KAFKA-7128: a follower joins the ISR at the high watermark of a new leader, which lags."""

from fencepost.impl.replication.isr import InSyncReplicas
from fencepost.impl.replication.partition import FollowerState, Partition


class JoinsAtTheHighWatermark(InSyncReplicas):
    """Does not ask for the start of the leader's epoch."""

    def isr_expand_after_epoch_start(self, partition: Partition, follower: FollowerState) -> bool:
        """The high watermark is enough."""
        return True

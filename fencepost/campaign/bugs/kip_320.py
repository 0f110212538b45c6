"""KIP-320 (KAFKA-6880, KAFKA-7395): a leader answers fetchers of any leader epoch."""

from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import Partition
from fencepost.traces.outcomes import ErrorCode


class AnswersAnyEpoch(LeaderRole):
    """Does not look at the epoch that a request names."""

    def fetch_fencing(self, partition: Partition, leader_epoch: int) -> ErrorCode:
        """Refuse nothing."""
        return ErrorCode.NONE

"""KIP-320 (KAFKA-6880, KAFKA-7395): a leader serves every fetch, so a follower that missed an election
goes on without having cut its log.

1. epoch 0: b1 leads, b2 has its record at 4, b3 does not; b2 loses ZooKeeper, leaves the ISR and hears of no
   election, but keeps fetching
2. epoch 1: b3 leads from 4 on; b1 cuts its record at 4 and takes b3's
3. epoch 2: b1 leads again; b2 knows epoch 0 only, asks b1 for what follows offset 4 and gets it
4. b2 holds b3's and b1's records after one that nobody else has; later it asks where b1's epoch ends, and
   cuts nothing
"""

from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import Partition
from fencepost.traces.kafka_names.outcomes import ErrorCode


class ServesAnyEpoch(LeaderRole):
    """Does not look at the asker's leader epoch."""

    def fetch_fencing(self, partition: Partition, leader_epoch: int) -> ErrorCode:
        """Everybody is served."""
        return ErrorCode.NONE

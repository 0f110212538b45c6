"""KAFKA-7415: a new leader enters its epoch in its cache with its first record, so until then it knows
nothing of the epochs in between.

1. epoch 0: b1 leads; both replicas hold m1 and m2, and b1 has exposed both; b2 has heard of m1's commit only
2. epoch 1: b2 leads and appends m3, which nobody fetches
3. epoch 2: b1 leads and appends nothing; b2 asks where epoch 1 ends; b1's cache ends with epoch 0, so it
   cannot tell
4. b2 falls back to its own high watermark and cuts m2, which is committed; if b1 fails now, b2 leads without
   it
"""

from fencepost.impl.replication.manager import ReplicaManager
from fencepost.impl.replication.partition import Partition


class EntersItsEpochWithItsFirstRecord(ReplicaManager):
    """The log assigns the epoch when it appends."""

    def assign_epoch_on_election(self, partition: Partition) -> None:
        """Not yet."""
        return

"""KAFKA-7415: a new leader that has not written yet knows nothing of its own epoch."""

from fencepost.impl.replication.manager import ReplicaManager
from fencepost.impl.replication.partition import Partition


class EntersNoEpoch(ReplicaManager):
    """Lets the first append enter the epoch."""

    def assign_epoch_on_election(self, partition: Partition) -> None:
        """Enter nothing."""

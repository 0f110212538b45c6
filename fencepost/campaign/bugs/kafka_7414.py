"""KAFKA-7414 (KAFKA-2143): a follower that is out of its leader's range drops its whole log, also if it is ahead."""

from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.truncation import FollowerTruncation


class AlwaysStartsOver(FollowerTruncation):
    """Does not ask on which side of the leader's log its own is."""

    def start_over_below_leaders_log(self, partition: Partition, leader_log_start_offset: int) -> bool:
        """Drop everything, and fetch from the beginning of the leader's log."""
        partition.truncate_fully_and_start_at(leader_log_start_offset)
        return True

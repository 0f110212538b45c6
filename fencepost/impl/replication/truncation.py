"""How a follower makes its log a prefix of its leader's before it fetches (R5: KIP-101, KIP-279).

Owns the decision where to truncate. Must not know the requests.

    why not truncate to the high watermark (KIP-101):
    1. B leads; A has fetched m2 but not yet the high watermark past m2, so both hold m2 and it is committed
    2. A becomes follower again and truncates to its own high watermark: m2 is gone at A
    3. B fails before A has fetched m2 again; A is in the ISR and becomes leader: m2 is gone for ever
"""

from attrs import define

from fencepost.impl.messages.broker_api import EpochEnd
from fencepost.impl.replication.partition import Partition


@define
class FollowerTruncation:
    """The follower's part of epoch-based truncation."""

    def question(self, partition: Partition) -> int:
        """The epoch to ask the leader about; -1 to fetch at once (an empty log, or one without any epoch, has
        nothing to compare)."""
        epoch = partition.log.epochs.latest_epoch()
        if epoch < 0:
            partition.truncate_to(partition.high_watermark, cause="high_watermark")
        return epoch

    def truncate_by_epoch(self, partition: Partition, answer: EpochEnd) -> bool:
        """Protection KIP-101: truncate to the end of the last common epoch on the leader.

        Args:
            partition: the replica.
            answer: the leader's end offset for the epoch that was asked for.

        Returns:
            whether the logs now agree; if not, ask again about the new latest epoch (KIP-279).
        """
        if answer.end_offset < 0:
            # the leader knows no epoch at all: only in this case the high watermark is used
            partition.truncate_to(partition.high_watermark, cause="high_watermark")
            return True
        return self.truncate_below_own_epoch(partition, answer)

    def start_over_below_leaders_log(self, partition: Partition, leader_log_start_offset: int) -> bool:
        """Protection KAFKA-7414 (KAFKA-2143): of the logs out of the leader's range, only one that ends
        before the leader's log begins is removed completely. One that continues beyond the leader's end is
        truncated by epochs.

        Args:
            partition: the replica.
            leader_log_start_offset: the start of the leader's log.

        Returns:
            whether the log was removed.
        """
        if partition.log.log_end_offset >= leader_log_start_offset:
            return False
        partition.truncate_fully_and_start_at(leader_log_start_offset)
        return True

    def truncate_below_own_epoch(self, partition: Partition, answer: EpochEnd) -> bool:
        """Protection KIP-279: the answer names its epoch. If this log never had that epoch, truncate to the
        end of its largest own epoch below it and ask again. Otherwise truncate to the earlier of the two
        ends."""
        log = partition.log
        own_epoch, own_end = log.epochs.end_offset(answer.epoch, log.log_end_offset)
        if own_end >= 0 and own_epoch != answer.epoch:
            partition.truncate_to(min(own_end, log.log_end_offset), cause="leader_epoch")
            return log.epochs.latest_epoch() < 0
        end = answer.end_offset if own_end < 0 else min(own_end, answer.end_offset)
        partition.truncate_to(min(end, log.log_end_offset), cause="leader_epoch")
        return True

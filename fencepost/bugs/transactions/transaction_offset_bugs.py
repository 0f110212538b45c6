"""Bugs of offsets that transactions commit."""

from collections.abc import Sequence

from fencepost.impl.coordinator.committed_offsets import GroupOffsets
from fencepost.impl.coordinator.consumer_group import Group, StoredOffset
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import TxnOffsetCommitRequest
from fencepost.impl.transaction.transactional_offsets import TransactionalOffsets
from fencepost.traces.kafka_names.outcomes import ErrorCode


class CommitsWithoutOffsets(TransactionalOffsets):
    """T7: the offsets of a committed transaction do not count."""

    def count(self, group: Group, waiting: dict[TopicPartition, StoredOffset]) -> None:
        """They are forgotten."""


class OffsetsWithoutCommit(TransactionalOffsets):
    """T8: the offsets of an aborted transaction count."""

    def ended(self, key: TopicPartition, producer_id: int, commit: bool) -> None:
        """An end is an end."""
        super().ended(key, producer_id, True)


class TakesAnyMember(TransactionalOffsets):
    """KIP-447: a consumer that lost its partitions commits their offsets all the same."""

    def group_fencing(self, group: Group, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Whoever asks."""
        return ErrorCode.NONE


class ShowsUnstableOffsets(GroupOffsets):
    """T9: a fetch of committed offsets does not wait for transactions that commit some."""

    def stable_offsets_only(self, group: Group, asked: Sequence[TopicPartition]) -> ErrorCode:
        """What is there is what there is."""
        return ErrorCode.NONE


class DeletesWhatCounts(GroupOffsets):
    """KAFKA-14505: what is deleted are the offsets that count. One of an open transaction counts later, and
    a load brings its group back."""

    def deletable(self, group: Group) -> list[TopicPartition]:
        """Those of no open transaction."""
        return sorted(group.offsets)

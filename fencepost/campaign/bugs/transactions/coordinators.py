"""Bugs of transaction coordinators: who may write, and how a transaction ends."""

from attrs import evolve

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.coordinator import TransactionCoordinator
from fencepost.impl.transaction.loading import TransactionLoading
from fencepost.impl.transaction.markers import TransactionMarkers
from fencepost.impl.transaction.records import TransactionValue
from fencepost.impl.transaction.transaction import Transaction
from fencepost.traces.outcomes import ErrorCode


class ObeysAnyEpoch(TransactionCoordinator):
    """T1: whoever knows the producer id may add to its transaction, and end it."""

    def epoch_fencing(self, transaction: Transaction, producer_epoch: int) -> bool:
        """Whatever the epoch."""
        return True


class ForgetsTheLastEpoch(TransactionLoading):
    """T2: what is loaded lacks the last epoch that was given out."""

    def loaded(self, transactional_id: str, number: int, value: TransactionValue) -> Transaction:
        """The epoch of whoever was fenced counts again."""
        return Transaction(
            transactional_id, number, evolve(value, producer_epoch=max(0, value.producer_epoch - 1))
        )


class LeavesEndsToOthers(TransactionLoading):
    """KAFKA-16352: a transaction whose end was decided before the coordinator moved stays as it is."""

    def go_on_with_ends(self, loaded: list[Transaction]) -> None:
        """Nobody does."""


class ForgetsAPartition(TransactionMarkers):
    """T3: one partition of several gets no marker."""

    def to_mark(self, transaction: Transaction) -> set[TopicPartition]:
        """All but the last one."""
        keys = sorted(transaction.value.partitions)
        return set(keys[:-1] if len(keys) > 1 else keys)


class SendsMarkersOnce(TransactionMarkers):
    """T4: a marker that a leader refused counts as written."""

    def is_written(self, error: ErrorCode | None) -> bool:
        """An answer is an answer."""
        return error is not None

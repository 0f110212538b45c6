"""Bugs of transaction coordinators: who may write, and how a transaction ends."""

from attrs import evolve

from fencepost.impl.coordinator.durable import Done, KeyAndValue
from fencepost.impl.messages.broker_api import InitProducerIdRequest
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.impl.transaction.marker_writer import MarkerWriter
from fencepost.impl.transaction.markers import TransactionMarkers
from fencepost.impl.transaction.transaction import Transaction, Transit
from fencepost.impl.transaction.transaction_coordinator import TransactionCoordinator
from fencepost.impl.transaction.transaction_loading import TransactionLoading
from fencepost.impl.transaction.transaction_log import TransactionLog
from fencepost.impl.transaction.transaction_records import TransactionValue
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode


class ObeysAnyEpoch(TransactionCoordinator):
    """T1: a process that knows the producer id may add to its transaction, and end it."""

    def epoch_fencing(self, transaction: Transaction, producer_epoch: int) -> bool:
        """Whatever the epoch."""
        return True


class ForgetsTheLastEpoch(TransactionLoading):
    """T2: what is loaded lacks the last epoch that was given out."""

    def loaded(self, transactional_id: str, number: int, value: TransactionValue) -> Transaction:
        """The epoch of a fenced process counts again."""
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


class AnswersBeforeReplicas(MarkerWriter):
    """T13: a marker is answered when the leader alone has it; the next leader keeps the transaction open."""

    def answer_when_durable(self, partition: Partition, base_offset: int, done: Done) -> None:
        """It is in the log at `base_offset`: that is enough."""
        done(NO_ERROR, base_offset)


class OtherEpochs(TransactionCoordinator):
    """A coordinator that gives another epoch out than it should."""

    def instead(self, transaction: Transaction, value: TransactionValue) -> TransactionValue:
        """What it gives out. transaction: before; value: what it should give out."""
        raise NotImplementedError

    def next_epoch(
        self, transaction: Transaction, request: InitProducerIdRequest, fresh: int
    ) -> Transit | None:
        """As `instead` says. transaction, request, fresh: as in the class that this replaces."""
        transit = super().next_epoch(transaction, request, fresh)
        return transit and evolve(transit, value=self.instead(transaction, transit.value))


class GivesTheSameEpochAgain(OtherEpochs):
    """T14: a process that takes an id over gets the epoch of the one before."""

    def instead(self, transaction: Transaction, value: TransactionValue) -> TransactionValue:
        """The epoch before. transaction, value: as in the class that this replaces."""
        return evolve(value, producer_epoch=max(0, value.producer_epoch - 1))


class BeginsEpochsAgain(OtherEpochs):
    """T26: when the epochs of an id are used up they begin again, for the same producer id."""

    def instead(self, transaction: Transaction, value: TransactionValue) -> TransactionValue:
        """The same producer id. transaction, value: as in the class that this replaces."""
        return evolve(value, producer_id=transaction.value.producer_id)


class DecidesBeforeReplicas(TransactionLog):
    """T12: a transition counts when the leader alone has it; the next coordinator does not know it."""

    def counts_when_durable(self, key: TopicPartition, epoch: int, record: KeyAndValue, done: Done) -> None:
        """It is written: that is enough.

        Args:
            key: the partition of `__transaction_state`.
            epoch: of the coordinator.
            record: key and value.
            done: called with the outcome, before the replicas have the record.
        """
        self.write(key, epoch, (record,), _nothing, self.table.options.append_timeout_ms)
        done(NO_ERROR, 0)


def _nothing(error: ErrorCode, base_offset: int) -> None:
    """The outcome was announced. error, base_offset: of the write."""


class WaitsForEver(TransactionCoordinator):
    """T15: a transaction of a producer that is gone stays open."""

    def is_overdue(self, transaction: Transaction) -> bool:
        """There is time."""
        return False

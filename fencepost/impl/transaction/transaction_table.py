"""The transactions of one broker, and what it knows of each partition of __transaction_state.

Owns the tables that the parts of the coordinator share, and the events that tell of transactions. Must not
know requests or rules.
"""

from typing import ClassVar

from attrs import define, field

from fencepost.impl.coordinator.coordinated_partitions import Load, PlaceTable
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.transaction import Transaction
from fencepost.impl.transaction.transaction_records import TransactionValue
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import STATE_TOPIC
from fencepost.traces.plan import TransactionOptions


@define
class TransactionLoad(Load):
    """values: the last record of each id."""

    values: dict[str, TransactionValue] = field(factory=dict)


@define
class TransactionTable(PlaceTable[Transaction]):
    """The transactions of one broker."""

    TOPIC: ClassVar[str] = STATE_TOPIC

    @property
    def options(self) -> TransactionOptions:
        """Of the cluster."""
        return self.broker_context.options.transactions

    @property
    def planned_count(self) -> int:
        """How many partitions __transaction_state has if a broker creates it; 0 without transactions."""
        return self.options.state_topic_partitions

    @property
    def transactions(self) -> dict[str, Transaction]:
        """By transactional id."""
        return self.held

    def key_of(self, transactional_id: str) -> TopicPartition:
        """The partition of an id."""
        return self.key(self.number_of(transactional_id))

    def is_current(self, transaction: Transaction, epoch: int) -> bool:
        """Whether this broker still coordinates it, in the same epoch."""
        return (
            self.transactions.get(transaction.transactional_id) is transaction
            and self.epoch_of(transaction) == epoch
        )

    def tell(self, transaction: Transaction, why: str = "") -> None:
        """An event about where a transaction is."""
        value = transaction.value
        detail = {
            "transactional_id": transaction.transactional_id,
            "producer_id": value.producer_id,
            "producer_epoch": value.producer_epoch,
            "partitions": [str(key) for key in value.partitions],
            "why": why,
        }
        self.record(Name.TRANSACTION_PHASE, transaction, transaction.phase.value, detail)

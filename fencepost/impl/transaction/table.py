"""The transactions of one broker, and what it knows of each partition of __transaction_state.

Owns the tables that the parts of the coordinator share, and the events that tell of transactions. Must not
know requests or rules.
"""

import msgspec
from attrs import define, field

from fencepost.impl.coordinator.places import Load, Place
from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.impl.transaction.records import TransactionValue, partition_of
from fencepost.impl.transaction.transaction import Transaction
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.topics import STATE_TOPIC
from fencepost.traces.plan import TransactionOptions


@define
class TransactionLoad(Load):
    """values: the last record of each id."""

    values: dict[str, TransactionValue] = field(factory=dict)


@define
class TransactionTable:
    """transactions: by id; those of partitions that this broker coordinates, or has not unloaded yet. places:
    by number of the partition of __transaction_state."""

    broker_context: BrokerContext
    partitions: dict[TopicPartition, Partition]
    transactions: dict[str, Transaction] = field(factory=dict)
    places: dict[int, Place] = field(factory=dict)

    @property
    def options(self) -> TransactionOptions:
        """Of the cluster."""
        return self.broker_context.options.transactions

    @property
    def now_ms(self) -> int:
        """Host time."""
        return self.broker_context.now // MILLISECOND

    @property
    def count(self) -> int:
        """Partitions of __transaction_state; 0 if there is no such topic."""
        for topic in self.broker_context.options.topics:
            if topic.name == STATE_TOPIC:
                return topic.partitions
        return self.options.state_topic_partitions

    def key_of(self, transactional_id: str) -> TopicPartition:
        """The partition of an id."""
        return TopicPartition(STATE_TOPIC, partition_of(transactional_id, max(1, self.count)))

    def place(self, number: int) -> Place:
        """What is known of a partition of the topic."""
        return self.places.setdefault(number, Place(number))

    def epoch_of(self, transaction: Transaction) -> int:
        """The epoch in which this broker coordinates it."""
        return self.place(transaction.number).owned_epoch

    def of_place(self, number: int) -> list[Transaction]:
        """The transactions of one partition, by id."""
        return [one for _, one in sorted(self.transactions.items()) if one.number == number]

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
        self.broker_context.record(
            Name.TRANSACTION_PHASE,
            TopicPartition(STATE_TOPIC, transaction.number),
            leader_epoch=self.epoch_of(transaction),
            cause=transaction.phase.value,
            detail=msgspec.json.encode(detail).decode(),
        )

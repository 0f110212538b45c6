"""What a broker says of transactions to operators: DescribeTransactions, ListTransactions, DescribeProducers
(KIP-664), by which hanging transactions are found.

Owns the answers. Changes nothing.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.impl.messages import transaction_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.markers import TransactionMarkers
from fencepost.impl.transaction.transaction import Transaction
from fencepost.impl.transaction.transaction_log import TransactionLog
from fencepost.impl.transaction.transaction_states import TransactionPhase
from fencepost.impl.transaction.transaction_table import TransactionTable
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

STATES = frozenset(phase.value for phase in TransactionPhase)


@define
class TransactionDescription:
    """Of one broker."""

    table: TransactionTable
    log: TransactionLog
    markers: TransactionMarkers
    handlers: dict[type, Callable[[int, Any], None]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.handlers = {
            kafka.DescribeTransactionRequest: self.describe,
            kafka.ListTransactionsRequest: self.list,
            kafka.DescribeProducersRequest: self.producers,
        }

    def describe(self, source: int, request: kafka.DescribeTransactionRequest) -> None:
        """One transactional id.

        Args:
            source: the node that asks.
            request: DescribeTransactions.
        """
        name, error, known = request.transactional_id, ErrorCode.INVALID_REQUEST, None
        if name:
            error = self.log.not_coordinator(self.table.key_of(name).partition)
            known = self.table.transactions.get(name) if error is NO_ERROR else None
            if error is NO_ERROR and (known is None or known.pending is TransactionPhase.DEAD):
                known, error = None, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        if known is None:
            answer = kafka.DescribeTransactionResponse(correlation_id=request.correlation_id, error=error)
        else:
            value = known.value
            answer = kafka.DescribeTransactionResponse(
                correlation_id=request.correlation_id,
                error=NO_ERROR,
                state=value.phase.value,
                timeout_ms=value.timeout_ms,
                started_ms=value.started_ms,
                producer_id=value.producer_id,
                producer_epoch=value.producer_epoch,
                partitions=self._unmarked(known),
            )
        self.table.broker_context.reply(source, answer, request.correlation_id)

    def _unmarked(self, transaction: Transaction) -> tuple[TopicPartition, ...]:
        """Of a transaction that ends: the partitions without their marker."""
        ending = self.markers.ends.get(transaction.transactional_id)
        if ending is None:
            return transaction.value.partitions
        return tuple(sorted(ending.waiting.union(*ending.asked.values())))

    def list(self, source: int, request: kafka.ListTransactionsRequest) -> None:
        """Those that this broker coordinates.

        Args:
            source: the node that asks.
            request: ListTransactions.
        """
        found = tuple(
            (name, one.value.producer_id, one.phase.value)
            for name, one in sorted(self.table.transactions.items())
            if self.log.not_coordinator(one.number) is NO_ERROR and self._is_wanted(one, request)
        )
        loading = any(place.load is not None for place in self.table.places.values())
        answer = kafka.ListTransactionsResponse(
            correlation_id=request.correlation_id,
            error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else NO_ERROR,
            unknown_states=tuple(sorted(set(request.states) - STATES)),
            transactions=() if loading else found,
        )
        self.table.broker_context.reply(source, answer, request.correlation_id)

    def _is_wanted(self, transaction: Transaction, request: kafka.ListTransactionsRequest) -> bool:
        value = transaction.value
        if transaction.pending is TransactionPhase.DEAD:
            return False
        if request.states and value.phase.value not in request.states:
            return False
        if request.producer_ids and value.producer_id not in request.producer_ids:
            return False
        lasted_ms = self.table.now_ms - value.started_ms
        return request.longer_than_ms < 0 or lasted_ms > request.longer_than_ms

    def producers(self, source: int, request: kafka.DescribeProducersRequest) -> None:
        """The producers of one log, which any replica answers about its own, as in Kafka.

        Args:
            source: the node that asks.
            request: DescribeProducers.
        """
        partition = self.table.partitions.get(request.partition)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else NO_ERROR
        known = () if partition is None else partition.log.producers.producers.values()
        answer = kafka.DescribeProducersResponse(
            correlation_id=request.correlation_id,
            error=error,
            producers=tuple(
                kafka.ActiveProducer(
                    producer_id=one.producer_id,
                    producer_epoch=one.epoch,
                    last_sequence=one.last_sequence,
                    last_timestamp_ms=one.timestamp_ms,
                    coordinator_epoch=one.coordinator_epoch,
                    open_since=one.open_since,
                )
                for one in sorted(known, key=lambda one: one.producer_id)
            ),
        )
        self.table.broker_context.reply(source, answer, request.correlation_id)

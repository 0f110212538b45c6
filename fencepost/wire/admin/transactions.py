"""What operators ask of transactions: DescribeTransactions, ListTransactions, DescribeProducers (KIP-664)."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionRequest,
    DescribeTransactionResponse,
    ListTransactionsRequest,
)
from fencepost.wire.handling import NO_THROTTLE, Call, Handling, error_code, grouped, held_elsewhere

FIRST_WITH_DURATION = 1
"""Of ListTransactions (KIP-994)."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def describe_transactions(call: Call, request: Any) -> Handling:
    """Each transactional id separately: this broker may coordinate only some of them.

    Args:
        call: the connection and the broker.
        request: DescribeTransactions, decoded.
    """
    names = tuple(dict.fromkeys(request.transactional_ids))
    answers = yield [
        DescribeTransactionRequest(correlation_id=call.next_id(), transactional_id=name) for name in names
    ]
    return call.make(
        "DescribeTransactionsResponse",
        throttle_time=NO_THROTTLE,
        transaction_states=tuple(
            _described(call, name, answer) for name, answer in zip(names, answers, strict=True)
        ),
    )


def _described(call: Call, name: str, answer: DescribeTransactionResponse) -> Any:
    topics = grouped((key.topic, key.partition) for key in answer.partitions)
    return call.make(
        "TransactionState",
        error_code=error_code(answer.error),
        transactional_id=name,
        transaction_state=answer.state,
        transaction_timeout=timedelta(milliseconds=answer.timeout_ms),
        transaction_start_time=EPOCH + timedelta(milliseconds=answer.started_ms),
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
        topics=tuple(
            call.make("TopicData", topic=topic, partitions=tuple(numbers))
            for topic, numbers in topics.items()
        ),
    )


def list_transactions(call: Call, request: Any) -> Handling:
    """The transactional ids of this coordinator.

    Args:
        call: the connection and the broker.
        request: ListTransactions, decoded.
    """
    (answer,) = yield [
        ListTransactionsRequest(
            correlation_id=call.next_id(),
            states=tuple(request.state_filters),
            producer_ids=tuple(request.producer_id_filters),
            longer_than_ms=request.duration_filter if call.version >= FIRST_WITH_DURATION else -1,
        )
    ]
    return call.make(
        "ListTransactionsResponse",
        throttle_time=NO_THROTTLE,
        error_code=error_code(answer.error),
        unknown_state_filters=answer.unknown_states,
        transaction_states=tuple(
            call.make(
                "TransactionState", transactional_id=name, producer_id=producer_id, transaction_state=state
            )
            for name, producer_id, state in answer.transactions
        ),
    )


def describe_producers(call: Call, request: Any) -> Handling:
    """The producers that the logs of these partitions remember.

    Args:
        call: the connection and the broker.
        request: DescribeProducers, decoded.
    """
    keys = [
        TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes
    ]
    answers = yield [DescribeProducersRequest(correlation_id=call.next_id(), partition=key) for key in keys]
    held = (answer.error for answer in answers)
    elsewhere = yield from held_elsewhere(call, zip(keys, held, strict=True))
    topics = grouped((key.topic, (key, answer)) for key, answer in zip(keys, answers, strict=True))
    return call.make(
        "DescribeProducersResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            call.make(
                "TopicResponse",
                name=name,
                partitions=tuple(_producers(call, key, answer, key in elsewhere) for key, answer in each),
            )
            for name, each in topics.items()
        ),
    )


def _producers(call: Call, key: TopicPartition, answer: DescribeProducersResponse, elsewhere: bool) -> Any:
    error = WireError.not_leader_or_follower if elsewhere else error_code(answer.error)
    return call.make(
        "PartitionResponse",
        partition_index=key.partition,
        error_code=error,
        error_message=None,
        active_producers=tuple(
            call.make(
                "ProducerState",
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                last_sequence=one.last_sequence,
                last_timestamp=one.last_timestamp_ms,
                coordinator_epoch=one.coordinator_epoch,
                current_txn_start_offset=one.open_since,
            )
            for one in answer.producers
        ),
    )

"""What operators ask of transactions: DescribeTransactions, ListTransactions, DescribeProducers (KIP-664)."""

from datetime import UTC, datetime
from typing import Any

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionRequest,
    DescribeTransactionResponse,
    ListTransactionsRequest,
)
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.handling import Call, Handling, held_elsewhere
from fencepost.wire.plain import MILLISECOND, by_topic, keys_of

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
    return call.answer(transaction_states=[_described(*each) for each in zip(names, answers, strict=True)])


def _described(name: str, answer: DescribeTransactionResponse) -> dict[str, Any]:
    return {
        "error_code": answer.error,
        "transactional_id": name,
        "transaction_state": answer.state,
        "transaction_timeout": answer.timeout_ms,
        "transaction_start_time": EPOCH + answer.started_ms * MILLISECOND,
        "producer_id": answer.producer_id,
        "producer_epoch": answer.producer_epoch,
        "topics": by_topic(((key.topic, key.partition) for key in answer.partitions), topic="topic"),
    }


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
    return call.answer(
        error_code=answer.error,
        unknown_state_filters=answer.unknown_states,
        transaction_states=[
            {"transactional_id": name, "producer_id": producer_id, "transaction_state": state}
            for name, producer_id, state in answer.transactions
        ],
    )


def describe_producers(call: Call, request: Any) -> Handling:
    """The producers that the logs of these partitions remember.

    Args:
        call: the connection and the broker.
        request: DescribeProducers, decoded.
    """
    keys = keys_of(request.topics, "partition_indexes")
    answers = yield [DescribeProducersRequest(correlation_id=call.next_id(), partition=key) for key in keys]
    held = (answer.error for answer in answers)
    elsewhere = yield from held_elsewhere(call, zip(keys, held, strict=True))
    rows = (
        (key.topic, _producers(key, answer, key in elsewhere))
        for key, answer in zip(keys, answers, strict=True)
    )
    return call.answer(topics=by_topic(rows))


def _producers(key: TopicPartition, answer: DescribeProducersResponse, elsewhere: bool) -> dict[str, Any]:
    return {
        "partition_index": key.partition,
        "error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER if elsewhere else answer.error,
        "active_producers": [
            {
                "producer_id": one.producer_id,
                "producer_epoch": one.producer_epoch,
                "last_sequence": one.last_sequence,
                "last_timestamp": one.last_timestamp_ms,
                "coordinator_epoch": one.coordinator_epoch,
                "current_txn_start_offset": one.open_since,
            }
            for one in answer.producers
        ],
    }

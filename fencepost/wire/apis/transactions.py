"""Transactions: AddPartitionsToTxn, AddOffsetsToTxn, EndTxn and TxnOffsetCommit.

Owns the translation. Must not know any rule of transactions. The version of a request says which version of
transactions its producer uses (KIP-890), not the cluster's feature: as in Kafka. Where the cluster has none
(`BrokerView.transactions`) each of them is refused with UNSUPPORTED_VERSION.
"""

from typing import Any

from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.group_api import NO_GENERATION, NO_MEMBER, CommittedOffset
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import (
    NO_PRODUCER,
    NO_PRODUCER_EPOCH,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from fencepost.traces.outcomes import ErrorCode
from fencepost.wire.handling import NO_THROTTLE, Call, Handling, error_code, grouped

FIRST_WITH_FENCED = 2
"""Of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn: before it PRODUCER_FENCED is INVALID_PRODUCER_EPOCH
(KIP-588)."""
FIRST_WITH_EPOCH, FIRST_WITH_MEMBER = 2, 3
"""Of TxnOffsetCommit (KIP-447)."""
FIRST_WITH_ABORTABLE, FIRST_THAT_ADDS = 4, 5
"""Of TxnOffsetCommit (KIP-890)."""
FIRST_THAT_BUMPS = 5
"""Of EndTxn: the answer has the producer's next epoch (KIP-890)."""


def wire_error(call: Call, error: ErrorCode) -> WireError:
    """The error in words of this version."""
    if error is ErrorCode.PRODUCER_FENCED and call.version < FIRST_WITH_FENCED:
        return WireError.invalid_producer_epoch
    return error_code(error)


def add_partitions(call: Call, request: Any) -> Handling:
    """All partitions become part of the transaction, or each has the error.

    Args:
        call: the connection and the broker.
        request: AddPartitionsToTxn, decoded.
    """
    keys = [
        TopicPartition(topic.name, index)
        for topic in request.v3_and_below_topics
        for index in topic.partitions
    ]
    error = WireError.unsupported_version
    if call.broker.transactions:
        (answer,) = yield [
            AddPartitionsToTxnRequest(
                correlation_id=call.next_id(),
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                partitions=tuple(keys),
            )
        ]
        error = wire_error(call, answer.error)
    else:
        yield ()
    return call.make(
        "AddPartitionsToTxnResponse",
        throttle_time=NO_THROTTLE,
        results_by_topic_v3_and_below=tuple(
            call.make(
                "AddPartitionsToTxnTopicResult",
                name=name,
                results_by_partition=tuple(
                    call.make(
                        "AddPartitionsToTxnPartitionResult",
                        partition_index=number,
                        partition_error_code=error,
                    )
                    for number in numbers
                ),
            )
            for name, numbers in grouped((key.topic, key.partition) for key in keys).items()
        ),
    )


def add_offsets(call: Call, request: Any) -> Handling:
    """The group's offsets become part of the transaction.

    Args:
        call: the connection and the broker.
        request: AddOffsetsToTxn, decoded.
    """
    error = WireError.unsupported_version
    if call.broker.transactions:
        (answer,) = yield [
            AddOffsetsToTxnRequest(
                correlation_id=call.next_id(),
                transactional_id=request.transactional_id,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
                group_id=request.group_id,
            )
        ]
        error = wire_error(call, answer.error)
    else:
        yield ()
    return call.make("AddOffsetsToTxnResponse", throttle_time=NO_THROTTLE, error_code=error)


def end(call: Call, request: Any) -> Handling:
    """Commit or abort.

    Args:
        call: the connection and the broker.
        request: EndTxn, decoded.
    """
    error, producer = WireError.unsupported_version, (NO_PRODUCER, NO_PRODUCER_EPOCH)
    if call.broker.transactions:
        (answer,) = yield [
            EndTxnRequest(
                correlation_id=call.next_id(),
                transactional_id=request.transactional_id,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
                commit=request.committed,
                version=2 if call.version >= FIRST_THAT_BUMPS else 1,
            )
        ]
        error = wire_error(call, answer.error)
        producer = answer.producer_id, answer.producer_epoch
    else:
        yield ()
    return call.make(
        "EndTxnResponse",
        throttle_time=NO_THROTTLE,
        error_code=error,
        producer_id=producer[0],
        producer_epoch=producer[1],
    )


def commit_offsets(call: Call, request: Any) -> Handling:
    """Offsets that count when the transaction commits.

    Args:
        call: the connection and the broker.
        request: TxnOffsetCommit, decoded.
    """
    offsets = tuple(
        CommittedOffset(
            partition=TopicPartition(topic.name, each.partition_index),
            offset=each.committed_offset,
            leader_epoch=each.committed_leader_epoch if call.version >= FIRST_WITH_EPOCH else -1,
            metadata=each.committed_metadata or "",
        )
        for topic in request.topics
        for each in topic.partitions
    )
    error = WireError.unsupported_version
    if call.broker.transactions:
        with_member = call.version >= FIRST_WITH_MEMBER
        (answer,) = yield [
            TxnOffsetCommitRequest(
                correlation_id=call.next_id(),
                transactional_id=request.transactional_id,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
                group_id=request.group_id,
                offsets=offsets,
                generation_id=request.generation_id if with_member else NO_GENERATION,
                member_id=request.member_id if with_member else NO_MEMBER,
                group_instance_id=request.group_instance_id if with_member else None,
                adds_partition=call.version >= FIRST_THAT_ADDS,
            )
        ]
        abortable = answer.error is ErrorCode.TRANSACTION_ABORTABLE
        known = not abortable or call.version >= FIRST_WITH_ABORTABLE
        error = error_code(answer.error if known else ErrorCode.INVALID_TXN_STATE)
    else:
        yield ()
    return call.make(
        "TxnOffsetCommitResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            call.make(
                "TxnOffsetCommitResponseTopic",
                name=name,
                partitions=tuple(
                    call.make("TxnOffsetCommitResponsePartition", partition_index=number, error_code=error)
                    for number in numbers
                ),
            )
            for name, numbers in grouped(
                (each.partition.topic, each.partition.partition) for each in offsets
            ).items()
        ),
    )

"""Transactions: AddPartitionsToTxn, AddOffsetsToTxn, EndTxn and TxnOffsetCommit.

Owns the translation. Must not know any rule of transactions. The version of a request says which version of
transactions its producer uses (KIP-890), not the cluster's feature: as in Kafka. Where the cluster has none
(`BrokerView.transactions`) each of them is refused with UNSUPPORTED_VERSION.
"""

from collections.abc import Generator, Sequence
from typing import Any

from fencepost.impl.messages.broker_api import Request
from fencepost.impl.messages.group_api import NO_GENERATION, NO_MEMBER, CommittedOffset
from fencepost.impl.messages.transaction_api import (
    NO_PRODUCER,
    NO_PRODUCER_EPOCH,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.handling import Call, Handling
from fencepost.wire.plain import by_topic, keyed, keys_of

FIRST_WITH_FENCED = 2
"""Of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn: before it PRODUCER_FENCED is INVALID_PRODUCER_EPOCH
(KIP-588)."""
FIRST_WITH_EPOCH, FIRST_WITH_MEMBER = 2, 3
"""Of TxnOffsetCommit (KIP-447)."""
FIRST_WITH_ABORTABLE, FIRST_THAT_ADDS = 4, 5
"""Of TxnOffsetCommit (KIP-890)."""
FIRST_THAT_BUMPS = 5
"""Of EndTxn: the answer has the producer's next epoch (KIP-890)."""


def wire_error(call: Call, error: ErrorCode) -> ErrorCode:
    """The error in words of this version."""
    if error is ErrorCode.PRODUCER_FENCED and call.version < FIRST_WITH_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def _heard(call: Call, request: Request) -> Generator[Sequence[Request], list[Any], tuple[ErrorCode, Any]]:
    """The error and the core's answer, which is None in a cluster without transactions."""
    if not call.broker.transactions:
        yield ()
        return ErrorCode.UNSUPPORTED_VERSION, None
    (answer,) = yield [request]
    return answer.error, answer


def add_partitions(call: Call, request: Any) -> Handling:
    """All partitions become part of the transaction, or each has the error.

    Args:
        call: the connection and the broker.
        request: AddPartitionsToTxn, decoded.
    """
    keys = keys_of(request.v3_and_below_topics, "partitions")
    wanted = AddPartitionsToTxnRequest(
        correlation_id=call.next_id(),
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        partitions=keys,
    )
    error, _ = yield from _heard(call, wanted)
    said = wire_error(call, error)
    rows = ((key.topic, {"partition_index": key.partition, "partition_error_code": said}) for key in keys)
    return call.answer(results_by_topic_v3_and_below=by_topic(rows, "results_by_partition"))


def add_offsets(call: Call, request: Any) -> Handling:
    """The group's offsets become part of the transaction.

    Args:
        call: the connection and the broker.
        request: AddOffsetsToTxn, decoded.
    """
    error, _ = yield from _heard(call, call.of(AddOffsetsToTxnRequest, request))
    return call.answer(error_code=wire_error(call, error))


def end(call: Call, request: Any) -> Handling:
    """Commit or abort.

    Args:
        call: the connection and the broker.
        request: EndTxn, decoded.
    """
    wanted = call.of(
        EndTxnRequest, request, commit=request.committed, version=2 if call.version >= FIRST_THAT_BUMPS else 1
    )
    error, answer = yield from _heard(call, wanted)
    return call.answer(
        error_code=wire_error(call, error),
        producer_id=NO_PRODUCER if answer is None else answer.producer_id,
        producer_epoch=NO_PRODUCER_EPOCH if answer is None else answer.producer_epoch,
    )


def commit_offsets(call: Call, request: Any) -> Handling:
    """Offsets that count when the transaction commits.

    Args:
        call: the connection and the broker.
        request: TxnOffsetCommit, decoded.
    """
    offsets = tuple(
        CommittedOffset(
            partition=key,
            offset=each.committed_offset,
            leader_epoch=each.committed_leader_epoch if call.version >= FIRST_WITH_EPOCH else -1,
            metadata=each.committed_metadata or "",
        )
        for key, each in keyed(request.topics)
    )
    with_member = call.version >= FIRST_WITH_MEMBER
    wanted = call.of(
        TxnOffsetCommitRequest,
        request,
        offsets=offsets,
        generation_id=request.generation_id if with_member else NO_GENERATION,
        member_id=request.member_id if with_member else NO_MEMBER,
        group_instance_id=request.group_instance_id if with_member else None,
        adds_partition=call.version >= FIRST_THAT_ADDS,
    )
    error, _ = yield from _heard(call, wanted)
    if error is ErrorCode.TRANSACTION_ABORTABLE and call.version < FIRST_WITH_ABORTABLE:
        error = ErrorCode.INVALID_TXN_STATE
    keys = (each.partition for each in offsets)
    rows = ((key.topic, {"partition_index": key.partition, "error_code": error}) for key in keys)
    return call.answer(topics=by_topic(rows))

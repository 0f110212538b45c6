"""Produce: one request of the core for each partition, one answer for all of them.

Owns the errors that need no look at the log. The bytes of a batch pass unchanged.
"""

from typing import Any

from msgspec.structs import replace

from fencepost.impl.log.batch.header import MAGIC_AT, TRANSACTIONAL
from fencepost.impl.messages.broker_api import ProduceRequest, ProduceResponse
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from fencepost.wire.handling import (
    NANOSECONDS_PER_MS,
    Call,
    CloseConnection,
    Handling,
    held_elsewhere,
    milliseconds,
)
from fencepost.wire.plain import by_topic, keyed

FIRST_WITH_ABORTABLE, FIRST_THAT_ADDS = 11, 12
"""Of Produce (KIP-890): TRANSACTION_ABORTABLE is known; the leader adds the partition to the transaction."""
OLD_MAGIC = (b"\x00", b"\x01")
"""Formats that no produce of these versions may carry; any other than 2 is corrupt, as the core finds."""
ATTRIBUTES_AT, ATTRIBUTES_END = 21, 23
MESSAGES = {
    ErrorCode.INVALID_RECORD: "Expected one record batch of magic 2 whose records are as they should be",
    ErrorCode.INVALID_TXN_STATE: "Transactions are not supported by this broker",
}


def produce(call: Call, request: Any) -> Handling:
    """Append each partition's batch. With acks=0 there is no answer; if the append fails, the connection is
    closed, so that the client looks for the leader again. call: the request's context; request: kio's
    class."""
    wait_ms = max(0, min(milliseconds(request.timeout), call.limits.produce_wait_ms))
    call.patience_ms = wait_ms
    rows = keyed(request.topic_data, "partition_data", number="index")
    given = [(key, each.records) for key, each in rows]
    refused = [refusal(request, records, call.broker.transactions) for _, records in given]
    answers: list[ProduceResponse] = yield [
        ProduceRequest(
            correlation_id=call.next_id(),
            partition=key,
            acks=ACKS_LEADER if request.acks == ACKS_NONE else request.acks,
            records=records,
            timeout=wait_ms * NANOSECONDS_PER_MS,
            transactional_id=request.transactional_id,
            adds_partition=request.transactional_id is not None and call.version >= FIRST_THAT_ADDS,
        )
        for (key, records), error in zip(given, refused, strict=True)
        if error is NO_ERROR
    ]
    heard = iter(answers)
    results = [
        next(heard) if error is NO_ERROR else ProduceResponse(correlation_id=0, error=error)
        for error in refused
    ]
    if request.acks == ACKS_NONE:
        failed = next((result.error for result in results if result.error is not NO_ERROR), NO_ERROR)
        if failed is not NO_ERROR:
            raise CloseConnection(f"a produce with acks=0 failed with {failed.value}")
        return None
    results = [
        replace(result, error=ErrorCode.INVALID_TXN_STATE)  # what these versions know
        if result.error is ErrorCode.TRANSACTION_ABORTABLE and call.version < FIRST_WITH_ABORTABLE
        else result
        for result in results
    ]
    keys = [key for key, _ in given]
    held = (result.error for result in results)
    elsewhere = yield from held_elsewhere(call, zip(keys, held, strict=True))
    moved = ProduceResponse(correlation_id=0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    results = [moved if key in elsewhere else result for key, result in zip(keys, results, strict=True)]
    parts = ((key.topic, _partition(key.partition, one)) for key, one in zip(keys, results, strict=True))
    return call.answer(responses=by_topic(parts, "partition_responses"))


def refusal(request: Any, records: bytes | None, transactions: bool = False) -> ErrorCode:
    """Why this batch is not given to the core; NO_ERROR if it is. The core validates the rest
    (impl/log/validation.py): here is what the protocol says, and that there are no transactions.
    transactions: there are."""
    if request.acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if not records or records[MAGIC_AT : MAGIC_AT + 1] in OLD_MAGIC:
        return ErrorCode.INVALID_RECORD
    attributes = int.from_bytes(records[ATTRIBUTES_AT:ATTRIBUTES_END], "big")
    if transactions:
        foreign = attributes & TRANSACTIONAL and request.transactional_id is None
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if foreign else NO_ERROR
    if attributes & TRANSACTIONAL or request.transactional_id is not None:
        return ErrorCode.INVALID_TXN_STATE
    return NO_ERROR


def _partition(index: int, result: ProduceResponse) -> dict[str, Any]:
    """An error after the append keeps the base offset, as Kafka's DelayedProduce does."""
    return {
        "index": index,
        "error_code": result.error,
        "base_offset": result.base_offset,
        "log_append_time": None,
        "log_start_offset": result.log_start_offset,
        "error_message": MESSAGES.get(result.error),
    }

"""The current operation of a client, and its result in a trace."""

import msgspec
from attrs import define

from fencepost.impl.core.core_interface import Complete
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import (
    ACKS_NONE,
    ByTime,
    Function,
    Outcome,
    Record,
    make_operation,
    make_record,
)
from fencepost.traces.plan import PlannedOperation

VALUES_PER_OPERATION = 1000
"""Value ids of an append are op_id * 1000 + index."""

FINAL_ERRORS = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)
"""Errors that a retry with the same bytes would get again; Kafka does not retry them either. CORRUPT_MESSAGE
is retried, because the bytes may have been damaged in transit."""

READ_COMMITTED, EARLIEST = "read_committed", "earliest"
"""Arguments of an operation. The last one is of a list_offsets of the log start."""
TENTH_MS = 100
"""The argument of a planned read of committed records."""


@define
class Attempt:
    """The state of the current operation."""

    # The operation of the plan.
    operation: PlannedOperation
    # Its partition.
    key: TopicPartition
    # For a poll, the next offset to read.
    position: int = 0
    # That of the request in flight; -1 for none.
    correlation_id: int = -1
    # Requests sent, including metadata.
    requests: int = 0
    # Requests sent to leaders.
    attempts: int = 0
    # Whether a metadata request is in flight.
    asking_metadata: bool = False
    # Whether the leader must be asked for again.
    stale_metadata: bool = False
    # The position is out of range, and the next request asks where to continue.
    resetting: bool = False
    # Whether the outcome of some attempt is unknown.
    unknown: bool = False
    # The error of the last attempt.
    error: ErrorCode = NO_ERROR
    # The broker of the last attempt; -1 for none.
    node: int = -1
    # The offset in the response; None if there is none.
    offset: int | None = None
    # The end that the response showed; None if there is none.
    end_offset: int | None = None
    # The log start that the response showed; None if there is none.
    log_start_offset: int | None = None
    # The leader epoch of the response; None if there is none.
    leader_epoch: int | None = None
    last_stable_offset: int | None = None
    # The time that a ListOffsets asked for, in milliseconds; negative for an end.
    since_ms: int = -1
    # What is asked by time, and the answer.
    found: ByTime | None = None
    records: tuple[Record, ...] = ()

    @property
    def values(self) -> tuple[int, ...]:
        """The value ids of an append."""
        base = self.operation.op_id * VALUES_PER_OPERATION
        return tuple(range(base, base + self.operation.records))


def complete(process: int, attempt: Attempt, outcome: Outcome) -> Complete:
    """The effect that ends an operation. Times are 0: the driver sets them.

    Args:
        process: the process in the trace.
        attempt: the state of the operation.
        outcome: its outcome.

    Returns:
        the effect.
    """
    operation = attempt.operation
    append = operation.function == "append"
    records = attempt.records
    if append:
        known = outcome is Outcome.OK and operation.acks != ACKS_NONE
        records = tuple(
            make_record(
                topic=operation.topic,
                partition=operation.partition,
                offset=(attempt.offset or 0) + index if known else -1,
                value=value,
                leader_epoch=-1 if attempt.leader_epoch is None or not known else attempt.leader_epoch,
            )
            for index, value in enumerate(attempt.values)
        )
    return Complete(
        make_operation(
            op_id=operation.op_id,
            process=process,
            function=Function(operation.function),
            invoke_time=0,
            outcome=outcome,
            completion_time=None if outcome is Outcome.UNKNOWN else 0,
            clock_id=0,
            topic=operation.topic,
            partition=operation.partition,
            key=operation.key or None,
            argument=None if operation.argument == READ_COMMITTED else operation.argument or None,
            result=None if attempt.found is None else msgspec.json.encode(attempt.found).decode(),
            error=None if attempt.error is NO_ERROR else attempt.error.value,
            acks=operation.acks if append else None,
            isolation=_isolation(operation),
            offset=attempt.offset if not append or outcome is Outcome.OK else None,
            end_offset=attempt.end_offset,
            last_stable_offset=attempt.last_stable_offset,
            log_start_offset=attempt.log_start_offset,
            leader_epoch=attempt.leader_epoch,
            node=attempt.node,
            attempts=attempt.attempts,
            records=records,
        )
    )


def _isolation(operation: PlannedOperation) -> str | None:
    if operation.function not in ("poll", "list_offsets"):
        return None
    return READ_COMMITTED if operation.argument == READ_COMMITTED else "read_uncommitted"

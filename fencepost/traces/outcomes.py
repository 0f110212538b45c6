"""Kafka's error names and what each proves about the operation that met it.

The table is policy, so it is data. `appended` tells the two meanings of a refusal apart: Kafka answers a produce
request that was appended and then lost its leader with the same code as one that was refused at the door,
but keeps the base offset in the reply (DelayedProduce keeps the offset of the append).
"""

from enum import StrEnum

from fencepost.traces.operations import Outcome


class ErrorCode(StrEnum):
    """Kafka's own names for what can go wrong with a request."""

    NONE = "NONE"
    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
    LEADER_NOT_AVAILABLE = "LEADER_NOT_AVAILABLE"
    NOT_LEADER_OR_FOLLOWER = "NOT_LEADER_OR_FOLLOWER"
    REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
    NETWORK_EXCEPTION = "NETWORK_EXCEPTION"
    NOT_ENOUGH_REPLICAS = "NOT_ENOUGH_REPLICAS"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
    OFFSET_NOT_AVAILABLE = "OFFSET_NOT_AVAILABLE"
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"
    UNKNOWN_LEADER_EPOCH = "UNKNOWN_LEADER_EPOCH"
    STALE_CONTROLLER_EPOCH = "STALE_CONTROLLER_EPOCH"
    STALE_BROKER_EPOCH = "STALE_BROKER_EPOCH"
    KAFKA_STORAGE_ERROR = "KAFKA_STORAGE_ERROR"
    CORRUPT_MESSAGE = "CORRUPT_MESSAGE"


NOTHING_HAPPENED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.STALE_CONTROLLER_EPOCH,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.CORRUPT_MESSAGE,
    }
)
"""Errors that, before any append, prove that nothing was written. Every other error leaves it unknown."""


def outcome_of_attempt(error: ErrorCode, *, appended: bool) -> Outcome:
    """What one attempt proves. appended: the reply names a base offset, so the leader wrote before it refused."""
    if error is ErrorCode.NONE:
        return Outcome.OK
    if appended or error not in NOTHING_HAPPENED:
        return Outcome.UNKNOWN
    return Outcome.FAIL

"""What an error means to a transactional producer, as Java's TransactionManager sees it.

Owns the table. Retriable: the same request is sent again. Abortable: this transaction must be aborted, the
next one may work. Fatal: this producer can do nothing any more.
"""

from enum import Enum

from fencepost.traces.errors import FencepostError
from fencepost.traces.kafka_names.outcomes import ErrorCode

_E = ErrorCode

FIND_AGAIN = frozenset({_E.NOT_COORDINATOR, _E.COORDINATOR_NOT_AVAILABLE})
"""Somebody else coordinates, perhaps: ask who."""
RETRIABLE = FIND_AGAIN | {
    _E.COORDINATOR_LOAD_IN_PROGRESS,
    _E.CONCURRENT_TRANSACTIONS,
    _E.UNKNOWN_TOPIC_OR_PARTITION,
    _E.REQUEST_TIMED_OUT,
    _E.NETWORK_EXCEPTION,
    _E.NOT_LEADER_OR_FOLLOWER,
    _E.LEADER_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS,
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    _E.KAFKA_STORAGE_ERROR,
    _E.CORRUPT_MESSAGE,
}
FENCED = frozenset({_E.PRODUCER_FENCED, _E.INVALID_PRODUCER_EPOCH})
"""Another producer has the transactional id now, or the coordinator took it away when the time was up."""
FATAL = FENCED | {
    _E.INVALID_PRODUCER_ID_MAPPING,
    _E.INVALID_TXN_STATE,
    _E.INVALID_TRANSACTION_TIMEOUT,
    _E.UNSUPPORTED_VERSION,
    _E.INVALID_REQUEST,
}
"""To a request for the coordinator. To a batch only PRODUCER_FENCED and INVALID_PRODUCER_ID_MAPPING are
(KIP-588)."""
FATAL_TO_BATCH = frozenset({_E.PRODUCER_FENCED, _E.INVALID_PRODUCER_ID_MAPPING})


class Gravity(Enum):
    """What remains to be done."""

    RETRIABLE = "retriable"
    ABORTABLE = "abortable"
    FATAL = "fatal"


def gravity_of(error: ErrorCode, *, batch: bool = False) -> Gravity:
    """batch: the error of a produced batch, not of a coordinator."""
    if error in RETRIABLE:
        return Gravity.RETRIABLE
    return Gravity.FATAL if error in (FATAL_TO_BATCH if batch else FATAL) else Gravity.ABORTABLE


class AbortableError(FencepostError):
    """This transaction must be aborted."""

    def __init__(self, error: ErrorCode, where: str) -> None:
        self.error = error
        super().__init__(expected="no error", seen=error.value, where=where, hint="abort the transaction")


class FatalError(FencepostError):
    """This producer can do nothing any more."""

    def __init__(self, error: ErrorCode, where: str) -> None:
        self.error = error
        super().__init__(expected="no error", seen=error.value, where=where, hint="make another producer")

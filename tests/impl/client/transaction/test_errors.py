"""What errors mean to a transactional producer."""

import pytest

from fencepost.impl.client.transaction.errors import FATAL, RETRIABLE, Gravity, gravity_of
from fencepost.traces.kafka_names.outcomes import ErrorCode

E = ErrorCode


@pytest.mark.parametrize(
    ("error", "of_coordinator", "of_batch"),
    [
        (E.CONCURRENT_TRANSACTIONS, Gravity.RETRIABLE, Gravity.RETRIABLE),
        (E.NOT_COORDINATOR, Gravity.RETRIABLE, Gravity.RETRIABLE),
        (E.PRODUCER_FENCED, Gravity.FATAL, Gravity.FATAL),
        (E.INVALID_PRODUCER_EPOCH, Gravity.FATAL, Gravity.ABORTABLE),
        (E.INVALID_TXN_STATE, Gravity.FATAL, Gravity.ABORTABLE),
        (E.TRANSACTION_ABORTABLE, Gravity.ABORTABLE, Gravity.ABORTABLE),
        (E.ILLEGAL_GENERATION, Gravity.ABORTABLE, Gravity.ABORTABLE),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, Gravity.ABORTABLE, Gravity.ABORTABLE),
    ],
)
def test_an_error_is_retriable_abortable_or_fatal(error, of_coordinator, of_batch):
    """Rule (KIP-98, KIP-588): fencing is fatal from a coordinator; from a leader the transaction is
    aborted first."""
    assert gravity_of(error) is of_coordinator
    assert gravity_of(error, batch=True) is of_batch


def test_no_error_is_two_things():
    """Rule (KIP-98): what is tried again is not fatal."""
    assert not RETRIABLE & FATAL

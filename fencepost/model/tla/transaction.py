"""Constants and states of the transaction model, between Python (transaction/transaction_state.py) and TLA+
(Transaction.tla).

Owns the one-to-one map. Must not know the transitions of either side.
"""

from collections.abc import Mapping

from fencepost.model.tlc.forms import (
    BITS,
    SAME,
    Form,
    bounds_to_tla,
    fields,
    members,
    numbered,
    optional,
    row,
    sequence,
    state_form,
    variable,
    word,
)
from fencepost.model.transaction.transaction_state import (
    FATES,
    PHASES,
    PRODUCER_STATES,
    Constants,
    Coordinator,
    Ghost,
    Journal,
    Partition,
    Producer,
    Record,
    Transaction,
    TransactionState,
)

INVARIANTS: Mapping[str, str] = {
    "TxnAtom": "TXN-ATOM",
    "OneDecision": "ONE-DECISION",
    "MarkerMatch": "MARKER-MATCH",
    "TxnFence": "TXN-FENCE",
    "ReadCommitted": "READ-COMMITTED",
    "NoHanging": "NO-HANGING",
}
"""The TLA+ name of an invariant -> the model's."""

BOUNDS: Mapping[str, str] = {
    "Version": "version",
    "ProducerCount": "producers",
    "PartitionCount": "partitions",
    "TransactionCount": "transactions",
    "LastEpoch": "epochs",
    "ExtraCount": "extra",
    "OffsetsCount": "offsets",
    "LastProducerEpoch": "producer_epochs",
}
"""The TLA+ name of a bound -> the model's."""


def constants_to_tla(constants: Constants) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    return bounds_to_tla(constants, BOUNDS)


_TRANSACTION = row(
    Transaction._make, phase=word(*PHASES), epoch=SAME, partitions=BITS, number=SAME, owner=SAME
)
_REQUESTS = members(
    row(tuple, kind=word("add", "produce", "end"), transaction=SAME, epoch=SAME, what=SAME, sequence=SAME)
)
_PRODUCER = row(
    Producer._make,
    state=word(*PRODUCER_STATES),
    epoch=SAME,
    transaction=SAME,
    added=BITS,
    sent=BITS,
    acked=BITS,
    sequences=numbered(SAME),
    requests=_REQUESTS,
)
_RECORD = row(Record._make, transaction=SAME, under=SAME, fate=word(*FATES), endedBy=SAME, late=SAME)
_PARTITION = row(
    Partition._make,
    epoch=SAME,
    sequence=SAME,
    coordinatorEpoch=SAME,
    open=SAME,
    records=sequence(_RECORD),
    verified=_REQUESTS,
)
_MARKER = row(tuple, number=SAME, epoch=SAME, coordinatorEpoch=SAME, commit=Form(bool, int), partitions=BITS)
_HELD = row(Coordinator._make, value=_TRANSACTION, marked=BITS, sending=SAME)
_STATE = state_form(
    TransactionState._make,
    fields(Journal._make, elected=SAME, value=_TRANSACTION, tail=optional(_TRANSACTION)),
    variable("held", numbered(optional(_HELD))),
    variable("producer", numbered(_PRODUCER)),
    variable("partition", numbered(_PARTITION)),
    variable("markers", members(_MARKER)),
    fields(Ghost._make, asked=BITS, acknowledged=BITS, committed=BITS, aborted=BITS, answered=SAME),
)
state_to_tla = _STATE.to_tla
"""The values of the variables of Transaction.tla, from a state."""
state_from_tla = _STATE.from_tla
"""A state, from the values of the variables by name."""

"""Constants and states of the transaction model, between Python (transaction/transaction_state.py) and TLA+
(Transaction.tla).

Owns the one-to-one map. Must not know the transitions of either side.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.model.tlc.values import Value, as_value, show
from fencepost.model.transaction.transaction_state import (
    ADD,
    END,
    FATES,
    PHASES,
    PRODUCE,
    PRODUCER_STATES,
    Constants,
    Coordinator,
    Ghost,
    Journal,
    Marker,
    Partition,
    Producer,
    Record,
    Request,
    Transaction,
    TransactionState,
    of,
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

KINDS: Mapping[int, str] = {ADD: "add", PRODUCE: "produce", END: "end"}
NUMBERS: Mapping[str, int] = {name: number for number, name in KINDS.items()}


def constants_to_tla(constants: Constants) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    return {
        "Version": show(constants.version),
        "ProducerCount": show(constants.producers),
        "PartitionCount": show(constants.partitions),
        "TransactionCount": show(constants.transactions),
        "LastEpoch": show(constants.epochs),
        "ExtraCount": show(constants.extra),
        "OffsetsCount": show(constants.offsets),
        "LastProducerEpoch": show(constants.producer_epochs),
        "Drop": show(frozenset(constants.drop)),
    }


# ---- to TLA+


def _record(**fields: Value) -> Value:
    return as_value(fields.items())


def _numbered(values: Iterable[Value]) -> Value:
    return as_value(enumerate(values))


def _set(bits: int) -> Value:
    return frozenset(of(bits))


def state_to_tla(state: TransactionState) -> dict[str, Value]:
    """The variables of Transaction.tla in this state."""
    journal, ghost = state.journal, state.ghost
    return {
        "elected": journal.elected,
        "value": _transaction_to_tla(journal.value),
        "tail": (_transaction_to_tla(journal.tail),) if isinstance(journal.tail, Transaction) else (),
        "held": _numbered(_held_to_tla(one) for one in state.coordinators),
        "producer": _numbered(_producer_to_tla(one) for one in state.producers),
        "partition": _numbered(_partition_to_tla(one) for one in state.partitions),
        "markers": frozenset(_marker_to_tla(one) for one in state.markers),
        "asked": _set(ghost.asked),
        "acknowledged": _set(ghost.acknowledged),
        "committed": _set(ghost.committed),
        "aborted": _set(ghost.aborted),
        "answered": ghost.answered,
    }


def _transaction_to_tla(one: Transaction) -> Value:
    return _record(
        phase=PHASES[one.phase],
        epoch=one.epoch,
        partitions=_set(one.partitions),
        number=one.number,
        owner=one.owner,
    )


def _held_to_tla(one: Coordinator | tuple[()]) -> Value:
    if not isinstance(one, Coordinator):
        return ()
    return (_record(value=_transaction_to_tla(one.value), marked=_set(one.marked), sending=one.sending),)


def _request_to_tla(request: Request) -> Value:
    kind, transaction, epoch, what, sequence = request
    return _record(kind=KINDS[kind], transaction=transaction, epoch=epoch, what=what, sequence=sequence)


def _producer_to_tla(one: Producer) -> Value:
    return _record(
        state=PRODUCER_STATES[one.state],
        epoch=one.epoch,
        transaction=one.transaction,
        added=_set(one.added),
        sent=_set(one.sent),
        acked=_set(one.acked),
        sequences=_numbered(one.sequences),
        requests=frozenset(map(_request_to_tla, one.requests)),
    )


def _partition_to_tla(one: Partition) -> Value:
    return _record(
        epoch=one.epoch,
        sequence=one.sequence,
        coordinatorEpoch=one.coordinator_epoch,
        open=one.is_open,
        records=tuple(
            _record(
                transaction=record.transaction,
                under=record.under,
                fate=FATES[record.fate],
                endedBy=record.ended_by,
                late=record.late,
            )
            for record in one.records
        ),
        verified=frozenset(map(_request_to_tla, one.verified)),
    )


def _marker_to_tla(marker: Marker) -> Value:
    number, epoch, coordinator_epoch, commit, partitions = marker
    return _record(
        number=number,
        epoch=epoch,
        coordinatorEpoch=coordinator_epoch,
        commit=bool(commit),
        partitions=_set(partitions),
    )


# ---- from TLA+


def state_from_tla(variables: Mapping[str, Any]) -> TransactionState:
    """The state in which Transaction.tla's variables have these values."""
    tail = variables["tail"]
    return TransactionState(
        Journal(
            variables["elected"],
            _transaction_from(variables["value"]),
            _transaction_from(tail[0]) if tail else (),
        ),
        tuple(_held_from(one) for one in _in_order(variables["held"])),
        tuple(_producer_from(one) for one in _in_order(variables["producer"])),
        tuple(_partition_from(one) for one in _in_order(variables["partition"])),
        tuple(sorted(_marker_from(one) for one in variables["markers"])),
        Ghost(
            asked=_bits(variables["asked"]),
            acknowledged=_bits(variables["acknowledged"]),
            committed=_bits(variables["committed"]),
            aborted=_bits(variables["aborted"]),
            answered=variables["answered"],
        ),
    )


def _in_order(values: Any) -> list[Any]:
    """A function on 0..n-1 as a list."""
    return [values[number] for number in range(len(values))]


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _transaction_from(one: Any) -> Transaction:
    phase = PHASES.index(one["phase"])
    return Transaction(phase, one["epoch"], _bits(one["partitions"]), one["number"], one["owner"])


def _held_from(one: Any) -> Coordinator | tuple[()]:
    if not one:
        return ()
    (held,) = one
    return Coordinator(_transaction_from(held["value"]), _bits(held["marked"]), held["sending"])


def _request_from(one: Any) -> Request:
    return NUMBERS[one["kind"]], one["transaction"], one["epoch"], one["what"], one["sequence"]


def _producer_from(one: Any) -> Producer:
    return Producer(
        PRODUCER_STATES.index(one["state"]),
        one["epoch"],
        one["transaction"],
        _bits(one["added"]),
        _bits(one["sent"]),
        _bits(one["acked"]),
        tuple(_in_order(one["sequences"])),
        tuple(sorted(map(_request_from, one["requests"]))),
    )


def _partition_from(one: Any) -> Partition:
    return Partition(
        one["epoch"],
        one["sequence"],
        one["coordinatorEpoch"],
        one["open"],
        tuple(
            Record(
                record["transaction"],
                record["under"],
                FATES.index(record["fate"]),
                record["endedBy"],
                record["late"],
            )
            for record in one["records"]
        ),
        tuple(sorted(map(_request_from, one["verified"]))),
    )


def _marker_from(one: Any) -> Marker:
    return (
        one["number"],
        one["epoch"],
        one["coordinatorEpoch"],
        int(one["commit"]),
        _bits(one["partitions"]),
    )

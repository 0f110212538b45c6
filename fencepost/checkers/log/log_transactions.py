"""Transactions in the log check: the parts of each, its outcome, and times before which its end was not
requested.

Owns membership, outcomes (fates), and the bounds on ends. Must not know the rules of the check. A row is part
of a transaction (a `txn` row of its process and session) if the transaction's times contain its own.

A transaction of unknown outcome has committed if a read_committed read showed one of its records. For content
a weaker condition suffices. If a read showed one that did not ask for uncommitted records and is not part of
the transaction, the offsets in the acknowledgements of its appends count. A read without a known isolation is
trusted, as in Jepsen's Kafka workload: either the transaction has committed, or that read was wrong.

A client asks for the end once its parts were sent and those that succeeded were answered. A part that
failed, or was never answered, bounds the end by its invocation alone; so does a commit of offsets, which
succeeds with its transaction. Each moment keeps the clock that
stamped it. An abort bounds nothing: a coordinator aborts on its own, too.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from fencepost.checkers.operation_columns import (
    FUNCTIONS,
    NEVER,
    NONE,
    OUTCOMES,
    Array,
    OperationColumns,
    incarnations,
)
from fencepost.checkers.sorting import order_by
from fencepost.checkers.statements import READ_COMMITTED, READ_UNCOMMITTED
from fencepost.traces.operations import Function, Outcome

_APPEND, _COMMIT, _POLL, _TXN = (
    FUNCTIONS.index(f) for f in (Function.APPEND, Function.COMMIT, Function.POLL, Function.TXN)
)
_OK, _FAIL = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.FAIL)
LONG_AGO = int(np.iinfo(np.int64).min)


class Fate(IntEnum):
    """The outcome of an append's transaction. PLAIN: it has none; OPEN: not known."""

    PLAIN = 0
    OPEN = 1
    COMMITTED = 2
    ABORTED = 3


class Ends(NamedTuple):
    """Lower bounds on the times at which the ends of committed transactions were requested, one per
    transaction and clock."""

    # For each append its transaction (-1: none that committed).
    of: Array
    # Transaction t has the bounds [start[t], start[t + 1]) of `time` and `clock`.
    start: Array
    time: Array
    clock: Array


class Transactions(NamedTuple):
    """The transactions by operation."""

    # The row of its transaction (-1: none).
    of: Array
    # For rows of transactions, whether it is known to have committed.
    committed: Array
    # For rows of transactions, whether the acknowledged offsets of its appends count although its outcome is
    # unknown.
    proven: Array


class Fates(NamedTuple):
    """The fates by append."""

    # A Fate.
    fate: Array
    # Op id of the txn row (-1 none).
    transaction: Array
    # A time before which its end was not requested (known for committed ones only).
    ended: Array
    # The same, by clock.
    ends: Ends


def no_ends(appends: int) -> Ends:
    """The bounds where no transaction has committed. appends: how many."""
    empty = np.empty(0, np.int64)
    return Ends(of=np.full(appends, NONE), start=np.zeros(1, np.int64), time=empty, clock=empty)


def transactions_of(operations: OperationColumns) -> Transactions | None:
    """The transactions of these rows; None if there are none."""
    txn = np.flatnonzero(operations.function == _TXN)
    if not len(txn):
        return None
    of = _containing(operations, txn)
    committed = np.zeros(len(of), np.bool_)
    committed[txn] = operations.outcome[txn] == _OK
    shown, proven = shown_transactions(operations, of)
    return Transactions(of=of, committed=committed | shown, proven=proven)


def told_for_good(operations: OperationColumns, transactions: Transactions, appends: Array) -> Array:
    """Which of these appends have an acknowledged offset that counts although their transaction was not
    acknowledged."""
    of = transactions.of[appends]
    kept: Array = (of >= 0) & transactions.proven[of] & (operations.outcome[appends] != _FAIL)
    return kept & (operations.offset[appends] >= 0)


def fates_of(operations: OperationColumns, transactions: Transactions | None, appends: Array) -> Fates:
    """The outcome of each append's transaction.

    Args:
        operations: the rows.
        transactions: their transactions; None if there are none.
        appends: rows of the appends.

    Returns:
        one entry per append.
    """
    long_ago, empty = np.full(len(appends), LONG_AGO), np.empty(0, np.int64)
    if transactions is None:
        plain, none = np.full(len(appends), Fate.PLAIN, np.int8), np.full(len(appends), NONE)
        return Fates(fate=plain, transaction=none, ended=long_ago, ends=no_ends(len(appends)))
    mine = transactions.of[appends]
    known = mine >= 0
    fate = np.full(len(appends), Fate.PLAIN, np.int8)
    fate[known] = Fate.OPEN
    fate[known & (operations.outcome[mine] == _FAIL)] = Fate.ABORTED
    committed = known & transactions.committed[mine]
    fate[committed] = Fate.COMMITTED
    heads, start, time, clock = _ends(operations, transactions)
    number = np.full(len(operations.op_id), NONE)
    number[heads] = np.arange(len(heads))
    latest = np.maximum.reduceat(time, start[:-1]) if len(heads) else empty
    ended = long_ago
    ended[committed] = latest[number[mine[committed]]]
    return Fates(
        fate=fate,
        transaction=np.where(known, operations.op_id[mine], NONE),
        ended=ended,
        ends=Ends(of=np.where(committed, number[mine], NONE), start=start, time=time, clock=clock),
    )


def _ends(operations: OperationColumns, transactions: Transactions) -> tuple[Array, Array, Array, Array]:
    """For each committed transaction: its row, and as in Ends, for each clock the latest time before which
    its end was not requested."""
    of = transactions.of
    heads = np.flatnonzero(transactions.committed)
    inside = np.flatnonzero((of >= 0) & (operations.function != _TXN))
    inside = inside[transactions.committed[of[inside]]]
    heard = inside[
        (operations.outcome[inside] == _OK)
        & (operations.completion_time[inside] != NEVER)
        & (operations.function[inside] != _COMMIT)
    ]
    row = np.concatenate((heads, inside, heard))
    owner = np.concatenate((heads, of[inside], of[heard]))
    time = np.concatenate(
        (operations.invoke_time[heads], operations.invoke_time[inside], operations.completion_time[heard])
    )
    clock = operations.clock_id[row]
    order = np.lexsort((time, clock, owner))
    owner, time, clock = owner[order], time[order], clock[order]
    last = np.ones(len(owner), np.bool_)
    last[:-1] = (owner[1:] != owner[:-1]) | (clock[1:] != clock[:-1])
    owner, time, clock = owner[last], time[last], clock[last]
    return heads, np.searchsorted(owner, np.append(heads, len(of))), time, clock


def shown_transactions(operations: OperationColumns, of: Array) -> tuple[Array, Array]:
    """Which rows are transactions of unknown outcome that reads showed.

    Returns two masks: those with a record in a read_committed read; and those with a record in a read that is
    not part of the transaction and did not ask for uncommitted records. of: for each row, the row of its
    transaction (-1: none).
    """
    records = operations.records
    committed, proven = np.zeros(len(of), np.bool_), np.zeros(len(of), np.bool_)
    unique = np.array([trace.unique_values for trace in operations.traces], np.bool_)
    open_ = (operations.outcome != _OK) & (operations.outcome != _FAIL) & unique[operations.trace]
    sent = (operations.function == _APPEND) & (operations.outcome != _FAIL) & (of >= 0)
    sent &= open_[of]
    if not sent.any() or operations.statements is None:
        return committed, proven
    of_record = np.repeat(np.arange(len(of)), np.diff(records.start))
    wanted = np.flatnonzero(sent[of_record])
    answered = (operations.function == _POLL) & (operations.outcome == _OK)
    answered &= operations.completion_time != NEVER
    shown = np.flatnonzero(answered[of_record] & np.isin(records.value, records.value[wanted]))

    def names(flat: Array) -> list[tuple[int, int, int, int]]:
        trace = operations.trace[of_record[flat]]
        columns = (trace, records.topic[flat], records.partition[flat], records.value[flat])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    owner = dict(zip(names(wanted), of[of_record[wanted]].tolist(), strict=True))
    for name, row in zip(names(shown), of_record[shown].tolist(), strict=True):
        txn = owner.get(name)
        if txn is not None:
            isolation = operations.statements.isolation[row]
            committed[txn] |= isolation == READ_COMMITTED
            proven[txn] |= isolation != READ_UNCOMMITTED and of[row] != txn
    return committed, proven | committed


def _containing(operations: OperationColumns, txn: Array) -> Array:
    """For each operation, the row of the transaction of its process and session that contains it; -1 if there
    is none."""
    process = incarnations(operations)
    begins = np.zeros(len(process), np.bool_)
    begins[txn] = True
    order = order_by((~begins, operations.invoke_time, process))
    latest = np.maximum.accumulate(np.where(begins[order], np.arange(len(order)), -1))
    of = np.full(len(process), NONE)
    of[order] = np.where(latest >= 0, order[latest], NONE)
    inside = (
        (of >= 0)
        & (process[of] == process)
        & (operations.invoke_time <= operations.completion_time[of])
        & (
            (operations.completion_time == NEVER)
            | (operations.completion_time <= operations.completion_time[of])
        )
    )
    return np.where(inside, of, NONE)

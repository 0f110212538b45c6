"""What few logs need beside appends and reads: log starts, last stable offsets, keys and transactions, in the rows of both relations.

Owns which logs are special, that is, which have any of it; for all others these arrays stay empty and nothing is spent on them. Must not
know the rules of judgement. An append belongs to the transaction (a `txn` row of its process and session) whose times contain it.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from fencepost.checkers.operation_columns import FUNCTIONS, NEVER, NONE, OUTCOMES, Array, OperationColumns
from fencepost.checkers.statements import READ_COMMITTED, Statements
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Trace

_TXN = FUNCTIONS.index(Function.TXN)
_OK, _FAIL = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.FAIL)
LONG_AGO = int(np.iinfo(np.int64).min)


class Fate(IntEnum):
    """What became of an append's transaction. PLAIN: it has none; OPEN: nobody knows."""

    PLAIN = 0
    OPEN = 1
    COMMITTED = 2
    ABORTED = 3


class Extras(NamedTuple):
    """Per group. special: any of this concerns it; retention, compacted: as claimed; transactional: some append is part of a transaction;
    licence: below this offset retention may have removed records (the highest log start that was claimed anywhere).
    Per append, if any group is special. key: -1 none, else below `keys`; tombstone; fate: a Fate; transaction: op id of the txn row (-1 none);
    ended: its end was not asked for before this moment (known of committed ones only).
    Per read, if any group is special. log_start, stable: claimed (-1: not said); isolation: index into ISOLATIONS."""

    special: Array
    retention: Array
    compacted: Array
    transactional: Array
    licence: Array
    keys: int
    key: Array
    tombstone: Array
    fate: Array
    transaction: Array
    ended: Array
    log_start: Array
    stable: Array
    isolation: Array


PER_APPEND = ("key", "tombstone", "fate", "transaction", "ended")
PER_READ = ("log_start", "stable", "isolation")


def no_extras(groups: int) -> Extras:
    """Of logs without anything special."""
    return _sealed(
        Extras(
            **{
                name: np.zeros(groups, np.bool_)
                for name in ("special", "retention", "compacted", "transactional")
            },
            licence=np.zeros(groups, np.int64),
            keys=0,
            key=np.empty(0, np.int64),
            tombstone=np.empty(0, np.bool_),
            fate=np.empty(0, np.int8),
            transaction=np.empty(0, np.int64),
            ended=np.empty(0, np.int64),
            log_start=np.empty(0, np.int64),
            stable=np.empty(0, np.int64),
            isolation=np.empty(0, np.int8),
        )
    )


def _sealed(extras: Extras) -> Extras:
    """Contiguous and read-only, so that kernels compile once."""
    values = {}
    for name, value in extras._asdict().items():
        if isinstance(value, np.ndarray):
            value = np.ascontiguousarray(value).view()
            value.flags.writeable = False
        values[name] = value
    return Extras(**values)


class Rows(NamedTuple):
    """Where the rows of both relations come from. append, read: their operation; of_append, of_read: their group; log_start, stable: what each read claims;
    claimed: group of each operation or position that may state a log start (-1: of no group), log_started: what it states."""

    append: Array
    read: Array
    of_append: Array
    of_read: Array
    log_start: Array
    stable: Array
    claimed: Array
    log_started: Array


def extras_of(
    operations: OperationColumns, said: Statements, rows: Rows, trace: Array, topic: Array
) -> Extras:
    """The extras of groups of these traces and topics. Raises nothing."""
    groups = len(trace)
    claims = [t.claims for t in operations.traces]
    retention = np.array([claim.retention for claim in claims], np.bool_)[trace]
    compacted = _compacted(operations.traces, operations.topics, trace, topic)
    licence = np.zeros(groups, np.int64)
    counts = (rows.claimed >= 0) & (rows.log_started >= 0)
    np.maximum.at(licence, rows.claimed[counts], rows.log_started[counts])
    licence[~retention] = 0
    fate, transaction, ended = _transactions(operations, rows.append)
    transactional = np.bincount(rows.of_append, weights=fate != Fate.PLAIN, minlength=groups) > 0
    isolation = said.isolation[rows.read]
    bounded = (isolation == READ_COMMITTED) | (rows.stable >= 0)
    stable = np.bincount(rows.of_read, weights=bounded, minlength=groups) > 0
    return _sealed(
        Extras(
            special=compacted | transactional | stable | (licence > 0),
            retention=retention,
            compacted=compacted,
            transactional=transactional,
            licence=licence,
            keys=said.keys,
            key=said.key[rows.append],
            tombstone=said.tombstone[rows.append],
            fate=fate,
            transaction=transaction,
            ended=ended,
            log_start=np.where(retention[rows.of_read], rows.log_start, NONE),
            stable=rows.stable,
            isolation=isolation,
        )
    )


def _compacted(traces: tuple[Trace, ...], topics: tuple[str, ...], trace: Array, topic: Array) -> Array:
    """Which groups' topics their trace claims to be compacted."""
    codes = {name: code for code, name in enumerate(topics)}
    pairs = [
        index * len(topics) + codes[name]
        for index, t in enumerate(traces)
        for name in t.claims.compacted
        if name in codes
    ]
    return np.isin(trace * len(topics) + topic, np.array(pairs, np.int64))


def _transactions(operations: OperationColumns, appends: Array) -> tuple[Array, Array, Array]:
    """Fate, transaction and end of each append."""
    fate = np.full(len(appends), Fate.PLAIN, np.int8)
    transaction, ended = np.full(len(appends), NONE), np.full(len(appends), LONG_AGO)
    txn = np.flatnonzero(operations.function == _TXN)
    if not len(txn):
        return fate, transaction, ended
    of = _containing(operations, txn)
    inside = np.flatnonzero((of >= 0) & (operations.function != _TXN))
    last = operations.invoke_time.copy()
    heard = inside[
        (operations.outcome[inside] == _OK) & (operations.completion_time[inside] != NEVER)
    ]  # a commit is asked for once its parts were answered
    np.maximum.at(last, of[inside], operations.invoke_time[inside])
    np.maximum.at(last, of[heard], operations.completion_time[heard])
    mine = of[appends]
    known = mine >= 0
    outcome = operations.outcome[mine]
    fate[known] = Fate.OPEN
    fate[known & (outcome == _OK)] = Fate.COMMITTED
    fate[known & (outcome == _FAIL)] = Fate.ABORTED
    transaction[known] = operations.op_id[mine[known]]
    committed = fate == Fate.COMMITTED
    ended[committed] = last[mine[committed]]
    return fate, transaction, ended


def _containing(operations: OperationColumns, txn: Array) -> Array:
    """For each operation, the row of the transaction of its process and session that contains it; -1 where there is none."""
    process = np.unique(
        np.array((operations.trace, operations.process, operations.session)), axis=1, return_inverse=True
    )[1].reshape(-1)
    begins = np.zeros(len(process), np.bool_)
    begins[txn] = True
    order = np.lexsort((~begins, operations.invoke_time, process))
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

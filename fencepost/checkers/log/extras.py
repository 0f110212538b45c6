"""Columns that only few logs need: log starts, last stable offsets, keys and transactions, in the rows of
both relations.

Owns which logs are special, that is, have any of these. For all others these arrays are empty and cost
nothing. Must not know the rules of the check.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.log.log_transactions import LONG_AGO as LONG_AGO
from fencepost.checkers.log.log_transactions import Fate as Fate
from fencepost.checkers.log.log_transactions import Fates
from fencepost.checkers.operation_columns import NONE, Array, OperationColumns
from fencepost.checkers.statements import READ_COMMITTED, Statements
from fencepost.traces.trace import Trace


class Extras(NamedTuple):
    """The columns for special logs."""

    # For each group whether any of these columns matters.
    special: Array
    # For each group whether retention is claimed.
    retention: Array
    # For each group whether compaction is claimed.
    compacted: Array
    # For each group whether some append is part of a transaction.
    transactional: Array
    # For each group the offset below which retention may have removed records: the highest claimed log start.
    licence: Array
    # The number of keys.
    keys: int
    # For each append its key, below `keys`; -1 if none. Empty if no group is special, like all columns of
    # appends and reads.
    key: Array
    # For each append whether it deletes its key.
    tombstone: Array
    # For each append a Fate.
    fate: Array
    # For each append the op id of its txn row (-1: none).
    transaction: Array
    # For each append a time before which the end of its transaction was not requested, by any clock; known
    # for committed transactions only.
    ended: Array
    # For each read the log start offset that it was shown (-1: none).
    log_start: Array
    # For each read the last stable offset that it was shown (-1: none).
    stable: Array
    # For each read an index into ISOLATIONS.
    isolation: Array


PER_APPEND = ("key", "tombstone", "fate", "transaction", "ended")
PER_READ = ("log_start", "stable", "isolation")


def no_extras(groups: int) -> Extras:
    """The extras of logs without anything special."""
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
    """The operations and groups of the rows of both relations."""

    # The operation of each append.
    append: Array
    # The operation of each read.
    read: Array
    # The group of each append.
    of_append: Array
    # The group of each read.
    of_read: Array
    # The log start offset that each read was shown.
    log_start: Array
    # The last stable offset that each read was shown.
    stable: Array
    # The group of each operation or position that may report a log start (-1: of no group).
    claimed: Array
    # The log start that it reports.
    log_started: Array


def extras_of(
    operations: OperationColumns, said: Statements, rows: Rows, fates: Fates, trace: Array, topic: Array
) -> Extras:
    """The extras of groups of these traces and topics. fates: of the appends."""
    groups = len(trace)
    claims = [t.claims for t in operations.traces]
    retention = np.array([claim.retention for claim in claims], np.bool_)[trace]
    compacted = _compacted(operations.traces, operations.topics, trace, topic)
    licence = np.zeros(groups, np.int64)
    counts = (rows.claimed >= 0) & (rows.log_started >= 0)
    np.maximum.at(licence, rows.claimed[counts], rows.log_started[counts])
    licence[~retention] = 0
    transactional = np.bincount(rows.of_append, weights=fates.fate != Fate.PLAIN, minlength=groups) > 0
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
            fate=fates.fate,
            transaction=fates.transaction,
            ended=fates.ended,
            log_start=np.where(retention[rows.of_read], rows.log_start, NONE),
            stable=rows.stable,
            isolation=isolation,
        )
    )


def _compacted(traces: tuple[Trace, ...], topics: tuple[str, ...], trace: Array, topic: Array) -> Array:
    """Which groups have a topic that their trace claims to be compacted."""
    codes = {name: code for code, name in enumerate(topics)}
    pairs = [
        index * len(topics) + codes[name]
        for index, t in enumerate(traces)
        for name in t.claims.compacted
        if name in codes
    ]
    return np.isin(trace * len(topics) + topic, np.array(pairs, np.int64))


def plain_extras(appends: int, reads: int) -> Extras:
    """The extras of one log without anything special.

    Args:
        appends: how many appends it has.
        reads: how many reads.

    Returns:
        default values, one for each append and read.
    """
    no = np.array(False)
    return Extras(
        special=no,
        retention=no,
        compacted=no,
        transactional=no,
        licence=np.array(0),
        keys=0,
        key=np.full(appends, NONE),
        tombstone=np.zeros(appends, np.bool_),
        fate=np.full(appends, Fate.PLAIN, np.int8),
        transaction=np.full(appends, NONE),
        ended=np.full(appends, LONG_AGO),
        log_start=np.full(reads, NONE),
        stable=np.full(reads, NONE),
        isolation=np.full(reads, NONE, np.int8),
    )

"""What few logs need beside appends and reads: log starts, last stable offsets, keys and transactions,
in the rows of both relations.

Owns which logs are special, that is, which have any of it; for all others these arrays stay empty and
nothing is spent on them. Must not know the rules of judgement.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.log.transactions import LONG_AGO as LONG_AGO
from fencepost.checkers.log.transactions import Fate as Fate
from fencepost.checkers.log.transactions import Fates
from fencepost.checkers.operation_columns import NONE, Array, OperationColumns
from fencepost.checkers.statements import READ_COMMITTED, Statements
from fencepost.traces.trace import Trace


class Extras(NamedTuple):
    """Per group. special: any of this concerns it; retention, compacted: as claimed; transactional:
    some append is part of a transaction; licence: below this offset retention may have removed records
    (the highest log start that was claimed anywhere). Per append, if any group is special. key: -1
    none, else below `keys`; tombstone; fate: a Fate; transaction: op id of the txn row (-1 none);
    ended: its end was not asked for before this moment, whichever clock stamped it (known of committed
    ones only). Per read, if any group is special. log_start, stable: claimed (-1: not said); isolation:
    index into ISOLATIONS."""

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
    """Where the rows of both relations come from. append, read: their operation; of_append, of_read:
    their group; log_start, stable: what each read claims; claimed: group of each operation or position
    that may state a log start (-1: of no group), log_started: what it states."""

    append: Array
    read: Array
    of_append: Array
    of_read: Array
    log_start: Array
    stable: Array
    claimed: Array
    log_started: Array


def extras_of(
    operations: OperationColumns, said: Statements, rows: Rows, fates: Fates, trace: Array, topic: Array
) -> Extras:
    """The extras of groups of these traces and topics. fates: of the appends. Raises nothing."""
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
    """Which groups' topics their trace claims to be compacted."""
    codes = {name: code for code, name in enumerate(topics)}
    pairs = [
        index * len(topics) + codes[name]
        for index, t in enumerate(traces)
        for name in t.claims.compacted
        if name in codes
    ]
    return np.isin(trace * len(topics) + topic, np.array(pairs, np.int64))

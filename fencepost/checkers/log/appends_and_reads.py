"""The relations of the log check, appends and reads, stacked by group. A group is one partition's log in one
trace.

Owns the conversion of operations into appends and reads of a log (one read per partition of a poll), and the
detection of contradictions within a trace. Must not know the rules of the check. Rows are sorted by group and
keep the order of the operations within one. The relations are named tuples of read-only arrays, because a
compiled kernel accepts them as a whole.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from attrs import frozen

from fencepost.checkers.arrow_arrays import slice_starts
from fencepost.checkers.log.extras import Extras, Rows, extras_of, no_extras
from fencepost.checkers.log.log_transactions import (
    Ends,
    Transactions,
    fates_of,
    told_for_good,
    transactions_of,
)
from fencepost.checkers.log.parts import Parts, gather, read_parts
from fencepost.checkers.operation_columns import (
    FUNCTIONS,
    MOST_PARTITION,
    NEVER,
    NONE,
    OUTCOMES,
    Array,
    OperationColumns,
    is_place,
)
from fencepost.checkers.sorting import heads_of, numbered, packed, place_of, stable_order
from fencepost.traces.operations import ACKS_ALL, ACKS_LEADER, Function, Outcome
from fencepost.traces.trace import Trace

_APPEND, _POLL, _LIST = (FUNCTIONS.index(f) for f in (Function.APPEND, Function.POLL, Function.LIST_OFFSETS))
_OF_GROUPS = [FUNCTIONS.index(f) for f in (Function.COMMIT, Function.FETCH_COMMITTED, Function.JOIN)]
_OK, _FAIL = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.FAIL)


class Kind(IntEnum):
    """What an append's outcome proves.

    FIRM: acknowledged with acks=all; from then on the records are at their offset. The same holds for appends
    with an offset in a transaction of unknown outcome that is known to have committed; that gives no time
    bound, so their completion is NEVER. SOFT: the records may or may not be in the log (unknown outcome, or
    acks=1 or 0, which a failover can undo). FAILED: the records were never written.
    """

    FIRM = 0
    SOFT = 1
    FAILED = 2


NOT_ACKNOWLEDGED, ALL, LEADER, NOBODY = range(4)
"""Which side acknowledged an append: none (it is unknown or failed), all in-sync replicas (acks=all), the
leader (acks=1), or only the client itself (acks=0)."""


class Appends(NamedTuple):
    """One row per append."""

    # Group g has the rows [first[g], first[g + 1]).
    first: Array
    # The operation.
    op_id: Array
    # A Kind.
    kind: Array
    # Invocation time in nanoseconds.
    invoke: Array
    # Completion time in nanoseconds; NEVER if there is none.
    completion: Array
    # The clock of the times.
    clock: Array
    # The offset of the first record; -1 if it is not known.
    base: Array
    # The leader epoch of the acknowledgement; -1 if it is not known.
    epoch: Array
    # Append i has the values [start[i], start[i + 1]) of `value`.
    start: Array
    # Value ids, flat.
    value: Array


class Reads(NamedTuple):
    """One row per answered read of one log."""

    # Group g has the rows [first[g], first[g + 1]).
    first: Array
    # The operation.
    op_id: Array
    # The process of the client.
    process: Array
    # The session of the process.
    session: Array
    # Invocation time in nanoseconds.
    invoke: Array
    # Completion time in nanoseconds.
    completion: Array
    # The clock of the times.
    clock: Array
    # Whether the operation claims real-time consistency.
    strong: Array
    # The offset that the client asked for; -1 if not known.
    position: Array
    # The log end that the client was shown; -1 if none.
    end: Array
    # The leader epoch of the response; -1 if not known.
    epoch: Array
    # Read i has the records [start[i], start[i + 1]) of the next three arrays.
    start: Array
    # Offsets of the records, flat.
    offset: Array
    # Value ids of the records, flat.
    value: Array
    # Leader epochs of the records, flat; -1 if not known.
    record_epoch: Array


@frozen(kw_only=True, eq=False)
class LogColumns:
    """The logs of some traces. Groups are in the order of trace, topic, partition."""

    # The traces.
    traces: tuple[Trace, ...]
    # The names of topics, sorted.
    topics: tuple[str, ...]
    # For each group the index of its trace.
    trace: Array
    # For each group the index of its topic.
    topic: Array
    # For each group its partition.
    partition: Array
    # The appends of all groups.
    appends: Appends
    # The reads of all groups.
    reads: Reads
    # Columns that only few logs need.
    extras: Extras
    # Time bounds on the ends of transactions, by append.
    ends: Ends
    # For each append which side acknowledged it: NOT_ACKNOWLEDGED to NOBODY.
    acknowledged: Array
    # For each trace whether any operation is about logs.
    asked: Array
    # How a trace contradicts itself, by the index of the trace: nothing follows from it.
    broken: dict[int, str]
    # Operations that say too little, by the index of the trace. They are left out, or taken for unknown; the
    # others are judged.
    doubtful: dict[int, str]

    @property
    def groups(self) -> int:
        """The number of logs."""
        return len(self.trace)


def log_columns(operations: OperationColumns) -> LogColumns:
    """The appends and reads of all logs that `operations` use."""
    topic, partition = _own_partition(operations)
    doubts = _doubts(operations, topic)
    appends = np.flatnonzero(
        (operations.function == _APPEND) & (np.diff(operations.records.start) > 0) & (topic >= 0)
    )
    answered = (operations.outcome == _OK) & (operations.completion_time != NEVER)
    reads = np.flatnonzero(
        ((operations.function == _POLL) | (operations.function == _LIST))
        & answered
        & ~np.logical_or.reduce([wrong for wrong, _ in doubts])
    )
    parts = read_parts(operations, reads, topic, partition)
    started = _log_starts(operations, topic, partition)
    place = (
        operations.trace[np.concatenate((appends, parts.row, started.row))],
        np.concatenate((topic[appends], parts.topic, started.topic)),
        np.concatenate((partition[appends], parts.partition, started.partition)),
    )
    codes = packed(place)
    used = len(appends) + len(parts.row)
    keys, group = numbered(codes[:used])
    of_append, of_read = group[: len(appends)], group[len(appends) :]
    head = heads_of(group, len(keys))
    trace_of, topic_of, partition_of = (column[head] for column in place)
    extras, transactions = no_extras(len(keys)), transactions_of(operations)
    append_order = _group_order(of_append, len(keys))[0]
    fates = fates_of(operations, transactions, appends[append_order])
    if operations.statements is not None:
        read_order = _group_order(of_read, len(keys))[0]
        rows = Rows(
            append=appends[append_order],
            read=parts.row[read_order],
            of_append=of_append[append_order],
            of_read=of_read[read_order],
            log_start=parts.log_start[read_order],
            stable=parts.stable[read_order],
            claimed=place_of(keys, codes[used:]),
            log_started=started.offset,
        )
        extras = extras_of(operations, operations.statements, rows, fates, trace_of, topic_of)
    return LogColumns(
        traces=operations.traces,
        topics=operations.topics,
        trace=trace_of,
        topic=topic_of,
        partition=partition_of,
        appends=_appends(operations, appends, of_append, len(keys), transactions),
        reads=_reads(operations, parts, of_read, len(keys)),
        extras=extras,
        ends=fates.ends,
        acknowledged=_acknowledged(operations, appends[append_order]),
        asked=_asked(operations),
        broken=_first_of_each_trace(operations, _contradictions(operations)),
        doubtful=_first_of_each_trace(operations, doubts),
    )


def _acknowledged(operations: OperationColumns, appends: Array) -> Array:
    acks = operations.acks[appends]
    who = np.select((acks == ACKS_ALL, acks == ACKS_LEADER), (ALL, LEADER), NOBODY)
    return np.where(operations.outcome[appends] == _OK, who, NOT_ACKNOWLEDGED).astype(np.int8)


def _asked(operations: OperationColumns) -> Array:
    """Which traces have operations other than those of consumer groups."""
    plain = ~np.isin(operations.function, _OF_GROUPS)
    asked: Array = np.bincount(operations.trace[plain], minlength=len(operations.traces)) > 0
    return asked


class _Started(NamedTuple):
    """Log starts that clients were shown."""

    # The operation.
    row: Array
    # The index of the topic.
    topic: Array
    # The partition.
    partition: Array
    # The log start.
    offset: Array


def _log_starts(operations: OperationColumns, topic: Array, partition: Array) -> _Started:
    """Every log start in an answered append, poll or list_offsets, whatever its outcome. topic, partition: of
    each operation."""
    said = operations.statements
    if said is None:
        return _Started(*[np.empty(0, np.int64)] * 4)
    positions, rows = operations.positions, np.arange(len(topic))
    earliest = said.earliest & (operations.function == _LIST) & (said.log_start_offset < 0)
    row = np.concatenate((rows, np.repeat(rows, np.diff(positions.start))))
    topics = np.concatenate((topic, positions.topic))
    partitions = np.concatenate((partition, positions.partition))
    started = np.concatenate(
        (np.where(earliest, operations.offset, said.log_start_offset), said.position_log_start_offset)
    )
    heard = np.isin(operations.function, (_APPEND, _POLL, _LIST)) & (operations.completion_time != NEVER)
    known = np.flatnonzero(heard[row] & (started >= 0) & is_place(topics, partitions))
    return _Started(row[known], topics[known], partitions[known], started[known])


def _own_partition(operations: OperationColumns) -> tuple[Array, Array]:
    """The partition of each operation: the one that it names, or else that of its first record; topic -1 if
    that is none."""
    records = operations.records
    topic, partition = operations.topic, operations.partition
    placed = is_place(topic, partition)
    if placed.all():
        return topic, partition
    unnamed = ~placed & (np.diff(records.start) > 0)
    first = records.start[:-1][unnamed]
    topic, partition = topic.copy(), partition.copy()
    topic[unnamed], partition[unnamed] = records.topic[first], records.partition[first]
    return np.where(is_place(topic, partition), topic, NONE), partition


def _group_order(group: Array, groups: int) -> tuple[Array | slice, Array]:
    """An order of rows that makes groups contiguous (a slice if they already are), and where each group
    begins."""
    first = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(group, minlength=groups), out=first[1:])
    if not len(group) or (group[1:] >= group[:-1]).all():
        return slice(None), first
    return np.argsort(group, kind="stable"), first


def _sealed(array: Array) -> Array:
    """A contiguous, read-only view. Every source then has the same array type, so kernels compile once."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _appends(
    operations: OperationColumns, rows: Array, group: Array, groups: int, transactions: Transactions | None
) -> Appends:
    order, first = _group_order(group, groups)
    rows = rows[order]
    outcome, acks = operations.outcome[rows], operations.acks[rows]
    kind = np.where(outcome == _FAIL, Kind.FAILED, Kind.SOFT)
    completion = operations.completion_time[rows]
    if transactions is not None:
        known_base = told_for_good(operations, transactions, rows) & ~((outcome == _OK) & (acks == ACKS_ALL))
        kind[known_base] = Kind.FIRM
        completion = np.where(known_base, NEVER, completion)
    kind[(outcome == _OK) & (acks == ACKS_ALL) & (operations.offset[rows] >= 0)] = Kind.FIRM
    start, records = gather(operations.records.start, rows)
    return Appends(*map(_sealed, Appends(
        first=first,
        op_id=operations.op_id[rows],
        kind=kind.astype(np.int8),
        invoke=operations.invoke_time[rows],
        completion=completion,
        clock=operations.clock_id[rows],
        base=operations.offset[rows],
        epoch=operations.leader_epoch[rows],
        start=start,
        value=operations.records.value[records],
    )))  # fmt: skip


def _reads(operations: OperationColumns, parts: Parts, group: Array, groups: int) -> Reads:
    order, first = _group_order(group, groups)
    row, record, start = parts.row[order], parts.record, parts.start
    if not isinstance(order, slice):
        start, moved = gather(start, order)
        record = np.arange(len(operations.records.value))[record][moved]
    records = operations.records
    return Reads(*map(_sealed, Reads(
        first=first,
        op_id=operations.op_id[row],
        process=operations.process[row],
        session=operations.session[row],
        invoke=operations.invoke_time[row],
        completion=operations.completion_time[row],
        clock=operations.clock_id[row],
        strong=operations.strong[row],
        position=parts.position[order],
        end=parts.end[order],
        epoch=parts.epoch[order],
        start=start,
        offset=records.offset[record],
        value=records.value[record],
        record_epoch=records.leader_epoch[record].astype(np.int32),
    )))  # fmt: skip


Wrong = tuple[Array, str]
"""Which operations say something wrong, and what."""


def _first_of_each_trace(operations: OperationColumns, many: Iterable[Wrong]) -> dict[int, str]:
    """The first wrong operation of each trace, in words, by the index of the trace."""
    found: dict[int, str] = {}
    for wrong, what in many:
        for row in np.flatnonzero(wrong).tolist():
            found.setdefault(int(operations.trace[row]), f"operation {operations.op_id[row]} {what}")
    return found


def _contradictions(operations: OperationColumns) -> tuple[Wrong, ...]:
    """Operations after which no time or certificate of their trace means anything."""
    ended = operations.completion_time
    return (
        (ended < operations.invoke_time, "completed before it was invoked"),
        ((operations.outcome == _OK) & (ended == NEVER), "is ok but has no completion time"),
        (_repeated(operations.trace, operations.op_id), "shares its op id with another operation"),
    )


def _doubts(operations: OperationColumns, topic: Array) -> tuple[Wrong, ...]:
    """Operations that do not say where their records are: acknowledged appends first, then reads. topic: of
    each operation, -1 if it names no log."""
    ok, records = operations.outcome == _OK, operations.records
    sized = np.diff(records.start) > 0
    firm = ok & (operations.function == _APPEND) & (operations.acks == ACKS_ALL) & sized
    reading = ok & ((operations.function == _POLL) | (operations.function == _LIST))
    nowhere = _holding(records.start, ~is_place(records.topic, records.partition))
    return (
        (firm & (operations.offset < 0), "is an append with acks=all and ok but has no offset"),
        (
            firm & (topic < 0),
            f"is an append with acks=all and ok to no partition from 0 to {MOST_PARTITION - 1}",
        ),
        (reading & _holding(records.start, records.offset < 0), "read a record that has no offset"),
        (reading & nowhere, f"read a record of no partition from 0 to {MOST_PARTITION - 1}"),
    )


def _holding(start: Array, wrong: Array) -> Array:
    """Which operations have a nested row that is wrong. start: of their slices."""
    if not wrong.any():
        return np.zeros(len(start) - 1, np.bool_)
    found: Array = np.diff(slice_starts(wrong)[start]) > 0
    return found


def _repeated(trace: Array, op_id: Array) -> Array:
    """Rows with a (trace, op id) that an earlier row has too. No sort is needed if op ids increase. trace:
    indices."""
    repeated = np.zeros(len(op_id), np.bool_)
    if ((trace[1:] > trace[:-1]) | ((trace[1:] == trace[:-1]) & (op_id[1:] > op_id[:-1]))).all():
        return repeated
    keys = packed((trace, op_id))
    order = stable_order(keys)
    repeated[order[1:][np.diff(keys[order]) == 0]] = True
    return repeated

"""The relations of the log check, appends and reads, stacked by group. A group is one partition's log in one
trace.

Owns the conversion of operations into appends and reads of a log (one read per partition of a poll), and the
detection of contradictions within a trace. Must not know the rules of the check. Rows are sorted by group and
keep the order of the operations within one. The relations are named tuples of read-only arrays, because a
compiled kernel accepts them as a whole.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from attrs import frozen

from fencepost.checkers.arrow_arrays import slice_starts
from fencepost.checkers.log.extras import Extras, Rows, extras_of, no_extras
from fencepost.checkers.log.parts import Parts, gather, read_parts
from fencepost.checkers.log.transactions import (
    Ends,
    Transactions,
    fates_of,
    told_for_good,
    transactions_of,
)
from fencepost.checkers.operation_columns import FUNCTIONS, NEVER, NONE, OUTCOMES, Array, OperationColumns
from fencepost.checkers.statements import Statements
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
    # How a trace contradicts itself, by the index of the trace.
    broken: dict[int, str]

    @property
    def groups(self) -> int:
        """The number of logs."""
        return len(self.trace)


def log_columns(operations: OperationColumns) -> LogColumns:
    """The appends and reads of all logs that `operations` use."""
    topic, partition = _own_partition(operations)
    appends = np.flatnonzero(
        (operations.function == _APPEND) & (np.diff(operations.records.start) > 0) & (topic >= 0)
    )
    answered = (operations.outcome == _OK) & (operations.completion_time != NEVER)
    reads = np.flatnonzero(((operations.function == _POLL) | (operations.function == _LIST)) & answered)
    parts = read_parts(operations, reads, topic, partition)
    width = int(max(partition.max(initial=0), parts.partition.max(initial=0))) + 1

    def key(rows: Array, topics: Array, partitions: Array) -> Array:
        return (operations.trace[rows] * max(len(operations.topics), 1) + topics) * width + partitions

    append_key = key(appends, topic[appends], partition[appends])
    keys, group = _ranks(np.concatenate((append_key, key(parts.row, parts.topic, parts.partition))))
    of_append, of_read = group[: len(appends)], group[len(appends) :]
    per_trace = max(len(operations.topics), 1) * width
    trace_of, topic_of = keys // per_trace, keys % per_trace // width
    extras, transactions = no_extras(len(keys)), transactions_of(operations)
    append_order = _group_order(of_append, len(keys))[0]
    fates = fates_of(operations, transactions, appends[append_order])
    if operations.statements is not None:
        read_order = _group_order(of_read, len(keys))[0]
        claimed, log_started = _log_starts(
            operations, operations.statements, topic, partition, (key, keys, width)
        )
        rows = Rows(
            append=appends[append_order],
            read=parts.row[read_order],
            of_append=of_append[append_order],
            of_read=of_read[read_order],
            log_start=parts.log_start[read_order],
            stable=parts.stable[read_order],
            claimed=claimed,
            log_started=log_started,
        )
        extras = extras_of(operations, operations.statements, rows, fates, trace_of, topic_of)
    return LogColumns(
        traces=operations.traces,
        topics=operations.topics,
        trace=trace_of,
        topic=topic_of,
        partition=keys % width,
        appends=_appends(operations, appends, of_append, len(keys), transactions),
        reads=_reads(operations, parts, of_read, len(keys)),
        extras=extras,
        ends=fates.ends,
        acknowledged=_acknowledged(operations, appends[append_order]),
        asked=_asked(operations),
        broken=_contradictions(operations),
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


def _log_starts(
    operations: OperationColumns,
    said: Statements,
    topic: Array,
    partition: Array,
    grouping: tuple[Callable[[Array, Array, Array], Array], Array, int],
) -> tuple[Array, Array]:
    """Every log start in an answered append, poll or list_offsets, whatever its outcome: the group (-1: no
    append or read of that log), and the offset.

    grouping: the code of a partition's log, the sorted codes of the groups, and the bound on the partitions
    that have codes.
    """
    key, keys, width = grouping
    positions = operations.positions
    earliest = said.earliest & (operations.function == _LIST) & (said.log_start_offset < 0)
    rows = np.concatenate((np.arange(len(topic)), np.repeat(np.arange(len(topic)), np.diff(positions.start))))
    topics = np.concatenate((topic, positions.topic))
    partitions = np.concatenate((partition, positions.partition))
    started = np.concatenate(
        (np.where(earliest, operations.offset, said.log_start_offset), said.position_log_start_offset)
    )
    heard = np.isin(operations.function, (_APPEND, _POLL, _LIST)) & (operations.completion_time != NEVER)
    known_base = np.flatnonzero(
        heard[rows] & (started >= 0) & (topics >= 0) & (partitions >= 0) & (partitions < width)
    )
    codes = key(rows[known_base], topics[known_base], partitions[known_base])
    at = np.minimum(np.searchsorted(keys, codes), max(len(keys) - 1, 0))
    known = keys[at] == codes if len(keys) else np.zeros(len(codes), np.bool_)
    return np.where(known, at, NONE), started[known_base]


def _own_partition(operations: OperationColumns) -> tuple[Array, Array]:
    """The partition of each operation: the one that it names, or else that of its first record."""
    records = operations.records
    unnamed = (operations.topic < 0) & (np.diff(records.start) > 0)
    if not unnamed.any():
        return operations.topic, operations.partition
    topic, partition = operations.topic.copy(), operations.partition.copy()
    first = records.start[:-1][unnamed]
    topic[unnamed], partition[unnamed] = records.topic[first], records.partition[first]
    return topic, partition


def _ranks(codes: Array) -> tuple[Array, Array]:
    """The distinct codes, sorted, and the rank of each. No sort is needed if the codes are dense."""
    if not len(codes) or codes.min() < 0 or codes.max() > 4 * len(codes) + 1024:
        distinct, rank = np.unique(codes, return_inverse=True)
        return distinct, rank
    present = np.zeros(int(codes.max()) + 1, np.bool_)
    present[codes] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]


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
    kind[(outcome == _OK) & (acks == ACKS_ALL)] = Kind.FIRM
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


def _contradictions(operations: OperationColumns) -> dict[int, str]:
    """For each trace that contradicts itself, the first contradiction of each kind."""
    ok = operations.outcome == _OK
    sized = np.diff(operations.records.start) > 0
    firm = ok & (operations.function == _APPEND) & (operations.acks == ACKS_ALL) & sized
    reading = ok & ((operations.function == _POLL) | (operations.function == _LIST))
    unplaced = operations.records.offset < 0
    lost = slice_starts(unplaced)[operations.records.start] if unplaced.any() else np.zeros(len(ok) + 1)
    found: dict[int, str] = {}
    for wrong, what in (
        (operations.completion_time < operations.invoke_time, "completed before it was invoked"),
        (ok & (operations.completion_time == NEVER), "is ok but has no completion time"),
        (firm & (operations.offset < 0), "is an append with acks=all and ok but has no offset"),
        (reading & (np.diff(lost) > 0), "read a record that has no offset"),
        (_repeated(operations.trace, operations.op_id), "shares its op id with another operation"),
    ):
        for row in np.flatnonzero(wrong).tolist():
            found.setdefault(int(operations.trace[row]), f"operation {operations.op_id[row]} {what}")
    return found


def _repeated(trace: Array, op_id: Array) -> Array:
    """Rows with a (trace, op id) that an earlier row has too. No sort is needed if op ids increase. trace:
    indices."""
    repeated = np.zeros(len(op_id), np.bool_)
    if ((trace[1:] > trace[:-1]) | ((trace[1:] == trace[:-1]) & (op_id[1:] > op_id[:-1]))).all():
        return repeated
    smallest, span = int(op_id.min()), int(op_id.max()) - int(op_id.min()) + 1
    if (int(trace.max()) + 1) * span < 1 << 62:  # one number for both: numbers sort fast
        keys = np.sort(trace * span + (op_id - smallest))
        if (keys[1:] != keys[:-1]).all():
            return repeated
    order = np.lexsort((op_id, trace))
    same = (np.diff(trace[order]) == 0) & (np.diff(op_id[order]) == 0)
    repeated[order[1:][same]] = True
    return repeated

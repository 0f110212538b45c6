"""The log judge's two relations, appends and reads, stacked by group; a group is one partition's log in one trace.

Owns how operations become appends and reads of a log (one read per partition of a poll), and which of a trace's statements contradict
each other. Must not know the rules of judgement. Rows are sorted by group and keep the order of the operations within one.
The relations are named tuples of read-only arrays because that is what a compiled kernel takes whole.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from attrs import frozen

from fencepost.checkers.columns import FUNCTIONS, NEVER, NONE, OUTCOMES, Array, OperationColumns
from fencepost.traces.operations import ACKS_ALL, Function, Outcome
from fencepost.traces.trace import Trace

_APPEND, _POLL, _LIST = (FUNCTIONS.index(f) for f in (Function.APPEND, Function.POLL, Function.LIST_OFFSETS))
_OK, _FAIL = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.FAIL)


class Kind(IntEnum):
    """What an append's outcome proves. FIRM: acknowledged with acks=all, it stands at its offset from then on. SOFT: it may stand in
    the log or not (unknown, or acks=1 or 0, whose acknowledgement survives no fail-over). FAILED: it was never written."""

    FIRM = 0
    SOFT = 1
    FAILED = 2


class Appends(NamedTuple):
    """One row per append. base: the offset of its first record, -1 if not told; values: slice [start[i], start[i + 1]) of `value`;
    first: the rows of group g are [first[g], first[g + 1])."""

    first: Array
    op_id: Array
    kind: Array
    invoke: Array
    completion: Array
    clock: Array
    base: Array
    epoch: Array
    start: Array
    value: Array


class Reads(NamedTuple):
    """One row per answered read of one log. position: the offset asked for, end: the end claimed (-1: not said); records: slice
    [start[i], start[i + 1]) of offset, value and record_epoch; first: as in Appends."""

    first: Array
    op_id: Array
    process: Array
    session: Array
    invoke: Array
    completion: Array
    clock: Array
    strong: Array
    position: Array
    end: Array
    epoch: Array
    start: Array
    offset: Array
    value: Array
    record_epoch: Array


@frozen(kw_only=True, eq=False)
class LogColumns:
    """Groups in order of trace, topic, partition. trace, topic, partition: of each group (trace and topic are indices).
    broken: trace index -> how the trace contradicts itself."""

    traces: tuple[Trace, ...]
    topics: tuple[str, ...]
    trace: Array
    topic: Array
    partition: Array
    appends: Appends
    reads: Reads
    broken: dict[int, str]

    @property
    def groups(self) -> int:
        """How many logs stand in these columns."""
        return len(self.trace)


def log_columns(operations: OperationColumns) -> LogColumns:
    """The appends and reads of all logs that `operations` touch."""
    topic, partition = _own_partition(operations)
    appends = np.flatnonzero(
        (operations.function == _APPEND) & (np.diff(operations.records.start) > 0) & (topic >= 0)
    )
    answered = (operations.outcome == _OK) & (operations.completion_time != NEVER)
    reads = np.flatnonzero(((operations.function == _POLL) | (operations.function == _LIST)) & answered)
    parts = _read_parts(operations, reads, topic, partition)
    width = int(max(partition.max(initial=0), parts.partition.max(initial=0))) + 1

    def key(rows: Array, topics: Array, partitions: Array) -> Array:
        return (operations.trace[rows] * max(len(operations.topics), 1) + topics) * width + partitions

    append_key = key(appends, topic[appends], partition[appends])
    keys, group = _ranks(np.concatenate((append_key, key(parts.row, parts.topic, parts.partition))))
    of_append, of_read = group[: len(appends)], group[len(appends) :]
    per_trace = max(len(operations.topics), 1) * width
    return LogColumns(
        traces=operations.traces,
        topics=operations.topics,
        trace=keys // per_trace,
        topic=keys % per_trace // width,
        partition=keys % width,
        appends=_appends(operations, appends, of_append, len(keys)),
        reads=_reads(operations, parts, of_read, len(keys)),
        broken=_contradictions(operations),
    )


def _own_partition(operations: OperationColumns) -> tuple[Array, Array]:
    """The partition of each operation: the one it names, or else that of its first record."""
    records = operations.records
    unnamed = (operations.topic < 0) & (np.diff(records.start) > 0)
    if not unnamed.any():
        return operations.topic, operations.partition
    topic, partition = operations.topic.copy(), operations.partition.copy()
    first = records.start[:-1][unnamed]
    topic[unnamed], partition[unnamed] = records.topic[first], records.partition[first]
    return topic, partition


def _ranks(codes: Array) -> tuple[Array, Array]:
    """The distinct codes in order and the rank of each; without a sort where the codes are dense."""
    if not len(codes) or codes.min() < 0 or codes.max() > 4 * len(codes) + 1024:
        distinct, rank = np.unique(codes, return_inverse=True)
        return distinct, rank
    present = np.zeros(int(codes.max()) + 1, np.bool_)
    present[codes] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]


def _group_order(group: Array, groups: int) -> tuple[Array | slice, Array]:
    """How to reorder rows so that groups stand together (a slice if they do), and where each group begins."""
    first = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(group, minlength=groups), out=first[1:])
    if not len(group) or (group[1:] >= group[:-1]).all():
        return slice(None), first
    return np.argsort(group, kind="stable"), first


def _gather(start: Array, rows: Array) -> tuple[Array, Array | slice]:
    """The slices of `rows` one after another: their new starts, and which flat positions they are (a slice if all of them in order)."""
    lengths = start[rows + 1] - start[rows]
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    if not len(rows):
        return starts, slice(0, 0)
    if starts[-1] == start[rows[-1] + 1] - start[rows[0]] and (rows[1:] > rows[:-1]).all():
        return starts, slice(int(start[rows[0]]), int(start[rows[-1] + 1]))
    return starts, np.repeat(start[rows] - starts[:-1], lengths) + np.arange(starts[-1])


def _sealed(array: Array) -> Array:
    """A contiguous, read-only view: one array type for every source, so that kernels compile once."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _appends(operations: OperationColumns, rows: Array, group: Array, groups: int) -> Appends:
    order, first = _group_order(group, groups)
    rows = rows[order]
    outcome, acks = operations.outcome[rows], operations.acks[rows]
    kind = np.where(outcome == _FAIL, Kind.FAILED, Kind.SOFT)
    kind[(outcome == _OK) & (acks == ACKS_ALL)] = Kind.FIRM
    start, records = _gather(operations.records.start, rows)
    return Appends(*map(_sealed, Appends(
        first=first,
        op_id=operations.op_id[rows],
        kind=kind.astype(np.int8),
        invoke=operations.invoke_time[rows],
        completion=operations.completion_time[rows],
        clock=operations.clock_id[rows],
        base=operations.offset[rows],
        epoch=operations.leader_epoch[rows],
        start=start,
        value=operations.records.value[records],
    )))  # fmt: skip


@frozen(kw_only=True, eq=False)
class _Parts:
    """One row per read of one partition: the operation's row, and its records as positions in the flat records."""

    row: Array
    topic: Array
    partition: Array
    position: Array
    end: Array
    epoch: Array
    start: Array
    record: Array | slice


def _read_parts(operations: OperationColumns, reads: Array, topic: Array, partition: Array) -> _Parts:
    """The reads split by partition. The usual case, one partition per operation, needs no split."""
    records, positions = operations.records, operations.positions
    start, flat = _gather(records.start, reads)
    of_record = np.repeat(reads, np.diff(start))
    if (
        not np.diff(positions.start)[reads].any()
        and (
            (records.topic[flat] == topic[of_record]) & (records.partition[flat] == partition[of_record])
        ).all()
    ):
        named = topic[reads] >= 0
        if not named.all():
            reads = reads[named]
            start, flat = _gather(records.start, reads)
        listed = operations.function[reads] == _LIST
        offset, end = operations.offset[reads], operations.end_offset[reads]
        return _Parts(
            row=reads,
            topic=topic[reads],
            partition=partition[reads],
            position=np.where(listed, NONE, offset),
            end=np.where(listed & (end < 0), offset, end),
            epoch=operations.leader_epoch[reads],
            start=start,
            record=flat,
        )
    return _split_parts(operations, reads, topic, partition)


def _split_parts(operations: OperationColumns, reads: Array, topic: Array, partition: Array) -> _Parts:
    """Reads with positions, or with records of several partitions: one part for each (operation, partition) that is named."""
    records, positions = operations.records, operations.positions
    counted = np.diff(positions.start)
    own = reads[(counted[reads] == 0) & (topic[reads] >= 0)]
    placed = _gather(positions.start, reads)[1]
    of_place = np.repeat(reads, counted[reads])
    starts, flat = _gather(records.start, reads)
    of_record = np.repeat(reads, np.diff(starts))
    listed = operations.function[own] == _LIST
    # columns: operation row, topic, partition, position, end, epoch; named parts first, then those only records name
    parts = [
        (own, topic[own], partition[own], np.where(listed, NONE, operations.offset[own]),
         np.where(listed & (operations.end_offset[own] < 0), operations.offset[own], operations.end_offset[own]),
         operations.leader_epoch[own]),
        (of_place, positions.topic[placed], positions.partition[placed],
         np.where(operations.function[of_place] == _LIST, NONE, positions.offset[placed]),
         positions.end_offset[placed], positions.leader_epoch[placed]),
        (of_record, records.topic[flat], records.partition[flat], *[np.full(len(of_record), NONE)] * 3),
    ]  # fmt: skip
    stacked = np.array([np.concatenate(column) for column in zip(*parts, strict=True)], np.int64)
    _, kept, part = np.unique(stacked[:3], axis=1, return_index=True, return_inverse=True)
    part_of_record = part.reshape(-1)[stacked.shape[1] - len(of_record) :]
    start = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(np.bincount(part_of_record, minlength=len(kept)), out=start[1:])
    positions_of_records = np.arange(len(records.value))[flat]
    row, topics, partitions, position, end, epoch = stacked[:, kept]
    return _Parts(
        row=row,
        topic=topics,
        partition=partitions,
        position=position,
        end=end,
        epoch=epoch,
        start=start,
        record=positions_of_records[np.argsort(part_of_record, kind="stable")],
    )


def _reads(operations: OperationColumns, parts: _Parts, group: Array, groups: int) -> Reads:
    order, first = _group_order(group, groups)
    row, record, start = parts.row[order], parts.record, parts.start
    if not isinstance(order, slice):
        start, moved = _gather(start, order)
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
    """For each trace that contradicts itself, the first contradiction of each sort."""
    ok = operations.outcome == _OK
    sized = np.diff(operations.records.start) > 0
    firm = ok & (operations.function == _APPEND) & (operations.acks == ACKS_ALL) & sized
    reading = ok & ((operations.function == _POLL) | (operations.function == _LIST))
    unplaced = np.concatenate(([0], np.cumsum(operations.records.offset < 0)))
    lost = unplaced[operations.records.start]
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
    """Rows whose (trace, op id) stands in an earlier row too; without a sort where op ids increase."""
    repeated = np.zeros(len(op_id), np.bool_)
    if ((trace[1:] > trace[:-1]) | ((trace[1:] == trace[:-1]) & (op_id[1:] > op_id[:-1]))).all():
        return repeated
    order = np.lexsort((op_id, trace))
    same = (np.diff(trace[order]) == 0) & (np.diff(op_id[order]) == 0)
    repeated[order[1:][same]] = True
    return repeated

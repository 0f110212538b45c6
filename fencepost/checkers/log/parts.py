"""Reads split by partition: one part for each partition that an operation read or asked about.

Owns which position, end, log start and last stable offset a response reports for which partition. Must not
know the rules of the check.
"""

import numpy as np
from attrs import frozen

from fencepost.checkers.operation_columns import (
    FUNCTIONS,
    NONE,
    Array,
    OperationColumns,
    PositionColumns,
    RecordColumns,
    is_place,
)
from fencepost.checkers.statements import READ_COMMITTED
from fencepost.traces.operations import Function

_LIST = FUNCTIONS.index(Function.LIST_OFFSETS)


def gather(start: Array, rows: Array) -> tuple[Array, Array | slice]:
    """The slices of `rows`, concatenated: their new starts, and their flat positions (a slice if these are
    all positions in order)."""
    lengths = start[rows + 1] - start[rows]
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    if not len(rows):
        return starts, slice(0, 0)
    if starts[-1] == start[rows[-1] + 1] - start[rows[0]] and (rows[1:] > rows[:-1]).all():
        return starts, slice(int(start[rows[0]]), int(start[rows[-1] + 1]))
    return starts, np.repeat(start[rows] - starts[:-1], lengths) + np.arange(starts[-1])


@frozen(kw_only=True, eq=False)
class Parts:
    """One row per read of one partition."""

    # The row of the operation.
    row: Array
    # Index of the topic.
    topic: Array
    # The partition.
    partition: Array
    # The offset that the client asked for; -1 if not known.
    position: Array
    # The log end that the response claims; -1 if none.
    end: Array
    # The leader epoch of the response; -1 if not known.
    epoch: Array
    # The log start offset that the response claims. Empty if the operations have no statements.
    log_start: Array
    # The last stable offset that the response claims. Empty if the operations have no statements.
    stable: Array
    # Part i has the records [start[i], start[i + 1]) of `record`.
    start: Array
    # Positions in the flat records of the operations.
    record: Array | slice


def read_parts(operations: OperationColumns, reads: Array, topic: Array, partition: Array) -> Parts:
    """The reads split by partition. In the usual case, one partition per operation, there is nothing to
    split."""
    records, positions = operations.records, operations.positions
    start, flat = gather(records.start, reads)
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
            start, flat = gather(records.start, reads)
        position, end, epoch, *further = _own_claims(operations, reads)
        log_start, stable = further or (_EMPTY, _EMPTY)
        return Parts(
            row=reads,
            topic=topic[reads],
            partition=partition[reads],
            position=position,
            end=end,
            epoch=epoch,
            log_start=log_start,
            stable=stable,
            start=start,
            record=flat,
        )
    return _split_parts(operations, reads, topic, partition)


_EMPTY = np.empty(0, np.int64)


def _own_claims(operations: OperationColumns, rows: Array) -> tuple[Array, ...]:
    """Position, end and epoch of operations on one partition; also log start and last stable offset if there
    are statements.

    The result of list_offsets is the end, with two exceptions: it is the log start if the request was for the
    earliest offset, and the last stable offset if it was for the latest one under read_committed.
    """
    listed = operations.function[rows] == _LIST
    offset, end = operations.offset[rows], operations.end_offset[rows]
    position, epoch = np.where(listed, NONE, offset), operations.leader_epoch[rows]
    returned = listed & (end < 0)
    said = operations.statements
    if said is None:
        return position, np.where(returned, offset, end), epoch
    earliest = returned & said.earliest[rows]
    committed = returned & ~earliest & (said.isolation[rows] == READ_COMMITTED)
    log_start, stable = said.log_start_offset[rows], said.last_stable_offset[rows]
    return (
        position,
        np.where(returned & ~earliest & ~committed, offset, end),
        epoch,
        np.where(earliest & (log_start < 0), offset, log_start),
        np.where(committed & (stable < 0), offset, stable),
    )


def _of_logs(nested: RecordColumns | PositionColumns, reads: Array) -> tuple[Array, Array]:
    """The nested rows of these operations that name a log: the operation of each, and its own place."""
    start, flat = gather(nested.start, reads)
    rows = np.arange(nested.start[-1])[flat]
    known = is_place(nested.topic[rows], nested.partition[rows])
    return np.repeat(reads, np.diff(start))[known], rows[known]


def _place_claims(operations: OperationColumns, placed: Array, of_place: Array) -> tuple[Array, ...]:
    """The same for the positions of polls of several partitions."""
    positions, said = operations.positions, operations.statements
    listed = operations.function[of_place] == _LIST
    claims = (
        np.where(listed, NONE, positions.offset[placed]),
        positions.end_offset[placed],
        positions.leader_epoch[placed],
    )
    if said is None:
        return claims
    return (*claims, said.position_log_start_offset[placed], said.position_last_stable_offset[placed])


def _split_parts(operations: OperationColumns, reads: Array, topic: Array, partition: Array) -> Parts:
    """Reads with positions, or with records of several partitions: one part for each (operation,
    partition)."""
    records, positions = operations.records, operations.positions
    counted = np.diff(positions.start)
    own = reads[(counted[reads] == 0) & (topic[reads] >= 0)]
    of_place, placed = _of_logs(positions, reads)
    of_record, flat = _of_logs(records, reads)
    own_claims = _own_claims(operations, own)
    # columns: operation row, topic, partition, claims; first the parts with positions, then those that only
    # have records
    parts = [
        (own, topic[own], partition[own], *own_claims),
        (
            of_place,
            positions.topic[placed],
            positions.partition[placed],
            *_place_claims(operations, placed, of_place),
        ),
        (
            of_record,
            records.topic[flat],
            records.partition[flat],
            *[np.full(len(of_record), NONE)] * len(own_claims),
        ),
    ]
    stacked = np.array([np.concatenate(column) for column in zip(*parts, strict=True)], np.int64)
    _, kept, part = np.unique(stacked[:3], axis=1, return_index=True, return_inverse=True)
    part_of_record = part.reshape(-1)[stacked.shape[1] - len(of_record) :]
    start = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(np.bincount(part_of_record, minlength=len(kept)), out=start[1:])
    row, topics, partitions, position, end, epoch, *further = stacked[:, kept]
    log_start, stable = further or (_EMPTY, _EMPTY)
    return Parts(
        row=row,
        topic=topics,
        partition=partitions,
        position=position,
        end=end,
        epoch=epoch,
        log_start=log_start,
        stable=stable,
        start=start,
        record=flat[np.argsort(part_of_record, kind="stable")],
    )

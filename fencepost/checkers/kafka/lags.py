"""Realtime lag: how far a poll left its consumer behind the end of the log, as a range of time.

Owns the position of each consumer after each poll, and the range. Must not know how it is used.

Realtime lag is a range, because the trace does not record when the log grew. After a poll a consumer is at
offset n. That was the end of the log until a record at n or above was appended. This moment is between two
bounds. `lo` is the latest invocation of an append known to be at n or below. `hi` is the earliest completion
of any operation that proves a record at n or above. The poll read the log between its own invocation and
completion. So it lagged by at least (invocation - hi) and at most (completion - lo), neither below 0. If no
record at n or above is known, the range is [0, 0]. If the log check finds an inversion, no such moment
exists; then the maximum is set to the minimum.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from attrs import frozen

from fencepost.checkers.kafka.placements import Placements
from fencepost.checkers.kafka.relations import ASSIGN, CRASH, FAIL, JOIN, OK, POLL, SUBSCRIBE, KafkaColumns
from fencepost.checkers.operation_columns import NEVER, Array

_LONG_AGO = int(np.iinfo(np.int64).min) // 4


@frozen(kw_only=True, eq=False)
class Lags:
    """One row per answered poll and partition in which its consumer has a position, in the order of
    invocation."""

    # The names of topics.
    topics: tuple[str, ...]
    # The poll.
    op_id: Array
    # The process of the consumer.
    process: Array
    # Index into `topics`.
    topic: Array
    # The partition of the topic.
    partition: Array
    # Invocation time of the poll in nanoseconds.
    time: Array
    # The smallest possible lag in nanoseconds; at least 0.
    at_least_ns: Array
    # The largest possible lag in nanoseconds; at least `at_least_ns`.
    at_most_ns: Array

    def worst(self) -> int:
        """The first row with the highest `at_least_ns`; -1 if there are no rows."""
        return int(np.argmax(self.at_least_ns)) if len(self.at_least_ns) else -1


def lags_of(columns: KafkaColumns, placements: Placements) -> list[Lags]:
    """Compute the realtime lags.

    Args:
        columns: the relations of the traces.
        placements: the known places of records.

    Returns:
        the lags of each trace, in order.
    """
    operations = columns.operations
    stands = np.array(list(_stands(columns)), np.int64).reshape(-1, 3)
    row, log, next_offset = stands[:, 0], stands[:, 1], stands[:, 2]
    at_least, at_most = _ranges(columns, placements, row, log, next_offset)
    by_time = np.lexsort((log, row, operations.invoke_time[row], operations.trace[row]))
    cuts = np.searchsorted(operations.trace[row][by_time], np.arange(len(columns.traces) + 1))
    return [
        Lags(
            topics=operations.topics,
            op_id=operations.op_id[row[own]],
            process=operations.process[row[own]],
            topic=columns.log_topic[log[own]],
            partition=columns.log_partition[log[own]],
            time=operations.invoke_time[row[own]],
            at_least_ns=at_least[own],
            at_most_ns=at_most[own],
        )
        for own in (by_time[start:end] for start, end in pairwise(cuts.tolist()))
    ]


def _stands(columns: KafkaColumns) -> Iterator[tuple[int, int, int]]:
    """(row of the poll, log, next offset) after each answered poll.

    After an assign a consumer is at the beginning of the partitions that are new to it. After a subscribe, a
    join or a crash its position is not known. Polls of a transaction that did not commit do not move it.
    """
    operations = columns.operations
    moving = (ASSIGN, SUBSCRIBE, JOIN, CRASH)
    of_interest = np.flatnonzero(np.isin(operations.function, (POLL, *moving)))
    order = of_interest[
        np.lexsort((of_interest, operations.invoke_time[of_interest], columns.process[of_interest]))
    ]
    highest = _highest_shown(columns)
    own_log = _own_logs(columns)
    start = operations.positions.start
    process, where = -1, dict[int, int]()
    for row in order.tolist():
        if columns.process[row] != process:
            process, where = int(columns.process[row]), {}
        function = operations.function[row]
        if function == ASSIGN and operations.outcome[row] != FAIL:
            named = columns.log_of_position[start[row] : start[row + 1]].tolist()
            before = {} if columns.extras.seeks[row] else where
            where = {log: before.get(log, 0) for log in named if log >= 0}
        elif function != POLL:
            where = where if operations.outcome[row] == FAIL else {}
        elif operations.outcome[row] == OK and operations.completion_time[row] != NEVER:
            shown = highest.get(row, {})
            if row in own_log:  # the consumer chose where to read
                yield from ((row, log, offset) for log, offset in sorted({**own_log[row], **shown}.items()))
                continue
            moved = {**where, **shown}
            if columns.txn[row] < 0 or operations.outcome[columns.txn[row]] == OK:
                where = moved
            yield from ((row, log, offset) for log, offset in sorted(moved.items()))


def _highest_shown(columns: KafkaColumns) -> dict[int, dict[int, int]]:
    """For each row of a poll: log -> one more than the highest offset that it showed."""
    found: dict[int, dict[int, int]] = {}
    shown = columns.shown
    for row, log, offset in zip(shown.row.tolist(), shown.log.tolist(), shown.offset.tolist(), strict=True):
        logs = found.setdefault(row, {})
        logs[log] = max(logs.get(log, 0), offset + 1)
    return found


def _own_logs(columns: KafkaColumns) -> dict[int, dict[int, int]]:
    """For each row of a poll that says where it began: log -> that offset."""
    operations = columns.operations
    keys = columns.logs_by_name
    rows = np.flatnonzero((operations.function == POLL) & (operations.offset >= 0) & (operations.topic >= 0))
    found: dict[int, dict[int, int]] = {}
    for row in rows.tolist():
        key = (int(operations.trace[row]), int(operations.topic[row]), int(operations.partition[row]))
        if key in keys:
            found[row] = {keys[key]: int(operations.offset[row])}
    positions = operations.positions
    of_position = np.repeat(np.arange(len(positions.start) - 1), np.diff(positions.start))
    has_position = (columns.log_of_position >= 0) & (positions.offset >= 0)
    for at in np.flatnonzero(has_position & (operations.function[of_position] == POLL)).tolist():
        logs = found.setdefault(int(of_position[at]), {})
        logs[int(columns.log_of_position[at])] = int(positions.offset[at])
    return found


def _bounds(columns: KafkaColumns, placements: Placements) -> tuple[Array, Array, Array, Array]:
    """Log, offset, lo and hi, sorted by log and offset: bounds of the moment at which the log grew to hold
    that offset."""
    operations, sent, shown = columns.operations, columns.sent, columns.shown
    placed = placements.offset
    known = np.flatnonzero(placed >= 0)
    log = np.concatenate((sent.log[known], shown.log))
    offset = np.concatenate((placed[known], shown.offset))
    nothing = np.full(len(shown.log), _LONG_AGO)
    lo = np.concatenate((operations.invoke_time[sent.row[known]], nothing))
    has_position = np.where(
        operations.outcome[sent.row[known]] == OK, operations.completion_time[sent.row[known]], NEVER
    )
    hi = np.concatenate((has_position, operations.completion_time[shown.row]))
    order = np.lexsort((offset, log))
    log, offset, lo, hi = log[order], offset[order], lo[order], hi[order]
    return log, offset, _running_maximum(log, lo), -_running_maximum(log[::-1], -hi[::-1])[::-1]


def _running_maximum(log: Array, value: Array) -> Array:
    """The running maximum within each run of equal `log`."""
    highest = value.copy()
    heads = np.flatnonzero(np.diff(log, prepend=log[:1] - 1))
    for start, end in pairwise([*heads.tolist(), len(log)]):
        np.maximum.accumulate(highest[start:end], out=highest[start:end])
    return highest


def _ranges(
    columns: KafkaColumns, placements: Placements, row: Array, log: Array, stands: Array
) -> tuple[Array, Array]:
    """at_least and at_most of polls that are at an offset afterwards."""
    operations = columns.operations
    bound_log, offset, lo, hi = _bounds(columns, placements)
    if not len(bound_log) or not len(row):
        return np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
    offsets, rank = np.unique(offset, return_inverse=True)
    key = bound_log * (len(offsets) + 1) + rank.reshape(-1)
    at = np.searchsorted(key, log * (len(offsets) + 1) + np.searchsorted(offsets, stands))
    above = np.minimum(at, len(key) - 1)
    known = (at < len(key)) & (bound_log[above] == log)
    exact = known & (offset[above] == stands)
    # several rows may have exactly this offset: the last of them includes all their invocations
    upto = np.searchsorted(key, key[above], side="right") - 1
    below = np.where(exact, upto, np.maximum(at - 1, 0))
    earliest = np.where(bound_log[below] == log, lo[below], _LONG_AGO)
    began = np.full(len(columns.traces), NEVER)
    np.minimum.at(began, operations.trace, operations.invoke_time)
    earliest = np.maximum(earliest, began[operations.trace[row]])
    grown = np.where(known, hi[above], NEVER)
    invoke, completion = operations.invoke_time[row], operations.completion_time[row]
    at_least = np.where(grown < invoke, invoke - np.minimum(grown, invoke), 0)
    at_most = np.where(known, np.maximum(completion - earliest, 0), 0)
    return at_least, np.maximum(at_least, at_most)

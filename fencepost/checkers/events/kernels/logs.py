"""Logs of replicas in one pool of arrays: ReplicaLog (model/replication/replica_log.py), compiled.

Owns the pool and the operations on a log. Must not know which replica has which log. All logs of a trace have
the same capacity: its highest offset. A full pool sets `full` and continues in its first row, which belongs
to no replica. A caller that sees `full` gives the trace up.
"""

from typing import NamedTuple

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.operation_columns import Array

UNKNOWN = -1
"""The epoch of a record that the trace never named."""
RECORD_EPOCH, RECORD_VALUE = 0, 1
"""Columns of `Logs.record`."""
END, UNKNOWNS = 0, 1
"""Columns of `Logs.size`."""
CAPACITY, USED, POOL_FULL = range(3)
"""Entries of `Logs.pool`."""


class Logs(NamedTuple):
    """The pool.

    record: leader epoch and value of each record, flat, by row and offset. size: for each row its log end and
    the number of unknown records below it.
    """

    record: Array
    size: Array
    pool: Array


@compiled_within
def clear_logs(logs: Logs, capacity: int) -> None:
    """Empty the pool `logs` for a new trace with offsets up to `capacity`."""
    logs.pool[CAPACITY] = max(capacity, 1)
    logs.pool[USED] = 1
    logs.pool[POOL_FULL] = 0 if capacity < len(logs.record) else 1
    logs.size[0, END] = 0
    logs.size[0, UNKNOWNS] = 0


@compiled_within
def new_log(logs: Logs) -> int:
    """An empty log."""
    row = logs.pool[USED]
    if row >= len(logs.size) or (row + 1) * logs.pool[CAPACITY] > len(logs.record):
        logs.pool[POOL_FULL] = 1
        return 0
    logs.pool[USED] = row + 1
    logs.size[row, END] = 0
    logs.size[row, UNKNOWNS] = 0
    return int(row)


@compiled_within
def resize(logs: Logs, row: int, end_offset: int) -> None:
    """Truncate the log `row` to `end_offset`, or extend it with unknown records."""
    base, before, end = row * logs.pool[CAPACITY], logs.size[row, END], max(end_offset, 0)
    if end > before:
        for k in range(base + before, base + end):
            logs.record[k, RECORD_EPOCH] = UNKNOWN
            logs.record[k, RECORD_VALUE] = 0
        logs.size[row, UNKNOWNS] += end - before
    elif logs.size[row, UNKNOWNS]:
        for k in range(base + end, base + before):
            logs.size[row, UNKNOWNS] -= logs.record[k, RECORD_EPOCH] == UNKNOWN
    logs.size[row, END] = end


@compiled_within
def append(logs: Logs, row: int, offset: int, epoch: int, values: Array, start: int, stop: int) -> None:
    """Append the records values[start:stop] at `offset`. A gap below becomes unknown; records from `offset`
    on are truncated."""
    if offset != logs.size[row, END]:
        resize(logs, row, offset)
    at = row * logs.pool[CAPACITY] + logs.size[row, END]
    for k in range(start, stop):
        logs.record[at, RECORD_EPOCH] = epoch
        logs.record[at, RECORD_VALUE] = values[k]
        at += 1
    logs.size[row, END] += stop - start


@compiled_within
def extend(logs: Logs, row: int, other: int, end_offset: int) -> None:
    """Copy the records of `other` from this log's end up to `end_offset`."""
    mine, its = row * logs.pool[CAPACITY], other * logs.pool[CAPACITY]
    for k in range(logs.size[row, END], min(end_offset, logs.size[other, END])):
        logs.record[mine + k, RECORD_EPOCH] = logs.record[its + k, RECORD_EPOCH]
        logs.record[mine + k, RECORD_VALUE] = logs.record[its + k, RECORD_VALUE]
        logs.size[row, UNKNOWNS] += logs.record[its + k, RECORD_EPOCH] == UNKNOWN
    logs.size[row, END] = max(logs.size[row, END], min(end_offset, logs.size[other, END]))


@compiled_within
def copy(logs: Logs, row: int) -> int:
    """An independent copy of the log `row` in the pool `logs`."""
    made = new_log(logs)
    if made:
        extend(logs, made, row, logs.size[row, END])
    return int(made)


@compiled_within
def first_difference(logs: Logs, row: int, other: int, start: int, end: int) -> int:
    """The first offset from `start` to `end` at which `row` certainly differs from `other`; -1 if they may
    agree."""
    mine, its = row * logs.pool[CAPACITY], other * logs.pool[CAPACITY]
    end, size = min(end, logs.size[other, END]), logs.size[row, END]
    for k in range(start, end):
        if k >= size:
            return k
        one, two = logs.record[mine + k, RECORD_EPOCH], logs.record[its + k, RECORD_EPOCH]
        if (
            one != UNKNOWN
            and two != UNKNOWN
            and (one != two or logs.record[mine + k, RECORD_VALUE] != logs.record[its + k, RECORD_VALUE])
        ):
            return k
    return -1


@compiled_within
def holds(logs: Logs, row: int, offset: int, epoch: int, values: Array, start: int, stop: int) -> bool:
    """Whether the log may hold the records values[start:stop] at `offset`."""
    if stop > start and offset + stop - start > logs.size[row, END]:
        return False
    at = row * logs.pool[CAPACITY] + offset
    for k in range(start, stop):
        held = logs.record[at, RECORD_EPOCH]
        if (
            held != UNKNOWN
            and epoch != UNKNOWN
            and (held != epoch or logs.record[at, RECORD_VALUE] != values[k])
        ):
            return False
        at += 1
    return True


@compiled_within
def learn(logs: Logs, row: int, offset: int, epoch: int, values: Array, start: int, stop: int) -> None:
    """Fill in unknown records of a log, after another replica copied from it.

    Args:
        logs: the pool.
        row: the log.
        offset: the offset of the first record.
        epoch: their leader epoch.
        values: value ids.
        start, stop: the slice of `values`.
    """
    if not logs.size[row, UNKNOWNS] or epoch == UNKNOWN:
        return
    base = row * logs.pool[CAPACITY]
    for k in range(start, stop):
        at = offset + k - start
        if at < logs.size[row, END] and logs.record[base + at, RECORD_EPOCH] == UNKNOWN:
            logs.record[base + at, RECORD_EPOCH] = epoch
            logs.record[base + at, RECORD_VALUE] = values[k]
            logs.size[row, UNKNOWNS] -= 1


@compiled_within
def shared_prefix(logs: Logs, row: int, other: int) -> int:
    """The number of records at the beginning that are certainly the same in the logs `row` and `other`."""
    mine, its = row * logs.pool[CAPACITY], other * logs.pool[CAPACITY]
    end = min(logs.size[row, END], logs.size[other, END])
    for k in range(end):
        epoch = logs.record[mine + k, RECORD_EPOCH]
        if (
            epoch == UNKNOWN
            or epoch != logs.record[its + k, RECORD_EPOCH]
            or logs.record[mine + k, RECORD_VALUE] != logs.record[its + k, RECORD_VALUE]
        ):
            return k
    return int(end)


@compiled_within
def names_another(logs: Logs, row: int, offset: int, values: Array, start: int, stop: int) -> bool:
    """Note the values at these offsets. Returns whether another value was noted at one of them."""
    base = row * logs.pool[CAPACITY]
    if offset + stop - start > logs.size[row, END]:
        resize(logs, row, offset + stop - start)
    for k in range(start, stop):
        at = base + offset + k - start
        if logs.record[at, RECORD_EPOCH] == UNKNOWN:
            logs.record[at, RECORD_EPOCH] = 0
            logs.record[at, RECORD_VALUE] = values[k]
        elif logs.record[at, RECORD_VALUE] != values[k]:
            return True
    return False

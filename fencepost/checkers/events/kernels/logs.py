"""Logs of replicas in one pool of arrays: ReplicaLog (model/replication/replica_log.py), compiled.

Owns the pool and what can be done to a log in it. Must not know who has which log. All logs of a trace have
the same capacity: its highest offset. A pool that is full says so and goes on in its first row, which is
nobody's: whoever sees `full` gives the trace up.
"""

from typing import NamedTuple

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.operation_columns import Array

UNKNOWN = -1
"""The epoch of a record that the trace never named."""
RECORD_EPOCH, RECORD_VALUE = 0, 1
"""Of `Logs.record`."""
END, UNKNOWNS = 0, 1
"""Of `Logs.size`."""
CAPACITY, USED, POOL_FULL = range(3)
"""Of `Logs.pool`."""


class Logs(NamedTuple):
    """record: by row and offset, flat, with its leader epoch and value. size: by row, its log end and how
    many records below it are unknown."""

    record: Array
    size: Array
    pool: Array


@compiled_within
def clear_logs(logs: Logs, capacity: int) -> None:
    """A new trace."""
    logs.pool[CAPACITY] = max(capacity, 1)
    logs.pool[USED] = 1
    logs.pool[POOL_FULL] = 0 if capacity < len(logs.record) else 1
    logs.size[0, END] = 0
    logs.size[0, UNKNOWNS] = 0


@compiled_within
def new_log(logs: Logs) -> int:
    """An empty one."""
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
    """Cut the log, or let it grow by unknown records."""
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
    """The records values[start:stop] at `offset`. A gap below becomes unknown, what stood there is cut."""
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
    """Take over the records that `other` holds from this log's end up to `end_offset`."""
    mine, its = row * logs.pool[CAPACITY], other * logs.pool[CAPACITY]
    for k in range(logs.size[row, END], min(end_offset, logs.size[other, END])):
        logs.record[mine + k, RECORD_EPOCH] = logs.record[its + k, RECORD_EPOCH]
        logs.record[mine + k, RECORD_VALUE] = logs.record[its + k, RECORD_VALUE]
        logs.size[row, UNKNOWNS] += logs.record[its + k, RECORD_EPOCH] == UNKNOWN
    logs.size[row, END] = max(logs.size[row, END], min(end_offset, logs.size[other, END]))


@compiled_within
def copy(logs: Logs, row: int) -> int:
    """An independent log with the same records."""
    made = new_log(logs)
    if made:
        extend(logs, made, row, logs.size[row, END])
    return int(made)


@compiled_within
def first_difference(logs: Logs, row: int, other: int, start: int, end: int) -> int:
    """The first offset from `start` to `end` at which `row` certainly does not hold what `other` does; -1 if
    it may hold all."""
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
    """Fill unknown records with what another replica copied from here."""
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
    """How many records at the beginning certainly are the same in both."""
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
    """Note which values stand at these offsets; whether another one was noted at one of them."""
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

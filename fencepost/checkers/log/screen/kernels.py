"""Compiled kernels: the passes over the slots of one log.

Owns the arrays of slots, one entry per offset, and the loops over them. Must not know traces, claims or
findings. A kernel only answers whether a log *may* break a rule; `examine` then decides and names the
anomaly. So a kernel may suspect a correct log but must never miss a wrong one.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.operation_columns import NEVER, Array

LONG_AGO = int(np.iinfo(np.int64).min)

VALUE, INVOKE, ACK, SHOWN, ENDED, EPOCH = range(6)
"""Columns of `Slots.slot`. VALUE: the value at the offset. INVOKE: the invocation of its append (NEVER: the
slot is empty). ACK, SHOWN: the earliest acknowledgement, and the earliest completion of a read, that shows
the log longer than this offset. ENDED: the latest invocation of a strong read that claimed this end. EPOCH:
leader epoch (-1 unknown). Reading a record needs exactly one row, which is one cache line."""


class Slots(NamedTuple):
    """One log's offsets from `low`, as above. joined: whether the record belongs to the batch of the offset
    before. placed: for each append row the base offset of its batch (-1: not seen)."""

    slot: Array
    joined: Array
    placed: Array


@compiled
def clear(slots: Slots, size: int) -> None:
    """Empty the first `size` offsets."""
    for k in range(size):
        slots.slot[k, VALUE] = 0
        slots.slot[k, INVOKE] = NEVER
        slots.slot[k, ACK] = NEVER
        slots.slot[k, SHOWN] = NEVER
        slots.slot[k, ENDED] = LONG_AGO
        slots.slot[k, EPOCH] = -1
        slots.joined[k] = False


@compiled
def chain_breaks(slots: Slots, size: int) -> bool:
    """Steps 2 and 3: whether some prefix maximum of the lower bounds exceeds an upper bound in the first
    `size` offsets of `slots`."""
    appended, ended, carried = LONG_AGO, LONG_AGO, NEVER
    for k in range(size):
        invoke, shown = slots.slot[k, INVOKE], slots.slot[k, SHOWN]
        if invoke != NEVER and invoke > appended:
            appended = invoke
        if slots.slot[k, ENDED] > ended:
            ended = slots.slot[k, ENDED]
        if slots.joined[k] and carried < shown:
            shown = carried  # a read of one record of a batch shows the whole batch
        carried = shown
        latest = max(appended, ended)
        if latest > slots.slot[k, ACK] or latest > shown:
            return True
    return False


@compiled
def batch_torn(slots: Slots, size: int) -> bool:
    """Step 6: whether a claimed end is inside a batch in the first `size` offsets of `slots`."""
    torn = False
    for k in range(size):
        torn |= slots.joined[k] and slots.slot[k, ENDED] != LONG_AGO
    return torn


@compiled
def epochs_regress(slots: Slots, size: int) -> bool:
    """Step 7: whether leader epochs decrease in the first `size` offsets of `slots`."""
    highest = -1
    for k in range(size):
        epoch = slots.slot[k, EPOCH]
        if epoch >= 0:
            if epoch < highest:
                return True
            highest = epoch
    return False


@compiled
def known_size(slots: Slots, size: int) -> int:
    """How many of the first `size` offsets of `slots` are below the known end."""
    for k in range(size - 1, -1, -1):
        if slots.slot[k, INVOKE] != NEVER:
            return k + 1
        if slots.slot[k, ENDED] != LONG_AGO:
            return k
    return 0


@compiled
def holes_unfilled(slots: Slots, size: int, candidates: Array, timed: bool) -> bool:
    """Step 5 for single-record appends: whether too few unknown appends were invoked in time for some hole.

    size: offsets below the known end; candidates: sorted invocations of unassigned unknown appends.
    """
    deadline = np.empty(size, np.int64)
    earliest = NEVER
    for k in range(size - 1, -1, -1):
        earliest = min(earliest, slots.slot[k, ACK], slots.slot[k, SHOWN])
        deadline[k] = earliest if timed else NEVER
    holes = in_time = 0
    for k in range(size):
        if slots.slot[k, INVOKE] == NEVER:
            holes += 1
            while in_time < len(candidates) and candidates[in_time] <= deadline[k]:
                in_time += 1
            if in_time < holes:
                return True
    return False


@compiled
def find_sorted(values: Array, begin: int, stop: int, value: int) -> int:
    """The index of `value` in the increasing slice [begin, stop); -1 if it is not there."""
    low, high = begin, stop
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < stop and values[low] == value else -1


@compiled
def hash_values(values: Array, begin: int, stop: int) -> tuple[Array, bool]:
    """A hash table (open addressing) of the indices in [begin, stop), and whether some value occurs twice."""
    size = 16
    while size < 2 * (stop - begin):
        size *= 2
    table = np.full(size, -1, np.int64)
    repeated = False
    for position in range(begin, stop):
        bucket = _bucket(values[position], size)
        while table[bucket] >= 0:
            if values[table[bucket]] == values[position]:
                repeated = True
                break
            bucket = (bucket + 1) & (size - 1)
        if table[bucket] < 0:
            table[bucket] = position
    return table, repeated


@compiled
def find_hashed(table: Array, values: Array, value: int) -> int:
    """The index of `value`; -1 if it is not in the table."""
    bucket = _bucket(value, len(table))
    while table[bucket] >= 0:
        if values[table[bucket]] == value:
            return int(table[bucket])
        bucket = (bucket + 1) & (len(table) - 1)
    return -1


@compiled
def _bucket(value: int, size: int) -> int:
    """Fibonacci hashing: the high bits of value times 2^64 / golden ratio."""
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(32)) & np.uint64(size - 1))  # type: ignore[return-value]

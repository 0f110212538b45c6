"""Slots: what is known about each offset of one log, as rows of an array that can be merged.

Owns the columns of a slot, and adding appends and reads to them. Must not know ranges, files or verdicts.
Merging is associative and commutative: each column is a minimum, a maximum, or a value that all statements
must share (BAD if they differ). So operations may be added in any order and in any pieces.
"""

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import Appends, Kind, Reads
from fencepost.checkers.operation_columns import NEVER, Array

VALUE, INVOKE, ACK, SHOWN, ENDED, EPOCH, SEEN, LAST, FLAGS = range(9)
"""Columns. VALUE: the value at the offset. INVOKE: the invocation of its append (NEVER: not known). ACK,
SHOWN: the earliest acknowledgement, and the earliest completion of a read, that shows the log longer than
this offset. ENDED: the latest invocation of a strong read that claimed this end. EPOCH: leader epoch (-1
unknown). SEEN, LAST: the earliest and the latest completion of a read of this record."""
WIDTH = FLAGS + 1
HELD, READ, JOINED, BAD, PLACED = 1, 2, 4, 8, 16
"""Flags. HELD: a firm append is here. READ: a read returned it. JOINED: the batch of the offset before
continues here. BAD: statements differ. PLACED: a soft append is here."""
LONG_AGO = int(np.iinfo(np.int64).min)
FIRM = int(Kind.FIRM)


def empty(size: int) -> Array:
    """Slots without any information."""
    slots = np.full((size, WIDTH), NEVER, np.int64)
    slots[:, VALUE] = slots[:, FLAGS] = 0
    slots[:, ENDED] = slots[:, LAST] = LONG_AGO
    slots[:, EPOCH] = -1
    return slots


def fold(appends: Appends, reads: Reads, all_strong: bool, low: int, slots: Array) -> None:
    """Add the statements of operations of one log about the slots from `low` on."""
    _fold_appends(appends, low, slots)
    _fold_reads(reads, all_strong, low, slots)


@compiled
def _fold_appends(appends: Appends, low: int, slots: Array) -> None:
    size = len(slots)
    for a in range(len(appends.kind)):
        base, begin = appends.base[a] - low, appends.start[a]
        count = appends.start[a + 1] - begin
        if appends.kind[a] != FIRM or base >= size or base + count <= 0:
            continue
        for nth in range(max(0, -base), min(count, size - base)):
            k = base + nth
            known, flags = slots[k, FLAGS], HELD | (JOINED if nth else 0)
            if known & HELD or (known & READ and slots[k, VALUE] != appends.value[begin + nth]):
                flags |= BAD
            epoch = appends.epoch[a]
            if epoch >= 0 and slots[k, EPOCH] >= 0 and epoch != slots[k, EPOCH]:
                flags |= BAD
            slots[k, VALUE], slots[k, INVOKE] = appends.value[begin + nth], appends.invoke[a]
            slots[k, EPOCH] = max(slots[k, EPOCH], epoch)
            if nth == count - 1:
                slots[k, ACK] = min(slots[k, ACK], appends.completion[a])
            slots[k, FLAGS] = known | flags


@compiled
def _fold_reads(reads: Reads, all_strong: bool, low: int, slots: Array) -> None:
    size = len(slots)
    for r in range(len(reads.op_id)):
        begin, stop, done = reads.start[r], reads.start[r + 1], reads.completion[r]
        if stop > begin and reads.offset[begin] - low < size and reads.offset[stop - 1] >= low:
            for i in range(begin, stop):
                k = reads.offset[i] - low
                if k < 0 or k >= size:
                    continue
                known, epoch = slots[k, FLAGS], reads.record_epoch[i]
                if known & (HELD | READ) and slots[k, VALUE] != reads.value[i]:
                    known |= BAD
                if epoch >= 0 and slots[k, EPOCH] >= 0 and epoch != slots[k, EPOCH]:
                    known |= BAD
                slots[k, VALUE] = reads.value[i]
                slots[k, EPOCH] = max(slots[k, EPOCH], epoch)
                slots[k, SEEN] = min(slots[k, SEEN], done)
                slots[k, LAST] = max(slots[k, LAST], done)
                slots[k, FLAGS] = known | READ
            k = reads.offset[stop - 1] - low
            if 0 <= k < size:
                slots[k, SHOWN] = min(slots[k, SHOWN], done)
        end = reads.end[r] - low
        if reads.end[r] >= 0 and (reads.strong[r] or all_strong):
            if 0 <= end < size:
                slots[end, ENDED] = max(slots[end, ENDED], reads.invoke[r])
            if 0 < end <= size:
                slots[end - 1, SHOWN] = min(slots[end - 1, SHOWN], done)


@compiled
def merge(slots: Array, other: Array, at: int) -> None:
    """Add partial slots, the first of which is slot `at` (it may be outside)."""
    for i in range(max(0, -at), min(len(other), len(slots) - at)):
        k = at + i
        mine, its = slots[k, FLAGS], other[i, FLAGS]
        flags = mine | its
        if mine & its & HELD:
            flags |= BAD
        if its & (HELD | READ):
            if mine & (HELD | READ) and slots[k, VALUE] != other[i, VALUE]:
                flags |= BAD
            slots[k, VALUE] = other[i, VALUE]
        if slots[k, EPOCH] >= 0 and other[i, EPOCH] >= 0 and slots[k, EPOCH] != other[i, EPOCH]:
            flags |= BAD
        slots[k, EPOCH] = max(slots[k, EPOCH], other[i, EPOCH])
        slots[k, ENDED] = max(slots[k, ENDED], other[i, ENDED])
        slots[k, LAST] = max(slots[k, LAST], other[i, LAST])
        for column in (INVOKE, ACK, SHOWN, SEEN):
            slots[k, column] = min(slots[k, column], other[i, column])
        slots[k, FLAGS] = flags

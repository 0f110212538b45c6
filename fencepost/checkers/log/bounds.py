"""Bounds on the moments at which a log grew, and the search for two that contradict each other.

Owns `Bounds` (steps 2 and 3) and the clock arithmetic of a pair. p_k is the moment the log grew to include
offset k: p_0 <= p_1 <= ... Each operation bounds it from below or from above. A chain exists if and only if
no lower bound at i exceeds an upper bound at j >= i. Must not know what such a pair is called. Clock
uncertainty e: stamps of one clock keep their order, so such a pair is cleared by no e; a pair from two clocks
is cleared by e >= (lower - upper) / 2.
"""

import numpy as np
from attrs import evolve, frozen

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import Kind
from fencepost.checkers.log.group import PartitionLog
from fencepost.checkers.operation_columns import NEVER, Array


@frozen(kw_only=True, eq=False)
class Bounds:
    """Bounds on p at `index`: moments, the clocks that stamped them, and the operations they come from (as
    positions in a relation)."""

    index: Array
    time: Array
    clock: Array
    row: Array

    def where(self, kept: Array) -> "Bounds":
        """The bounds that `kept` (a mask) selects."""
        return Bounds(
            index=self.index[kept], time=self.time[kept], clock=self.clock[kept], row=self.row[kept]
        )


@frozen(kw_only=True)
class Pair:
    """A lower bound above an upper one: positions of both in their Bounds' rows, and the smallest uncertainty
    that clears it (-1: none)."""

    low: int
    high: int
    uncertainty: int


def appended(group: PartitionLog) -> Bounds:
    """Lower bounds: a record stands in no log before its append was invoked. Rows: appends."""
    placed = group.placements
    known = placed.append >= 0
    row = placed.append[known]
    return Bounds(
        index=placed.base[known], time=group.appends.invoke[row], clock=group.appends.clock[row], row=row
    )


def acknowledgements(group: PartitionLog) -> Bounds:
    """Upper bounds: what a firm append was told stands in the log when it was told, if anybody knows when
    that was. Rows: appends."""
    appends = group.appends
    row = np.flatnonzero((appends.kind == Kind.FIRM) & (appends.completion != NEVER))
    last = group.below_loss(appends.base[row] + np.diff(appends.start)[row] - 1)
    bounds = Bounds(index=last, time=appends.completion[row], clock=appends.clock[row], row=row)
    return bounds.where(last >= 0)


def claimed_ends(group: PartitionLog) -> Bounds:
    """Lower bounds: at some moment of a strong read, the offset at its end was not in the log yet. Rows:
    reads."""
    reads = group.reads
    row = np.flatnonzero(group.strong)
    bounds = Bounds(index=reads.end[row], time=reads.invoke[row], clock=reads.clock[row], row=row)
    return bounds.where(~group.loss_allowed(bounds.index))


def shows(group: PartitionLog, below_slot: bool = False) -> Bounds:
    """Upper bounds: offsets that a read showed to be in the log, by its last record or by its end (or log
    start, or last stable offset, neither of which is above the end). Rows: reads.

    below_slot: charge a record to the offset below its batch instead of to the batch's end.
    """
    reads = group.reads
    row = np.flatnonzero(np.diff(reads.start) > 0)
    highest = np.maximum.reduceat(reads.offset, reads.start[row]) if len(row) else row
    base, last = group.placements.slot_of(highest)
    clear = group.below_loss(highest)
    by_record = np.where(clear < highest, clear, base - 1 if below_slot else last)
    reach = np.maximum(np.maximum(group.log_start, group.stable), np.where(group.strong, reads.end, -1))
    claimed = np.flatnonzero(reach >= 0)
    index = np.concatenate((by_record, group.below_loss(reach[claimed] - 1)))
    row = np.concatenate((row, claimed))
    bounds = Bounds(index=index, time=reads.completion[row], clock=reads.clock[row], row=row)
    return bounds.where(index >= 0)


def worst_pair(low: Bounds, high: Bounds, uncertainty: int) -> Pair | None:
    """The pair low.index <= high.index, low.time > high.time that is hardest to clear; None if `uncertainty`
    clears all."""
    if not len(low.index) or not len(high.index):
        return None
    low = low.where(np.argsort(low.index, kind="stable"))
    high = high.where(np.argsort(high.index, kind="stable"))
    clocks, coded = np.unique(np.concatenate((low.clock, high.clock)), return_inverse=True)
    low = evolve(low, clock=coded[: len(low.index)])
    high = evolve(high, clock=coded[len(low.index) :])
    same_low, same_high, cross_low, cross_high = _worst(
        low.index, low.time, low.clock, high.index, high.time, high.clock, len(clocks)
    )
    if same_low >= 0:
        return Pair(low=int(low.row[same_low]), high=int(high.row[same_high]), uncertainty=-1)
    if cross_low < 0:
        return None
    clears = clearing(int(low.time[cross_low]), int(high.time[cross_high]))
    return (
        Pair(low=int(low.row[cross_low]), high=int(high.row[cross_high]), uncertainty=clears)
        if clears > uncertainty
        else None
    )


def clearing(low: int, high: int) -> int:
    """The smallest uncertainty that clears a lower bound above an upper one of another clock."""
    return -((high - low) // 2)


@compiled
def _worst(
    low_index: Array,
    low_time: Array,
    low_clock: Array,
    high_index: Array,
    high_time: Array,
    high_clock: Array,
    clocks: int,
) -> tuple[int, int, int, int]:
    """Of pairs in violation, the widest of one clock and the widest of two (positions, -1 if none). Bounds
    sorted by index.

    The latest lower bound so far is kept per clock; `first` and `second` are the latest of two different
    clocks.
    """
    latest = np.full(clocks, -1, np.int64)
    first = second = same_low = same_high = cross_low = cross_high = -1
    same_gap = cross_gap = 0
    p = 0
    for h in range(len(high_index)):
        while p < len(low_index) and low_index[p] <= high_index[h]:
            clock, time = low_clock[p], low_time[p]
            if latest[clock] < 0 or time > low_time[latest[clock]]:
                latest[clock] = p
            if first < 0 or time > low_time[first]:
                if first >= 0 and low_clock[first] != clock:
                    second = first
                first = p
            elif clock != low_clock[first] and (second < 0 or time > low_time[second]):
                second = p
            p += 1
        same = latest[high_clock[h]]
        if same >= 0 and low_time[same] - high_time[h] > same_gap:
            same_low, same_high, same_gap = same, h, low_time[same] - high_time[h]
        cross = second if first >= 0 and low_clock[first] == high_clock[h] else first
        if cross >= 0 and low_time[cross] - high_time[h] > cross_gap:
            cross_low, cross_high, cross_gap = cross, h, low_time[cross] - high_time[h]
    return same_low, same_high, cross_low, cross_high

"""Bounds on the moments at which a log grew, and the search for two bounds that contradict each other.

Owns `Bounds` (steps 2 and 3) and the arithmetic of clocks for a pair. p_k is the moment at which the log grew
to include offset k: p_0 <= p_1 <= ... Each operation gives a lower or an upper bound of such a moment.
Moments that satisfy all bounds exist if and only if no lower bound at i exceeds an upper bound at j >= i.
Must not know the names of anomalies. Clock uncertainty e: times of one clock keep their order, so no e
explains such a pair; a pair from two clocks is explained by e >= (lower - upper) / 2.
"""

import numpy as np
from attrs import evolve, frozen

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import Kind
from fencepost.checkers.log.one_log import PartitionLog
from fencepost.checkers.operation_columns import NEVER, Array

LONG_AGO = int(np.iinfo(np.int64).min)


@frozen(kw_only=True, eq=False)
class Bounds:
    """Bounds on p at `index`: times, the clocks of these times, and the operations that give the bounds (as
    positions in a relation)."""

    index: Array
    time: Array
    clock: Array
    row: Array

    def where(self, kept: Array) -> "Bounds":
        """The bounds that the mask `kept` selects."""
        return Bounds(
            index=self.index[kept], time=self.time[kept], clock=self.clock[kept], row=self.row[kept]
        )


@frozen(kw_only=True)
class Pair:
    """A lower bound above an upper bound: the rows of both in their Bounds, and the smallest uncertainty that
    explains it (-1: none does)."""

    low: int
    high: int
    uncertainty: int


def appended(group: PartitionLog) -> Bounds:
    """Lower bounds: a record is not in the log before the invocation of its append. Rows: appends."""
    placed = group.placements
    known = placed.append >= 0
    row = placed.append[known]
    return Bounds(
        index=placed.base[known], time=group.appends.invoke[row], clock=group.appends.clock[row], row=row
    )


def acknowledgements(group: PartitionLog) -> Bounds:
    """Upper bounds: the records of a firm append are in the log when it is acknowledged, if that time is
    known. Rows: appends."""
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
    """Upper bounds: a read shows offsets that are in the log, by its last record or by its end (or log start,
    or last stable offset, which are never above the end). Rows: reads.

    below_slot: assign a record to the offset below its batch instead of to the end of the batch.
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
    """The pair with low.index <= high.index and low.time > high.time that needs the largest uncertainty. None
    if `uncertainty` explains all pairs."""
    if not len(low.index) or not len(high.index):
        return None
    low = in_order(low)
    if not contradicted(low, high).any():
        return None
    high = in_order(high)
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


def contradicted(low: Bounds, high: Bounds) -> Array:
    """Which upper bounds are below some lower bound at or below their index, whatever the clocks.

    Args:
        low: the lower bounds, sorted by index.
        high: the upper bounds.

    Returns:
        a mask over the upper bounds.
    """
    latest = np.concatenate(([LONG_AGO], np.maximum.accumulate(low.time)))
    mask: Array = latest[np.searchsorted(low.index, high.index, side="right")] > high.time
    return mask


def in_order(bounds: Bounds) -> Bounds:
    """The bounds sorted by index."""
    return bounds.where(np.argsort(bounds.index, kind="stable"))


def clearing(low: int, high: int) -> int:
    """The smallest uncertainty that explains the lower bound `low` above the upper bound `high` of another
    clock, all in nanoseconds."""
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
    """Of the contradicting pairs, the one with the largest gap for one clock and for two clocks (positions,
    -1 if none). Bounds must be sorted by index.

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

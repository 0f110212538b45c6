"""Steps 2 to 4: does a monotone chain of moments exist at which the log grew, and if not, which two operations forbid it?

Owns the bounds and the certificates of real time. p_k is the moment the log grew to include offset k: p_0 <= p_1 <= ... Each operation
bounds it from below (`Bounds` of an append, of a strong read that claimed end k) or from above (an acknowledgement, a read that showed k). A chain
exists if and only if no lower bound at i exceeds an upper bound at j >= i; which kinds meet names the anomaly. Clock uncertainty e: stamps of one clock
keep their order, so such a pair is cleared by no e; a pair from two clocks is cleared by e >= (lower - upper) / 2.
"""

from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen

from fencepost.checkers.columns import Array
from fencepost.checkers.log.columns import Kind
from fencepost.checkers.log.group import Group
from fencepost.checkers.log.kernels import LONG_AGO, compiled
from fencepost.checkers.verdict import Finding


@frozen(kw_only=True, eq=False)
class Bounds:
    """Bounds on p at `index`: moments, the clocks that stamped them, and the operations they come from (as positions in a relation)."""

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
    """A lower bound above an upper one: positions of both in their Bounds' rows, and the smallest uncertainty that clears it (-1: none)."""

    low: int
    high: int
    uncertainty: int


def chain_findings(group: Group) -> Iterator[Finding]:
    """At most one finding, the hardest to clear, for each anomaly of real time."""
    sent, acknowledged = appended(group), acknowledgements(group)
    ended, shown = claimed_ends(group), shows(group)
    lost = _lost(group, ended, acknowledged)
    yield from _append_inversion(group, worst_pair(sent, acknowledged, group.uncertainty))
    yield from _read_before_sent(group)
    # a read that saw slot j forbids later appends below j's batch; that it saw j's own append too early is read_before_sent
    yield from _append_below(group, worst_pair(sent, shows(group, below_slot=True), group.uncertainty))
    yield from _stale(group, worst_pair(ended, acknowledged.where(lost), group.uncertainty), "lost_write")
    yield from _stale(group, worst_pair(ended, acknowledged.where(~lost), group.uncertainty), "stale_read")
    yield from _regressed(group, worst_pair(ended, shown, group.uncertainty))


def appended(group: Group) -> Bounds:
    """Lower bounds: a record stands in no log before its append was invoked. Rows: appends."""
    placed = group.placements
    known = placed.append >= 0
    row = placed.append[known]
    return Bounds(
        index=placed.base[known], time=group.appends.invoke[row], clock=group.appends.clock[row], row=row
    )


def acknowledgements(group: Group) -> Bounds:
    """Upper bounds: what a firm append was told stands in the log when it was told. Rows: appends."""
    appends = group.appends
    row = np.flatnonzero(appends.kind == Kind.FIRM)
    last = group.below_loss(appends.base[row] + np.diff(appends.start)[row] - 1)
    bounds = Bounds(index=last, time=appends.completion[row], clock=appends.clock[row], row=row)
    return bounds.where(last >= 0)


def claimed_ends(group: Group) -> Bounds:
    """Lower bounds: at some moment of a strong read, the offset at its end was not in the log yet. Rows: reads."""
    reads = group.reads
    row = np.flatnonzero(group.strong)
    bounds = Bounds(index=reads.end[row], time=reads.invoke[row], clock=reads.clock[row], row=row)
    return bounds.where(~group.loss_allowed(bounds.index))


def shows(group: Group, below_slot: bool = False) -> Bounds:
    """Upper bounds: offsets that a read showed to be in the log, by its last record or by its end. Rows: reads.

    below_slot: charge a record to the offset below its batch instead of to the batch's end.
    """
    reads = group.reads
    row = np.flatnonzero(np.diff(reads.start) > 0)
    highest = np.maximum.reduceat(reads.offset, reads.start[row]) if len(row) else row
    base, last = group.placements.slot_of(highest)
    clear = group.below_loss(highest)
    by_record = np.where(clear < highest, clear, base - 1 if below_slot else last)
    strong = np.flatnonzero(group.strong)
    index = np.concatenate((by_record, group.below_loss(reads.end[strong] - 1)))
    row = np.concatenate((row, strong))
    bounds = Bounds(index=index, time=reads.completion[row], clock=reads.clock[row], row=row)
    return bounds.where(index >= 0)


def worst_pair(low: Bounds, high: Bounds, uncertainty: int) -> Pair | None:
    """The pair low.index <= high.index, low.time > high.time that is hardest to clear; None if `uncertainty` clears all."""
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
    """Of pairs in violation, the widest of one clock and the widest of two (positions, -1 if none). Bounds sorted by index.

    The latest lower bound so far is kept per clock; `first` and `second` are the latest of two different clocks.
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


def _lost(group: Group, ended: Bounds, acknowledged: Bounds) -> Array:
    """Of the acknowledgements, which are of records that no read shows once a strong read has ended at or before them."""
    appends, seen = group.appends, group.evidence
    last_shown = np.full(len(appends.kind), LONG_AGO)
    read = np.flatnonzero((seen.row >= 0) & (seen.sender >= 0))
    np.maximum.at(last_shown, seen.sender[read], group.reads.completion[seen.row[read]])
    order = np.argsort(ended.index, kind="stable")
    latest = np.concatenate(([LONG_AGO], np.maximum.accumulate(ended.time[order])))
    missing = latest[np.searchsorted(ended.index[order], acknowledged.index, side="right")]
    at_risk = group.loss_allowed(
        appends.base[acknowledged.row] + np.diff(appends.start)[acknowledged.row] - 1
    )
    return ~at_risk & (missing > last_shown[acknowledged.row])


def _append_inversion(group: Group, pair: Pair | None) -> Iterator[Finding]:
    if pair is None:
        return
    appends = group.appends
    i, j = pair.low, pair.high
    yield group.finding(
        "append_inversion",
        offset=_offset_of(group, i),
        operations=(int(appends.op_id[i]), int(appends.op_id[j])),
        expected=f"operation {appends.op_id[i]}, invoked at {appends.invoke[i]}, above offset {appends.base[j]}, "
        f"which operation {appends.op_id[j]} was told by {appends.completion[j]}",
        seen=f"operation {appends.op_id[i]} stands at offset {_offset_of(group, i)}",
        uncertainty=pair.uncertainty,
    )


def _offset_of(group: Group, append: int) -> int:
    """The lowest base at which an append stands."""
    placed = group.placements
    return int(placed.base[placed.append == append].min())


def _read_before_sent(group: Group) -> Iterator[Finding]:
    appends, reads, seen = group.appends, group.reads, group.evidence
    rows = np.flatnonzero((seen.row >= 0) & (seen.sender >= 0))
    gap = appends.invoke[seen.sender[rows]] - reads.completion[seen.row[rows]]
    same = appends.clock[seen.sender[rows]] == reads.clock[seen.row[rows]]
    bad = (gap > 0) & (same | ((gap + 1) // 2 > group.uncertainty))
    if not bad.any():
        return
    rows, gap, same = rows[bad], gap[bad], same[bad]
    worst = int(np.lexsort((gap, same))[-1])
    i = rows[worst]
    append, read = seen.sender[i], seen.row[i]
    yield group.finding(
        "read_before_sent",
        offset=int(seen.offset[i]),
        operations=(int(appends.op_id[append]), int(reads.op_id[read])),
        expected=f"no read of value {seen.value[i]} before operation {appends.op_id[append]} was invoked at {appends.invoke[append]}",
        seen=f"operation {reads.op_id[read]} had read it at offset {seen.offset[i]} by {reads.completion[read]}",
        uncertainty=-1 if same[worst] else int(gap[worst] + 1) // 2,
    )


def _append_below(group: Group, pair: Pair | None) -> Iterator[Finding]:
    if pair is None:
        return
    appends, reads = group.appends, group.reads
    i, r = pair.low, pair.high
    yield group.finding(
        "append_below_shown_end",
        offset=_offset_of(group, i),
        operations=(int(appends.op_id[i]), int(reads.op_id[r])),
        expected=f"operation {appends.op_id[i]}, invoked at {appends.invoke[i]}, at or above {_showed(group, r)}",
        seen=f"operation {appends.op_id[i]} stands at offset {_offset_of(group, i)}",
        uncertainty=pair.uncertainty,
    )


def _showed(group: Group, read: int) -> str:
    """How far a read showed the log to reach."""
    reads = group.reads
    records = reads.offset[reads.start[read] : reads.start[read + 1]]
    reach = max([int(reads.end[read])] * bool(group.strong[read]) + [int(o) + 1 for o in records])
    return f"the end {reach} that operation {reads.op_id[read]} had shown by {reads.completion[read]}"


def _stale(group: Group, pair: Pair | None, anomaly: str) -> Iterator[Finding]:
    if pair is None:
        return
    appends, reads = group.appends, group.reads
    r, j = pair.low, pair.high
    last = appends.base[j] + (appends.start[j + 1] - appends.start[j] - 1)
    never = ", and no later read shows that record" if anomaly == "lost_write" else ""
    yield group.finding(
        anomaly,
        offset=int(last),
        operations=(int(reads.op_id[r]), int(appends.op_id[j])),
        expected=f"an end above offset {last}, which operation {appends.op_id[j]} was told by {appends.completion[j]}",
        seen=f"operation {reads.op_id[r]}, invoked at {reads.invoke[r]}, claimed end {reads.end[r]}{never}",
        uncertainty=pair.uncertainty,
    )


def _regressed(group: Group, pair: Pair | None) -> Iterator[Finding]:
    if pair is None:
        return
    reads = group.reads
    later, earlier = pair.low, pair.high
    yield group.finding(
        "high_watermark_regressed",
        offset=int(reads.end[later]),
        operations=(int(reads.op_id[later]), int(reads.op_id[earlier])),
        expected=f"no end below {_showed(group, earlier)}",
        seen=f"operation {reads.op_id[later]}, invoked at {reads.invoke[later]}, claimed end {reads.end[later]}",
        uncertainty=pair.uncertainty,
    )

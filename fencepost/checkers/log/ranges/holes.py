"""Step 5 by ranges: the holes of a log that is not in memory as a whole, and the operations that bound when
they were filled.

Owns the runs of holes that ranges report, and which operations bound them. Must not know whether appends fit
into them (log.holes), or files.
"""

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from fencepost.checkers.log.appends_and_reads import Appends, Kind, Reads
from fencepost.checkers.log.holes import Holes
from fencepost.checkers.log.one_log import PartitionLog
from fencepost.checkers.log.ranges.decide import RangeSummary, Soft
from fencepost.checkers.log.ranges.partial import S_CLOCK, S_COUNT, S_FAILED, S_INVOKE, S_NTH
from fencepost.checkers.operation_columns import Array

MOST_RUNS = 100_000
"""The most runs of holes, times clocks, for which bounds are collected."""


@frozen(kw_only=True, eq=False)
class Runs:
    """holes: as in the plain check; too_many: why they are not checked ("" if they are)."""

    holes: Holes
    too_many: str


def runs_of(
    summaries: Sequence[RangeSummary], soft: Soft, group: PartitionLog | None, offsets: Array
) -> Runs:
    """All runs, and the appends that may fill them. group: the kept part of the log (None: nothing). offsets:
    the sorted offsets in question, for which `group` is more precise than the slots."""
    none = np.empty(0, np.int64)
    base, last, ends = none, none, none
    if group is not None:
        base, last, ends = group.placements.base, group.placements.last, group.reads.end[group.strong]
    known = max(int(last.max(initial=-1)) + 1, int(ends.max(initial=0)), *(one.known for one in summaries))
    empty = np.concatenate([one.empty for one in summaries], axis=1)
    clean = empty[:, ~np.isin(empty[0], offsets)]
    asked = offsets[offsets >= 0]
    at = np.searchsorted(base, asked, side="right")
    covered = np.concatenate(([-1], np.maximum.accumulate(last)))[at] >= asked
    open_ = asked[~covered]
    offset = np.concatenate((clean[0], open_))
    ended = np.concatenate((clean[2] != 0, np.isin(open_, ends)))
    order = np.argsort(offset, kind="stable")
    order = order[offset[order] < known]
    offset, ended = offset[order], ended[order]
    begins = np.append(True, np.diff(offset) > 1)[: len(offset)] | ended
    start = offset[begins]
    length = np.diff(np.append(np.flatnonzero(begins), len(offset)))
    heads = _unplaced(summaries, soft, group)
    return Runs(
        holes=Holes(
            start=start,
            length=length,
            joined=np.zeros(len(start), np.bool_),
            open_ended=False,
            size=soft.rows[heads, S_COUNT],
            invoke=soft.rows[heads, S_INVOKE],
            clock=soft.rows[heads, S_CLOCK],
        ),
        too_many=f"{len(start)} runs of holes, more than {MOST_RUNS}" if len(start) > MOST_RUNS else "",
    )


def _unplaced(summaries: Sequence[RangeSummary], soft: Soft, group: PartitionLog | None) -> Array:
    """First rows of unknown appends that no read showed."""
    gone = np.concatenate([np.empty(0, np.int64), *(one.placed[:, 0] for one in summaries)])
    if group is not None:
        shown = group.placements.append[group.placements.append >= 0]
        values = group.appends.value[group.appends.start[shown]]
        gone = np.append(gone, soft.by_value[np.isin(soft.sorted_values, values)])
    heads = np.flatnonzero((soft.rows[:, S_NTH] == 0) & (soft.rows[:, S_FAILED] == 0))
    left: Array = np.setdiff1d(heads, gone)
    return left


def bounding(appends: Appends, reads: Reads, strong: Array, starts: Array) -> Array:
    """Op ids, of one batch, that determine the bounds of runs.

    These are the acknowledgements and reads that are the first of their clock to show the log beyond a start
    and not beyond the next one, and the latest operations.
    """
    firm = np.flatnonzero(appends.kind == Kind.FIRM)
    non_empty = np.flatnonzero(np.diff(reads.start) > 0)
    highest = np.maximum.reduceat(reads.offset, reads.start[non_empty]) if len(non_empty) else non_empty
    claims = np.flatnonzero(strong)
    last = appends.base[firm] + np.diff(appends.start)[firm] - 1
    ids = [
        _first(last, appends, firm, starts),
        _first(highest, reads, non_empty, starts),
        _first(reads.end[claims] - 1, reads, claims, starts),
    ]
    for times, rows in ((appends.invoke, appends.op_id), (reads.completion, reads.op_id)):
        if len(times):
            ids += [rows[[np.argmin(times)]], rows[[np.argmax(times)]]]
    return np.unique(np.concatenate(ids))


def _first(index: Array, relation: Appends | Reads, rows: Array, starts: Array) -> Array:
    """Of bounds at `index`, the first of each run and clock."""
    run = np.searchsorted(starts, index, side="right") - 1
    inside = run >= 0
    run, row = run[inside], rows[inside]
    clock, time = relation.clock[row], relation.completion[row]
    order = np.lexsort((np.arange(len(row)), time, clock, run))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(run[order]) != 0) | (np.diff(clock[order]) != 0)
    found: Array = relation.op_id[row[order[fresh]]]
    return found

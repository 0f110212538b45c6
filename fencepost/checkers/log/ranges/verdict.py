"""The last pass, over the summaries of a log's ranges: may the log break a rule?

Owns the decisions that involve several ranges. Must not know slots. Like all of this package it may suspect a
correct log but must never miss a wrong one.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from fencepost.checkers.log.ranges.decide import Demands, RangeSummary, Soft
from fencepost.checkers.log.ranges.partial import S_COUNT, S_FAILED, S_INVOKE, S_NTH
from fencepost.checkers.log.ranges.slots import LONG_AGO
from fencepost.checkers.operation_columns import NEVER, Array


def reasons_of(
    summaries: Sequence[RangeSummary], soft: Soft, sessions: Array, demands: Demands
) -> tuple[str, ...]:
    """Why the log needs a closer look; () if it keeps every rule.

    summaries: of the ranges with content (of all ranges up to the last, if offsets are dense). sessions: as
    in Partial, of all batches in order.
    """
    ordered = sorted(summaries, key=lambda found: found.number)
    reasons = [reason for found in ordered for reason in found.reasons]
    if demands.timed and _bounds_break(ordered):
        reasons.append("bounds in time that contradict each other")
    if _epochs_regress(ordered):
        reasons.append("leader epochs that decrease")
    placed = np.unique(
        np.concatenate([np.empty((0, 2), np.int64), *(found.placed for found in ordered)]), axis=0
    )
    if not demands.duplicates and (np.diff(placed[:, 0]) == 0).any():
        reasons.append("an append at two offsets")
    if demands.dense and not demands.duplicates and _holes_unfilled(ordered, soft, placed, demands.timed):
        reasons.append("offsets without a known append")
    if len(sessions_in_question(sessions)):
        reasons.append("a session that goes back")
    return tuple(dict.fromkeys(reasons))


def unread(summaries: Iterable[RangeSummary]) -> Array:
    """The offsets of acknowledged records that no read returned and that no strong read followed, in
    order."""
    found = list(summaries)
    latest = max((one.ended for one in found), default=LONG_AGO)
    every = np.concatenate([np.empty((2, 0), np.int64), *(one.unread for one in found)], axis=1)
    return np.sort(every[0, every[1] > latest])


def twice(summaries: Iterable[RangeSummary], soft: Soft) -> Array:
    """The offsets of appends that are at more than one offset.

    Args:
        summaries: the summaries of the ranges.
        soft: the appends that are not firm.

    Returns:
        the offsets.
    """
    placed = np.unique(
        np.concatenate([np.empty((0, 2), np.int64), *(found.placed for found in summaries)]), axis=0
    )
    again = np.diff(placed[:, 0]) == 0
    rows = placed[np.append(again, False) | np.append(False, again)] if len(placed) else placed
    found = [np.arange(base, base + soft.rows[row, S_COUNT]) for row, base in rows.tolist()]
    return np.unique(np.concatenate([np.empty(0, np.int64), *found]))


def _bounds_break(ordered: Iterable[RangeSummary]) -> bool:
    """Step 3 between ranges: a lower bound above an upper bound of a later range."""
    latest = LONG_AGO
    for found in ordered:
        if latest > found.earliest:
            return True
        latest = max(latest, found.latest)
    return False


def _epochs_regress(ordered: Iterable[RangeSummary]) -> bool:
    last = -1
    for found in ordered:
        first, highest = found.epochs
        if 0 <= first < last:
            return True
        last = max(last, highest)
    return False


def _holes_unfilled(ordered: Sequence[RangeSummary], soft: Soft, placed: Array, timed: bool) -> bool:
    """Step 5 for single-record appends. With batches among the candidates it is bin packing, which the closer
    look does."""
    known = max((found.known for found in ordered), default=0)
    later, offsets, deadlines = NEVER, [], []
    for found in reversed(ordered):
        inside = found.empty[0] < known
        offsets.append(found.empty[0][inside])
        deadlines.append(np.minimum(found.empty[1][inside], later))
        later = min(later, found.earliest)
    holes = np.concatenate([np.empty(0, np.int64), *offsets])
    if not len(holes):
        return False
    deadline = np.concatenate(deadlines)[np.argsort(holes)] if timed else np.full(len(holes), NEVER)
    heads = np.flatnonzero((soft.rows[:, S_NTH] == 0) & (soft.rows[:, S_FAILED] == 0))
    open_ = np.setdiff1d(heads, placed[:, 0])
    if (soft.rows[open_, S_COUNT] > 1).any():
        return True
    invoked = np.sort(soft.rows[open_, S_INVOKE])
    return bool((np.searchsorted(invoked, deadline, side="right") < np.arange(1, len(holes) + 1)).any())


def sessions_in_question(sessions: Array) -> Array:
    """Rows in the order of batches: the (process, session, epoch) that go back from one batch to a later one,
    or may do so (their operations of two batches overlap)."""
    order = np.lexsort((sessions[:, 3], *sessions[:, 2::-1].T))
    rows = sessions[order]
    same = (rows[1:, :3] == rows[:-1, :3]).all(axis=1)
    begins = np.concatenate(([True], ~same))[: len(rows)]
    highest, found = [LONG_AGO] * 9, np.zeros(len(rows), np.bool_)
    for n, (row, fresh) in enumerate(zip(rows.tolist(), begins.tolist(), strict=True)):
        found[n] = not fresh and (row[3] <= highest[4] or row[5] < highest[6] or row[7] < highest[8])
        highest = row if fresh else list(map(max, highest, row))
    return np.unique(rows[found, :3], axis=0)

"""Which slots of a suspicious log are in question, and which operations refer to them.

Owns this choice. It includes every slot at which a rule may be broken, not only the first few, because the
choice among several certificates depends on all of them. Must not know files, or the rules of the plain
check, which run on the chosen operations (`closer`).

A slot is in question by content if a record is where it cannot be. It is in question by time if one of its
bounds contradicts a bound of the same slot, or of one on the other side (a lower bound contradicts upper
bounds at or above it). All operations of any other slot agree about it and contradict no operation, so they
are in no certificate.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import frozen

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import Appends, Kind, Reads
from fencepost.checkers.log.ranges.decide import Demands, RangeSummary, Soft, merged, resolved, told_wrong
from fencepost.checkers.log.ranges.slots import ACK, ENDED, EPOCH, FLAGS, INVOKE, JOINED, LONG_AGO, SHOWN
from fencepost.checkers.operation_columns import NEVER, Array


@frozen(kw_only=True, eq=False)
class Moments:
    """Bounds that do not come from slots, as two rows each: offsets and times."""

    # As in step 2 of the log check.
    lower: Array
    upper: Array

    @classmethod
    def none(cls) -> "Moments":
        """No bounds."""
        return cls(lower=np.empty((2, 0), np.int64), upper=np.empty((2, 0), np.int64))


@frozen(kw_only=True, eq=False)
class Beside:
    """What one range must know about the others."""

    # The latest lower bound below it.
    latest: int
    # The earliest upper bound above it.
    earliest: int
    # The highest leader epoch below it and the lowest offset that has it (-1: none).
    epoch: int
    epoch_at: int
    # Bounds that do not come from slots, including those of this range.
    moments: Moments


def beside(summaries: Sequence[RangeSummary], width: int, moments: Moments) -> list[Beside]:
    """What each range must know about the others.

    Args:
        summaries: the summaries of all ranges, in order.
        width: offsets of a range.
        moments: bounds that do not come from slots.

    Returns:
        one entry per range, in order.
    """
    latest, epoch, epoch_at = LONG_AGO, -1, -1
    before = []
    for one in summaries:
        start = one.number * width
        below = moments.lower[1][moments.lower[0] < start]
        before.append((max(latest, int(below.max(initial=LONG_AGO))), epoch, epoch_at))
        latest = max(latest, one.latest)
        if one.epochs[1] > epoch:
            epoch, epoch_at = one.epochs[1], one.highest_at
    earliest, after = NEVER, []
    for one in reversed(summaries):
        stop = (one.number + 1) * width
        above = moments.upper[1][moments.upper[0] >= stop]
        after.append(min(earliest, int(above.min(initial=NEVER))))
        earliest = min(earliest, one.earliest)
    return [
        Beside(latest=latest, earliest=earliest, epoch=epoch, epoch_at=epoch_at, moments=moments)
        for (latest, epoch, epoch_at), earliest in zip(before, reversed(after), strict=True)
    ]


def in_question(
    number: int,
    pieces: Iterable[tuple[int, Array]],
    soft: Soft,
    gaps: Array,
    demands: Demands,
    others: Beside,
) -> Array:
    """Find the slots of one range that are in question.

    Args:
        number: the range.
        pieces: (offset of the first slot, slots) of everything that refers to the range.
        soft: the appends that are not firm.
        gaps: ranges [start, stop) that reads passed over.
        demands: the rules for the log.
        others: what the range must know about the others.

    Returns:
        offsets of this range that are in question, and offsets of other ranges that contradict them.
    """
    window = merged(number, pieces, demands)
    strange = np.union1d(
        resolved(window, soft, demands).strange, told_wrong(soft, window.slots, window.low) - window.low
    )
    slots, core, end, low = window.slots, window.core, window.end, window.low
    flags = slots[:, FLAGS]
    torn = np.flatnonzero((flags[core:end] & JOINED != 0) & (slots[core:end, ENDED] != LONG_AGO)) + core
    occupied = np.flatnonzero(slots[core:end, INVOKE] != NEVER) + core
    at = np.searchsorted(occupied + low, gaps[:, 0])
    passed = occupied[at[at < np.searchsorted(occupied + low, gaps[:, 1])]]
    found = np.unique(np.concatenate((strange, torn, passed)))
    if demands.timed:
        lower, upper = np.full(len(slots), LONG_AGO), np.full(len(slots), NEVER)
        _charge(lower, others.moments.lower, low, np.maximum)
        _charge(upper, others.moments.upper, low, np.minimum)
        found = np.union1d(
            found,
            np.flatnonzero(_contradicting(slots, core, end, lower, upper, others.latest, others.earliest)),
        )
    offsets = np.union1d(found + low, _epochs_in_question(slots, core, end, low, strange, others))
    return _with_batches(slots, low, offsets)


def _charge(bounds: Array, moments: Array, low: int, by: np.ufunc) -> None:
    """Add bounds of the window from `low` on."""
    inside = (moments[0] >= low) & (moments[0] < low + len(bounds))
    by.at(bounds, moments[0][inside] - low, moments[1][inside])


@compiled
def _contradicting(
    slots: Array, core: int, end: int, lower: Array, upper: Array, latest: int, earliest: int
) -> Array:
    """A mask over the window: the lower bounds that exceed an upper bound at or above them, and the upper
    bounds that are exceeded by a lower bound at or below them."""
    found = np.zeros(len(slots), np.bool_)
    carried = NEVER
    for k in range(end):
        shown = slots[k, SHOWN]
        if slots[k, FLAGS] & JOINED:
            shown = min(shown, carried)
        carried = shown
        upper[k] = min(upper[k], shown, slots[k, ACK])
        if slots[k, INVOKE] != NEVER:
            lower[k] = max(lower[k], slots[k, INVOKE])
        lower[k] = max(lower[k], slots[k, ENDED])
        if k >= core:
            latest = max(latest, lower[k])
            found[k] = latest > upper[k]
    for k in range(end - 1, core - 1, -1):
        earliest = min(earliest, upper[k])
        found[k] |= lower[k] > earliest
    return found


def _epochs_in_question(slots: Array, core: int, end: int, low: int, strange: Array, others: Beside) -> Array:
    """The lowest offset of the range with a leader epoch below an earlier one. For it and every strange slot:
    the offset of the highest epoch below it."""
    epochs = np.concatenate(([others.epoch], slots[core:end, EPOCH]))
    places = np.concatenate(([others.epoch_at], np.arange(core, end) + low))
    highest = np.maximum.accumulate(epochs)
    risen = np.concatenate(([True], highest[1:] > highest[:-1]))
    top = places[np.maximum.accumulate(np.where(risen, np.arange(len(epochs)), 0))]
    falls = np.flatnonzero((epochs[1:] >= 0) & (epochs[1:] < highest[:-1]))[:1]
    asked = np.concatenate((falls, strange[(strange >= core) & (strange < end)] - core))
    found = np.unique(np.concatenate((falls + core + low, top[:-1][asked])))
    return found[found >= 0]


def _with_batches(slots: Array, low: int, offsets: Array) -> Array:
    """These slots and the rest of the batches that the window shows there: a read of one record of a batch
    shows the whole batch."""
    joined = slots[:, FLAGS] & JOINED != 0
    if not joined.any():
        return offsets
    batch = np.cumsum(~joined)
    inside = offsets[(offsets >= low) & (offsets < low + len(slots))] - low
    wanted = np.zeros(int(batch[-1]) + 1, np.bool_)
    wanted[batch[inside]] = True
    return np.union1d(offsets, np.flatnonzero(wanted[batch]) + low)


@frozen(kw_only=True, eq=False)
class Wanted:
    """Which operations to keep; all arrays are sorted.

    Attributes:
        offsets: keep operations that refer to these or pass over them.
        values: keep operations that send or show these.
        senders: keep operations that send these.
        ids: keep these operations.
        sessions: keep reads of these (rows of process, session, leader epoch).
    """

    offsets: Array
    values: Array
    senders: Array
    ids: Array
    sessions: Array


def concerning(appends: Appends, reads: Reads, strong: Array, wanted: Wanted) -> Array:
    """Op ids of the wanted operations of one batch of one log. strong: which reads claim an end that is
    trusted."""
    offsets, begin = wanted.offsets, appends.base
    stop = begin + np.diff(appends.start)
    kept = (appends.kind != Kind.FAILED) & (begin >= 0)
    kept &= np.searchsorted(offsets, begin) < np.searchsorted(offsets, stop)
    owner = np.repeat(np.arange(len(appends.kind)), np.diff(appends.start))
    sends = np.isin(appends.value, wanted.values) | np.isin(appends.value, wanted.senders)
    kept[owner[sends]] = True
    reader = np.repeat(np.arange(len(reads.op_id)), np.diff(reads.start))
    reading = np.zeros(len(reads.op_id), np.bool_)
    reading[reader[np.isin(reads.value, wanted.values)]] = True
    non_empty = np.flatnonzero(np.diff(reads.start) > 0)
    if len(non_empty):
        first = np.minimum.reduceat(reads.offset, reads.start[non_empty])
        last = np.maximum.reduceat(reads.offset, reads.start[non_empty])
        first = np.where(reads.position[non_empty] >= 0, np.minimum(first, reads.position[non_empty]), first)
        reading[non_empty] |= np.searchsorted(offsets, first) < np.searchsorted(offsets, last, side="right")
    reading |= strong & (np.isin(reads.end, offsets) | np.isin(reads.end - 1, offsets))
    for process, session, epoch in wanted.sessions.tolist():
        reading |= (reads.process == process) & (reads.session == session) & (reads.epoch == epoch)
    ids = np.concatenate((appends.op_id[kept], reads.op_id[reading]))
    named = np.concatenate((appends.op_id, reads.op_id))
    found: Array = np.union1d(ids, named[np.isin(named, wanted.ids)])
    return found

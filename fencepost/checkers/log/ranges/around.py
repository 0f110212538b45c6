"""Which slots of a suspected log are in question, and which operations say anything of them.

Owns that choice: every slot at which some rule may be broken, not the first few, because which of several
certificates is told depends on all. Must not know files, or the rules of the plain check, which judge what is
kept (`closer`).

A slot is in question by content if something does not stand where it can, and by time if a lower bound of it
exceeds an upper bound of it or of a later one, or the other way round. All operations of a slot that is not
in question agree about it and contradict nobody: they are in no certificate.
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
    """Bounds that slots do not tell, as two rows each: offsets and times. lower, upper: as step 2 of the log
    check names them."""

    lower: Array
    upper: Array

    @classmethod
    def none(cls) -> "Moments":
        """No bounds."""
        return cls(lower=np.empty((2, 0), np.int64), upper=np.empty((2, 0), np.int64))


@frozen(kw_only=True, eq=False)
class Beside:
    """What one range must know of the others. latest: lower bound below it; earliest: upper bound above it;
    epoch, epoch_at: the highest leader epoch below it and the lowest offset that has it (-1: none); moments:
    beside slots, of this range too."""

    latest: int
    earliest: int
    epoch: int
    epoch_at: int
    moments: Moments


def beside(summaries: Sequence[RangeSummary], width: int, moments: Moments) -> list[Beside]:
    """Of each range, in order."""
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
    """Offsets of one range that are in question, and those of others that they are in question with."""
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
    """A mask over the window: whose lower bound exceeds an upper one at or above it, or whose upper bound is
    exceeded by a lower one at or below it."""
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
    """The lowest offset of the range whose leader epoch is below an earlier one, and for it and every strange
    slot where the highest epoch below it stands."""
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
    """These and the rest of the batches that the window shows there: who saw one record of a batch saw the
    batch."""
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
    """Which operations to keep, all sorted. offsets: that say anything of these, or pass over them; values:
    that send or show these; senders: that send these; ids: these; sessions: reads of these (rows of process,
    session, leader epoch)."""

    offsets: Array
    values: Array
    senders: Array
    ids: Array
    sessions: Array


def concerning(appends: Appends, reads: Reads, strong: Array, wanted: Wanted) -> Array:
    """Op ids of what is wanted of one batch of one log. strong: which reads claim an end that may be
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
    told = np.flatnonzero(np.diff(reads.start) > 0)
    if len(told):
        first = np.minimum.reduceat(reads.offset, reads.start[told])
        last = np.maximum.reduceat(reads.offset, reads.start[told])
        first = np.where(reads.position[told] >= 0, np.minimum(first, reads.position[told]), first)
        reading[told] |= np.searchsorted(offsets, first) < np.searchsorted(offsets, last, side="right")
    reading |= strong & (np.isin(reads.end, offsets) | np.isin(reads.end - 1, offsets))
    for process, session, epoch in wanted.sessions.tolist():
        reading |= (reads.process == process) & (reads.session == session) & (reads.epoch == epoch)
    ids = np.concatenate((appends.op_id[kept], reads.op_id[reading]))
    named = np.concatenate((appends.op_id, reads.op_id))
    found: Array = np.union1d(ids, named[np.isin(named, wanted.ids)])
    return found

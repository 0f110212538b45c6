"""Where a closer look must be taken: the slots that certificates of a suspected log stand at, and the operations that say anything of them.

Owns the choice of slots (a few for each rule and range, and the widest contradictions in time), and what of a batch of operations is kept for them. Must not
know files. The kept operations are then examined by the plain rules. Each is kept whole, so what they show is true of the whole log: a certificate
names two operations and what they said.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import frozen

from fencepost.checkers.columns import NEVER, Array
from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.columns import Appends, Kind, Reads
from fencepost.checkers.ranges.decide import Demands, Soft, merged, resolved, told_wrong
from fencepost.checkers.ranges.partial import FEW
from fencepost.checkers.ranges.slots import (
    ACK,
    ENDED,
    EPOCH,
    FLAGS,
    INVOKE,
    JOINED,
    LAST,
    LONG_AGO,
    SHOWN,
)

KINDS = 5
"""Of contradictions in time."""


@frozen(kw_only=True)
class Peaks:
    """The latest invocation of an append, and of a strong read by its end, in a range, with their offsets; and known leader epochs: the first, and the highest,
    with their offsets."""

    sent: tuple[int, int]
    ended: tuple[int, int]
    first_epoch: tuple[int, int]
    highest_epoch: tuple[int, int]


@frozen(kw_only=True)
class Near:
    """Offsets in question, and the widest contradiction of each kind of bounds: (gap, offset of the lower bound, of the upper one)."""

    offsets: tuple[int, ...]
    widest: tuple[tuple[int, int, int], ...]


def peaks_of(number: int, pieces: Iterable[tuple[int, Array]], soft: Soft, demands: Demands) -> Peaks:
    """What later ranges must know of this one."""
    window = merged(number, pieces, demands)
    resolved(window, soft, demands)
    slots = window.slots[window.core : window.end]
    at = np.arange(len(slots)) + window.low + window.core

    def latest(column: int, nothing: int) -> tuple[int, int]:
        told = np.flatnonzero(slots[:, column] != nothing)
        if not len(told):
            return LONG_AGO, -1
        best = told[np.argmax(slots[told, column])]
        return int(slots[best, column]), int(at[best])

    known = np.flatnonzero(slots[:, EPOCH] >= 0)
    first = (int(slots[known[0], EPOCH]), int(at[known[0]])) if len(known) else (-1, -1)
    return Peaks(
        sent=latest(INVOKE, NEVER), ended=latest(ENDED, LONG_AGO), first_epoch=first, highest_epoch=latest(EPOCH, -1) if len(known) else (-1, -1)
    )  # fmt: skip


def near(
    number: int, pieces: Iterable[tuple[int, Array]], soft: Soft, gaps: Array, demands: Demands, before: Peaks
) -> Near:
    """What a closer look at one range needs. before: of all earlier ranges together."""
    window = merged(number, pieces, demands)
    strange = resolved(window, soft, demands).strange[:FEW] + window.low
    slots, core, end, low = window.slots, window.core, window.end, window.low
    found = [strange, told_wrong(soft, slots, low)[:FEW]]
    found.append(
        np.flatnonzero((slots[core:end, FLAGS] & JOINED != 0) & (slots[core:end, ENDED] != LONG_AGO))[:FEW]
        + low
        + core
    )
    found.append(_falls(slots[core:end, EPOCH], low + core, before))
    occupied = np.flatnonzero(slots[core:end, INVOKE] != NEVER) + low + core
    at = np.searchsorted(occupied, gaps[:, 0])
    held = at < np.searchsorted(occupied, gaps[:, 1])
    found.append(occupied[at[held]][:FEW])
    widest = np.zeros((KINDS, 3), np.int64)
    _widest(slots, core, end, low, *before.sent, *before.ended, widest)
    offsets = {
        other for offset in np.unique(np.concatenate(found)).tolist() for other in _batch(slots, low, offset)
    }
    return Near(
        offsets=tuple(sorted(offsets)), widest=tuple((int(gap), int(i), int(j)) for gap, i, j in widest)
    )


def _batch(slots: Array, low: int, offset: int) -> range:
    """The offsets of the batch that holds `offset`, as far as the window shows it: who saw one of its records saw the batch."""
    first = last = offset - low
    if not 0 <= first < len(slots):
        return range(offset, offset + 1)
    while first > 0 and slots[first, FLAGS] & JOINED:
        first -= 1
    while last + 1 < len(slots) and slots[last + 1, FLAGS] & JOINED:
        last += 1
    return range(low + first, low + last + 1)


def _falls(epochs: Array, start: int, before: Peaks) -> Array:
    """The first offsets whose leader epoch is below an earlier one, and where the highest epoch before the first of them stands."""
    highest = np.maximum.accumulate(np.concatenate(([before.highest_epoch[0]], epochs)))[:-1]
    falls = np.flatnonzero((epochs >= 0) & (epochs < highest))[:FEW]
    if not len(falls):
        return falls
    top = before.highest_epoch[1]
    if highest[falls[0]] != before.highest_epoch[0]:
        top = int(np.argmax(epochs == highest[falls[0]])) + start
    return np.append(falls + start, top)


@compiled
def _widest(
    slots: Array,
    core: int,
    end: int,
    low: int,
    sent: int,
    sent_at: int,
    ended: int,
    ended_at: int,
    widest: Array,
) -> None:
    """Kinds, in order: append above acknowledgement, append above read, end above acknowledgement of a record that no later read shows, and of one that some
    read does, end above read."""
    carried, shown_last = NEVER, LONG_AGO
    for k in range(end):
        shown, last = slots[k, SHOWN], slots[k, LAST]
        if slots[k, FLAGS] & JOINED:
            shown, last = min(shown, carried), max(last, shown_last)
        carried, shown_last = shown, last
        if k < core:
            continue
        if slots[k, INVOKE] != NEVER and slots[k, INVOKE] > sent:
            sent, sent_at = slots[k, INVOKE], low + k
        if slots[k, ENDED] > ended:
            ended, ended_at = slots[k, ENDED], low + k
        acked = slots[k, ACK]
        lost = 2 if ended > last else 3
        for kind, lower, at, upper in (
            (0, sent, sent_at, acked),
            (1, sent, sent_at, shown),
            (lost, ended, ended_at, acked),
            (4, ended, ended_at, shown),
        ):
            if at >= 0 and upper != NEVER and lower > upper and lower - upper > widest[kind, 0]:
                widest[kind, 0], widest[kind, 1], widest[kind, 2] = lower - upper, at, low + k


def latest_of(many: Sequence[Peaks]) -> Peaks:
    """Of ranges in order, as one."""
    none = (LONG_AGO, -1)
    epochs = [one.highest_epoch for one in many]
    return Peaks(
        sent=max((one.sent for one in many), key=lambda peak: peak[0], default=none),
        ended=max((one.ended for one in many), key=lambda peak: peak[0], default=none),
        first_epoch=(-1, -1),
        highest_epoch=max(epochs, key=lambda peak: peak[0], default=(-1, -1)),
    )


def concerning(
    appends: Appends, reads: Reads, strong: Array, offsets: Array, values: Array
) -> tuple[Array, Array]:
    """Op ids of the operations that say anything of `offsets` (sorted) and of the appends of `values` (sorted); the values that those reads show."""
    begin, stop = appends.base, appends.base + np.diff(appends.start)
    placed = (appends.kind != Kind.FAILED) & (begin >= 0)
    placed &= np.searchsorted(offsets, begin) < np.searchsorted(offsets, stop)
    owner = np.repeat(np.arange(len(appends.kind)), np.diff(appends.start))
    sent = np.zeros(len(appends.kind), np.bool_)
    sent[owner[np.isin(appends.value, values)]] = True
    reading = np.zeros(len(reads.op_id), np.bool_)
    reader = np.repeat(np.arange(len(reads.op_id)), np.diff(reads.start))
    told = np.flatnonzero(np.diff(reads.start) > 0)
    if len(told):  # whether it returned an offset or passed over it
        first = np.minimum.reduceat(reads.offset, reads.start[told])
        last = np.maximum.reduceat(reads.offset, reads.start[told])
        first = np.where(reads.position[told] >= 0, np.minimum(first, reads.position[told]), first)
        reading[told] = np.searchsorted(offsets, first) < np.searchsorted(offsets, last, side="right")
    reading |= strong & (np.isin(reads.end, offsets) | np.isin(reads.end - 1, offsets))
    ids = np.concatenate((appends.op_id[placed | sent], reads.op_id[reading]))
    return ids, reads.value[np.isin(reader, np.flatnonzero(reading))]


def batches_at(appends: Appends, offsets: Array) -> Array:
    """All offsets of the firm appends that stand at any of `offsets` (sorted)."""
    counts = np.diff(appends.start)
    rows = np.flatnonzero(
        (appends.kind == Kind.FIRM)
        & (np.searchsorted(offsets, appends.base) < np.searchsorted(offsets, appends.base + counts))
    )
    found = [
        np.arange(base, base + count)
        for base, count in zip(appends.base[rows].tolist(), counts[rows].tolist(), strict=True)
    ]
    return np.unique(np.concatenate([offsets, *found]))

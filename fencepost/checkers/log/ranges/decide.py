"""One slot range of a log, merged from its partial slots: does it keep the rules, and what must other ranges
know about it?

Owns the decisions within a range, and `RangeSummary`. Must not know files or the other ranges. A window is
the range plus neighbouring slots, as many as the largest batch has records, because a read of one record of a
batch shows the whole batch.
"""

from collections.abc import Iterable, Set

import numpy as np
from attrs import frozen

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.ranges.partial import (
    S_BASE,
    S_CLOCK,
    S_COUNT,
    S_EPOCH,
    S_FAILED,
    S_INVOKE,
    S_NTH,
    S_VALUE,
)
from fencepost.checkers.log.ranges.slots import (
    ACK,
    BAD,
    ENDED,
    EPOCH,
    FLAGS,
    HELD,
    INVOKE,
    JOINED,
    LONG_AGO,
    PLACED,
    READ,
    SEEN,
    SHOWN,
    VALUE,
    empty,
    merge,
)
from fencepost.checkers.operation_columns import NEVER, Array


@frozen(kw_only=True, eq=False)
class Soft:
    """All appends of a log that are not firm (columns as in `partial`), sorted by value; and those of them
    with an acknowledged offset, sorted by offset. The arrays may be memory-mapped files."""

    rows: Array
    by_value: Array
    sorted_values: Array
    with_offset: Array
    told_offset: Array


def soft_of(parts: Iterable[Array]) -> Soft:
    """The soft appends of all batches."""
    rows = np.concatenate([np.empty((0, S_CLOCK + 1), np.int64), *parts])
    order = np.argsort(rows[:, S_VALUE], kind="stable")
    with_offset = np.flatnonzero((rows[:, S_BASE] >= 0) & (rows[:, S_EPOCH] >= 0))
    offset = rows[with_offset, S_BASE] + rows[with_offset, S_NTH]
    by_offset = np.argsort(offset, kind="stable")
    return Soft(
        rows=rows,
        by_value=order,
        sorted_values=rows[order, S_VALUE],
        with_offset=with_offset[by_offset],
        told_offset=offset[by_offset],
    )


@frozen(kw_only=True)
class Demands:
    """The rules for the log."""

    # Whether real-time rules apply.
    timed: bool
    # Whether every offset below the end must hold a record.
    dense: bool
    # Whether records may occur twice.
    duplicates: bool
    # Offsets of a range.
    width: int
    # Records of the log's largest append; 0 if all have one record.
    margin: int
    # The number of the last range.
    last: int


def ranges_of(
    touched: Set[int], *, timed: bool, dense: bool, duplicates: bool, width: int, largest: int
) -> tuple[list[int], Demands]:
    """The ranges that must be checked, and the rules for them, from the ranges that operations refer to and
    the records of the largest append.

    A read of one record of a batch implies the offsets of the others, so a batch may extend into ranges that
    no operation refers to.
    """
    margin = largest if largest > 1 else 0
    reach = -(-margin // width)
    near = {other for number in touched for other in range(max(number - reach, 0), number + reach + 1)}
    numbers = list(range(max(near) + 1)) if dense and near else sorted(near)
    last = max(near, default=0)
    return numbers, Demands(
        timed=timed, dense=dense, duplicates=duplicates, width=width, margin=margin, last=last
    )


@frozen(kw_only=True, eq=False)
class RangeSummary:
    """The summary of one range."""

    # The number of the range.
    number: int
    # The latest of its lower bounds, in nanoseconds.
    latest: int
    # The earliest of its upper bounds, in nanoseconds.
    earliest: int
    # The lowest and the highest leader epoch (-1: none known).
    epochs: tuple[int, int]
    # The lowest offset with the highest leader epoch.
    highest_at: int
    # One more than the highest offset that is occupied or below a claimed end (0: none).
    known: int
    # For dense offsets, three rows: the empty offsets, the earliest upper bound from there to the end of the
    # range, and whether a strong read claimed that end.
    empty: Array
    # The latest invocation of a strong read that claimed an end here.
    ended: int
    # Acknowledged records that no read returned, as two rows: their offsets, and the time at which their
    # batch was acknowledged.
    unread: Array
    # Rows of (first soft row, base offset) of appends that reads place here.
    placed: Array
    # Reasons for suspicion.
    reasons: tuple[str, ...]


@frozen(kw_only=True, eq=False)
class Window:
    """The merged slots from offset `low` on; [core, end) of them are the range."""

    slots: Array
    low: int
    core: int
    end: int


@frozen(kw_only=True, eq=False)
class Resolved:
    """strange: slots of the window with a record that cannot be there; placed: as in RangeSummary."""

    strange: Array
    placed: Array


def merged(number: int, pieces: Iterable[tuple[int, Array]], demands: Demands) -> Window:
    """The window of range `number`. pieces: (offset of the first slot, slots) of everything that refers to
    it."""
    start, stop = number * demands.width, (number + 1) * demands.width
    low = max(start - demands.margin, 0)
    shares = list(pieces)
    top = stop + demands.margin
    if not demands.dense or number == demands.last:  # slots above the highest used one carry no information
        top = min(top, max((at + len(other) for at, other in shares), default=start))
    slots = empty(max(top, start) - low)
    for at, other in shares:
        merge(slots, other, at - low)
    return Window(slots=slots, low=low, core=start - low, end=min(stop, low + len(slots)) - low)


def resolved(window: Window, soft: Soft, demands: Demands) -> Resolved:
    """Place appends that are not firm where reads showed them.

    Args:
        window: the merged slots; soft appends are added to them.
        soft: the appends that are not firm.
        demands: the rules for the log.

    Returns:
        the placed appends and the slots with conflicts.
    """
    slots = window.slots
    placed = np.empty((int(((slots[:, FLAGS] & (READ | HELD)) == READ).sum()), 2), np.int64)
    strange = np.zeros(len(slots), np.bool_)
    count = _resolve(
        slots,
        window.low,
        window.core,
        window.end,
        soft.rows,
        soft.by_value,
        soft.sorted_values,
        demands.timed,
        placed,
        strange,
    )
    return Resolved(strange=np.flatnonzero(strange), placed=np.unique(placed[:count], axis=0))


def decide(
    number: int, pieces: Iterable[tuple[int, Array]], soft: Soft, gaps: Array, demands: Demands
) -> RangeSummary:
    """Merge the pieces that overlap the window of range `number`, and summarise the range."""
    window = merged(number, pieces, demands)
    slots, low, core, end = window.slots, window.low, window.core, window.end
    start = low + core
    found = resolved(window, soft, demands)
    reasons = ["a record that cannot be where it is"] if len(found.strange) else []
    if len(told_wrong(soft, slots, low)):
        reasons.append("an append that was acknowledged at the place of another")
    torn, regressed, broken, latest, earliest, first, last, known = _pass(slots, core, end)
    reasons += ["an end inside a batch"] * torn + ["leader epochs that decrease"] * regressed
    if broken and demands.timed:
        reasons.append("bounds in time that contradict each other")
    occupied = slots[core:end, INVOKE] != NEVER
    if not demands.dense and _occupied_in(gaps, occupied, start):
        reasons.append("a read that passes over a record")
    return RangeSummary(
        number=number,
        latest=latest,
        earliest=earliest,
        epochs=(first, last),
        highest_at=start + int(np.argmax(slots[core:end, EPOCH])) if last >= 0 else -1,
        known=known + low if known >= 0 else 0,
        empty=_empty(slots[core:end], occupied, start) if demands.dense else np.empty((3, 0), np.int64),
        ended=int(slots[core:end, ENDED].max(initial=LONG_AGO)),
        unread=_unread(slots, core, end, low),
        placed=found.placed,
        reasons=tuple(reasons),
    )


def _unread(slots: Array, core: int, end: int, low: int) -> Array:
    """As RangeSummary.unread. Only the last record of a batch has its acknowledgement, and batches may
    continue after the range."""
    rows = np.flatnonzero((slots[core:end, FLAGS] & (HELD | READ)) == HELD) + core
    acknowledged = np.flatnonzero(slots[:, ACK] != NEVER)
    if not len(rows) or not len(acknowledged):
        return np.empty((2, 0), np.int64)
    at = np.minimum(np.searchsorted(acknowledged, rows), len(acknowledged) - 1)
    return np.array((rows + low, slots[acknowledged[at], ACK]), np.int64)


@compiled
def _resolve(
    slots: Array,
    low: int,
    core: int,
    end: int,
    soft: Array,
    by_value: Array,
    values: Array,
    timed: bool,
    placed: Array,
    strange: Array,
) -> int:
    """Fill `placed` and `strange`; returns the number of rows of `placed`."""
    count = 0
    for k in range(len(slots)):
        flags, inside = slots[k, FLAGS], core <= k < end
        if flags & BAD:
            strange[k] = inside
        if flags & READ and not flags & HELD:
            at = np.searchsorted(values, slots[k, VALUE])
            if at == len(values) or values[at] != slots[k, VALUE]:
                strange[k] |= inside
                continue
            row = by_value[at]
            nth, size = soft[row, S_NTH], soft[row, S_COUNT]
            if soft[row, S_FAILED] or low + k - nth < 0:
                strange[k] |= inside
                continue
            for j in range(size):
                q = k - nth + j
                if q < 0 or q >= len(slots):
                    continue
                was, value = slots[q, FLAGS], soft[row - nth + j, S_VALUE]
                if was & HELD or (was & (READ | PLACED) and slots[q, VALUE] != value):
                    strange[q] = strange[k] = True
                    continue
                if was & PLACED and ((was & JOINED) != 0) != (j > 0):
                    strange[q] = strange[k] = True
                slots[q, VALUE], slots[q, INVOKE] = value, soft[row, S_INVOKE]
                slots[q, FLAGS] = was | PLACED | (JOINED if j else 0)
                with_offset = soft[row, S_BASE] >= 0 and soft[row, S_EPOCH] >= 0
                if (
                    with_offset
                    and soft[row, S_BASE] != low + k - nth
                    and slots[q, EPOCH] == soft[row, S_EPOCH]
                ):
                    strange[q] = strange[k] = True
            if inside:
                placed[count, 0], placed[count, 1] = row - nth, low + k - nth
                count += 1
        if timed and inside and slots[k, INVOKE] != NEVER and slots[k, INVOKE] > slots[k, SEEN]:
            strange[k] = True
    return count


def told_wrong(soft: Soft, slots: Array, low: int) -> Array:
    """Offsets with a contradiction to a soft append: it was acknowledged with the offset and a leader epoch,
    but another record has both and the same epoch.

    Args:
        soft: the appends that are not firm.
        slots: the slots of the range.
        low: the offset of the first slot.

    Returns:
        the offsets.
    """
    a, b = np.searchsorted(soft.told_offset, (low, low + len(slots)))
    offset, rows = np.asarray(soft.told_offset[a:b]), soft.rows[np.asarray(soft.with_offset[a:b])]
    there = slots[offset - low]
    other = (there[:, INVOKE] != NEVER) & (there[:, VALUE] != rows[:, S_VALUE])
    wrong = other & (there[:, EPOCH] == rows[:, S_EPOCH])
    wrong[1:] |= np.diff(offset) == 0
    found: Array = offset[wrong]
    return found


@compiled
def _pass(slots: Array, core: int, end: int) -> tuple[bool, bool, bool, int, int, int, int, int]:
    """Steps 2, 3, 6 and 7 over the range: an end inside a batch, epochs that decrease, bounds that contradict
    each other. Also returns the values for RangeSummary."""
    torn = regressed = broken = False
    latest, earliest, carried, first, last, known = LONG_AGO, NEVER, NEVER, -1, -1, -1
    for k in range(end):
        shown = slots[k, SHOWN]
        if slots[k, FLAGS] & JOINED and carried < shown:
            shown = carried
        carried = shown
        if k < core:
            continue
        if slots[k, INVOKE] != NEVER:
            latest, known = max(latest, slots[k, INVOKE]), k + 1
        if slots[k, ENDED] != LONG_AGO:
            latest, known = max(latest, slots[k, ENDED]), max(known, k)
            torn |= slots[k, FLAGS] & JOINED != 0
        bound = min(slots[k, ACK], shown)
        earliest = min(earliest, bound)
        broken |= latest > bound
        epoch = slots[k, EPOCH]
        if epoch >= 0:
            regressed |= epoch < last
            first, last = epoch if first < 0 else first, max(last, epoch)
    return torn, regressed, broken, latest, earliest, first, last, known


def _occupied_in(gaps: Array, occupied: Array, start: int) -> bool:
    """Whether any of the gaps [start, stop) contains a record of this range."""
    if not len(gaps):
        return False
    before = np.concatenate(([0], np.cumsum(occupied)))
    clipped = np.clip(gaps - start, 0, len(occupied))
    return bool((before[clipped[:, 1]] > before[clipped[:, 0]]).any())


def _empty(slots: Array, occupied: Array, start: int) -> Array:
    """As RangeSummary.empty."""
    holes = np.flatnonzero(~occupied)
    bound = np.minimum(slots[:, ACK], slots[:, SHOWN])
    earliest = np.minimum.accumulate(bound[::-1])[::-1]
    ended = slots[holes, ENDED] != LONG_AGO
    return np.array((holes + start, earliest[holes], ended), np.int64)

"""Step 1, the skip rule: an offset that a read passed over was empty, or its record is gone for a claimed
reason.

Owns the anomaly `skipped_offset` and the reasons. Retention: the record is below the log start. Compaction: a
later record of the key existed, or could have existed when the read completed; or the record is a tombstone.
Transactions: a read_committed read passes over aborted records. Of the later records of a key the next one
decides, because the log grew in order: it could exist at time t unless some lower bound at or below it is
after t. An append of the key without a known offset is an excuse from its invocation on. So no correct log is
convicted, and a wrong skip may pass.
"""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from fencepost.checkers.log.appends_and_reads import Kind
from fencepost.checkers.log.bounds import Bounds, appended, claimed_ends
from fencepost.checkers.log.extras import LONG_AGO, Fate
from fencepost.checkers.log.one_log import PartitionLog
from fencepost.checkers.operation_columns import NEVER, NONE, Array
from fencepost.checkers.verdict import Finding

INFINITE = float("inf")


@frozen(kw_only=True, eq=False)
class Occupied:
    """Offsets that hold a record where no loss is allowed, in order."""

    offset: Array
    # An operation that proves it.
    by: Array
    # The append that sent it (-1: not known).
    append: Array


@frozen(kw_only=True, eq=False)
class Excuses:
    """The excuses of each occupied offset."""

    # Whether the record is excused at any time.
    gone: Array
    # Whether the record is excused for read_committed reads.
    hidden: Array
    # The key of the record; -1 if none.
    key: Array
    # The offset of the next record of its key (NEVER: none).
    next: Array
    # The time from which it is excused, if clocks are exact (NEVER: never).
    since: Array
    # Appends without a known offset.
    loose: Array


def skipped_offsets(group: PartitionLog) -> Iterator[Finding]:
    """Reads that jumped over an offset that holds a record, without an excuse. Of excuses, only the worst
    case is named."""
    before, has_step = _steps(group)
    gap = np.flatnonzero(has_step & (group.reads.offset > before + 1))
    if not len(gap):
        return
    occupied = occupied_of(group)
    at = np.searchsorted(occupied.offset, before[gap] + 1)
    stop = np.searchsorted(occupied.offset, group.reads.offset[gap])
    held = np.flatnonzero(at < stop)
    if group.compacted or group.extras.transactional:
        found = _unexcused(group, occupied, gap[held], at[held], stop[held])
        yield from () if found is None else (found,)
        return
    for n in held.tolist():
        yield _skip(group, int(gap[n]), int(occupied.offset[at[n]]), (int(occupied.by[at[n]]),))
    for record in gap.tolist() if group.dense else ():
        yield _skip(group, record, int(before[record]) + 1, ())


def replaceable(group: PartitionLog) -> Array:
    """Which appends wrote records that compaction may remove: tombstones, and those with another append of
    their key."""
    if not group.compacted:
        return np.zeros(len(group.appends.kind), np.bool_)
    key = group.extras.key
    counted = np.bincount(key[(key >= 0) & _written(group)], minlength=group.extras.keys + 1)
    others: Array = group.extras.tombstone | ((key >= 0) & ((counted[key] > 1) | group.duplicates))
    return others


def _written(group: PartitionLog) -> Array:
    """Appends with records that may be in the log and replace older ones of their key."""
    written: Array = (group.appends.kind != Kind.FAILED) & (group.extras.fate != Fate.ABORTED)
    return written


def _of(column: Array, append: Array, default: object) -> Array:
    """The column at each append row; the default at -1."""
    extended: Array = np.append(column, np.array([default], column.dtype))[append]
    return extended


def _steps(group: PartitionLog) -> tuple[Array, Array]:
    """Pairs (before, at): for each record read, the offset at which the read was before it (retention may
    have moved it from where it began). A first record has no pair if its read does not say where it began."""
    reads = group.reads
    offset, row = reads.offset, group.read_of_record
    before = np.empty_like(offset)
    before[1:] = offset[:-1]
    head = reads.start[:-1][np.diff(reads.start) > 0]
    begin = np.maximum(reads.position, group.licence)
    before[head] = begin[row[head]] - 1
    has_step = np.ones(len(offset), np.bool_)
    has_step[head] = reads.position[row[head]] >= 0
    return before, has_step


def occupied_of(group: PartitionLog) -> Occupied:
    """The occupied offsets by the evidence."""
    seen, placed, appends = group.evidence, group.placements, group.appends
    plain = np.flatnonzero(~seen.keyed & ~seen.soft)
    whole = placed.append >= 0
    count = (placed.last - placed.base + 1)[whole]
    start = np.cumsum(count) - count
    inner = np.repeat(placed.base[whole] - start, count) + np.arange(count.sum())
    owner = np.repeat(placed.append[whole], count)
    offset, at = np.unique(np.concatenate((seen.offset[plain], inner)), return_index=True)
    by = np.concatenate((seen.op_id[plain], appends.op_id[owner]))
    return Occupied(offset=offset, by=by[at], append=np.concatenate((seen.sender[plain], owner))[at])


def _skip(
    group: PartitionLog,
    record: int,
    offset: int,
    witness: tuple[int, ...],
    excuse: str = "",
    clears: int = NONE,
) -> Finding:
    """The finding that the read of flat record `record` passed over `offset`."""
    reads, r = group.reads, group.read_of_record[record]
    first = record == reads.start[r]
    start = (
        f"{reads.position[r] if reads.position[r] > 0 else 'the start'}"
        if first
        else f"{reads.offset[record - 1] + 1}"
    )
    why = (
        f"which operation {witness[0]} proves to hold a record"
        if witness
        else "though every offset holds a record"
    )
    return group.finding(
        "skipped_offset",
        offset=offset,
        operations=(int(reads.op_id[r]), *witness),
        expected=f"offset {offset} before offset {reads.offset[record]}",
        seen=f"operation {reads.op_id[r]} went from {start} to {reads.offset[record]} past offset {offset}, "
        f"{why}{excuse}",
        uncertainty=clears,
    )


def _unexcused(group: PartitionLog, occupied: Occupied, gap: Array, at: Array, stop: Array) -> Finding | None:
    """Of the gaps (records at their upper ends; slices of `occupied` within), the one with the largest
    uncertainty that has no excuse."""
    if not len(gap) or not group.unique:  # if values repeat, the sender of a record is not known
        return None
    excuses = _excuses(group, occupied)
    row = group.read_of_record[gap]
    bound = group.reads.completion[row] if group.timed else np.zeros(len(row), np.int64)
    since = np.where(excuses.gone, LONG_AGO, excuses.since)
    latest = [
        np.maximum.reduceat(np.append(times, LONG_AGO), np.ravel((at, stop), order="F"))[::2]
        for times in (since, np.where(excuses.hidden, LONG_AGO, since))
    ]
    suspects = np.flatnonzero(np.where(group.committed[row], latest[1], latest[0]) > bound)
    worst, severity = None, float(group.uncertainty)
    for s in suspects.tolist():
        inside = np.arange(at[s], stop[s])
        wrong = inside[since[inside] > bound[s]]
        if group.committed[row[s]]:
            wrong = wrong[~excuses.hidden[wrong]]
        clears = _clearing(group, excuses, int(row[s]), wrong)
        n = int(np.argmax(clears))
        if clears[n] > severity:
            worst, severity = (int(gap[s]), int(wrong[n])), float(clears[n])
        if severity == INFINITE:
            break
    if worst is None:
        return None
    record, i = worst
    excuse = ", and nothing newer of its key stood there in time" if group.compacted else ""
    clears_at = NONE if severity == INFINITE else int(severity)
    return _skip(group, record, int(occupied.offset[i]), (int(occupied.by[i]),), excuse, clears_at)


def _excuses(group: PartitionLog, occupied: Occupied) -> Excuses:
    extras, count = group.extras, len(occupied.offset)
    fate = _of(extras.fate, occupied.append, Fate.PLAIN)
    hidden = (fate == Fate.ABORTED) | (fate == Fate.OPEN)
    excuses = Excuses(
        gone=np.zeros(count, np.bool_),
        hidden=hidden,
        key=np.full(count, NONE),
        next=np.full(count, NEVER),
        since=np.full(count, NEVER),
        loose=np.empty(0, np.int64),
    )
    if not group.compacted:
        return excuses
    written = _of(_written(group), occupied.append, False)
    key = np.where(written, _of(extras.key, occupied.append, NONE), NONE)
    order = np.lexsort((occupied.offset, key))
    following = np.full(count, NEVER)
    same = (key[order][1:] == key[order][:-1]) & (key[order][1:] >= 0)
    following[order[:-1][same]] = occupied.offset[order[1:][same]]
    unseen = _written(group) & (extras.key >= 0)
    if not group.duplicates:  # with them, a copy that no read showed may be anywhere
        unseen &= ~np.isin(np.arange(len(unseen)), group.placements.append)
    loose = np.flatnonzero(unseen)
    since = _standing(group, following)
    earliest = np.full(extras.keys + 1, NEVER)
    np.minimum.at(earliest, extras.key[loose], group.appends.invoke[loose] if group.timed else LONG_AGO)
    return Excuses(
        gone=hidden | _of(extras.tombstone, occupied.append, False),
        hidden=hidden,
        key=key,
        next=following,
        since=np.minimum(since, earliest[key]),  # key -1 picks the extra entry at the end
        loose=loose,
    )


def _lower(group: PartitionLog) -> Bounds:
    """All lower bounds on the times at which the log grew, in the order of offsets."""
    parts = (appended(group), claimed_ends(group))
    names = ("index", "time", "clock", "row")
    low = Bounds(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
    return low.where(np.argsort(low.index, kind="stable"))


def _standing(group: PartitionLog, offset: Array) -> Array:
    """The earliest time at which each offset may have been written, if clocks are exact; NEVER for NEVER."""
    if not group.timed:
        return np.where(offset == NEVER, NEVER, LONG_AGO)
    low = _lower(group)
    latest = np.concatenate(([LONG_AGO], np.maximum.accumulate(low.time)))
    return np.where(offset == NEVER, NEVER, latest[np.searchsorted(low.index, offset, side="right")])


def _clearing(group: PartitionLog, excuses: Excuses, read: int, wrong: Array) -> Array:
    """The smallest uncertainty that excuses each of these occupied offsets for a read; infinite if none
    does."""
    clock, bound = group.reads.clock[read], group.reads.completion[read]
    if not group.timed or not group.compacted:
        return np.full(len(wrong), INFINITE)
    low = _lower(group)
    steps = np.maximum.accumulate(_severity(low.time, low.clock == clock, bound))
    steps = np.concatenate(([0.0], steps))
    following = excuses.next[wrong]
    known = np.where(following == NEVER, INFINITE, steps[np.searchsorted(low.index, following, side="right")])
    loose, appends = excuses.loose, group.appends
    unseen = np.full(group.extras.keys + 1, INFINITE)
    np.minimum.at(
        unseen,
        group.extras.key[loose],
        _severity(appends.invoke[loose], appends.clock[loose] == clock, bound),
    )
    clears: Array = np.minimum(known, unseen[excuses.key[wrong]])
    return clears


def _severity(time: Array, same_clock: Array, bound: int) -> Array:
    """The uncertainty that explains each lower bound against the upper bound `bound`."""
    gap = time - bound
    severity: Array = np.where(gap <= 0, 0.0, np.where(same_clock, INFINITE, (gap + 1) // 2))
    return severity

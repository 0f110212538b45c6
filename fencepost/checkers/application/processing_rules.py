"""What a group owes to the records of one partition.

Owns the rules of losses, early commits, repetitions, revocations and order. Must not know words, promises
that are allowed, or files.

Two processes are put in order by offsets alone:

    a record was passed     if a process committed an offset above it, or began above it. Nothing of the
                            group reads it again, so that it must have been processed.
    a repetition is due     if the earlier owner had not committed past the record when it ended. Of all
                            owners that processed a record, each but the last ended so, in whatever order
                            they were: two that committed past it are one too many.

Where lines of a process are missing, nothing follows from what is not there (Events.torn).
"""

from collections.abc import Iterator

import numpy as np
from attrs import field, frozen

from fencepost.checkers.application.application_events import NO_HASH, Events, Ints, Kind
from fencepost.checkers.application.owner_spans import NOT_KNOWN, Owners, changes
from fencepost.checkers.application.records_known import Known


@frozen(kw_only=True, eq=False)
class Violation:
    """What one rule found in one place: the offsets concerned, each with the rows that show it."""

    anomaly: str
    # Of the run; -1 if it is about no group or no partition.
    group: int = -1
    place: int = -1
    # Of the records, ascending; empty if it is about none.
    offsets: Ints = field(factory=lambda: np.zeros(0, dtype=np.int64))
    # Rows of the run that show the first of them.
    rows: tuple[int, ...] = ()
    # Fills the gaps in the judge's sentence.
    names: tuple[str, ...] = ()


def of_processing(
    events: Events, owners: Owners, known: Known, *, order: str, repeats: bool
) -> Iterator[Violation]:
    """What a group did wrong with one partition.

    Args:
        events: of the run.
        owners: the group's processes.
        known: the records of the partition.
        order: `key`, `partition` or `none`: in what order records are to be processed.
        repeats: whether a repetition is allowed where it is due.
    """
    if not events.torn.isdisjoint(np.unique(owners.life).tolist()):
        return
    done = owners.of(Kind.PROCESSED)
    yield from _passed(events, owners, known, done)
    yield from _committed_early(owners, done)
    yield from _revoked(owners, done)
    yield from _repeated(owners, done, repeats=repeats)
    if order != "none":
        yield from _disordered(events, owners, known, done, by_key=order == "key")


def _found(
    anomaly: str, owners: Owners, offsets: Ints, rows: tuple[int, ...] = (), names: tuple[str, ...] = ()
) -> Violation:
    return Violation(
        anomaly=anomaly, group=owners.group, place=owners.place, offsets=offsets, rows=rows, names=names
    )


def passed_below(events: Events, owners: Owners) -> int:
    """The offset below which the group has passed every record.

    Args:
        events: of the run.
        owners: the group's processes. Processes that name no group read on their own, so that only commits
            show what they passed.
    """
    return int(
        max(owners.last_commit.max(), owners.start.max() if events.groups[owners.group] else NOT_KNOWN)
    )


def _passed(events: Events, owners: Owners, known: Known, done: Ints) -> Iterator[Violation]:
    """Records that were passed, and that nothing of the group has processed."""
    bound = passed_below(events, owners)
    owed = known.offsets[known.offsets < bound]
    missed = owed[~np.isin(owed, owners.offset[done]) & ~np.isin(owed, known.in_sink)]
    if not len(missed):
        return
    received = owners.of(Kind.RECEIVED)
    starts = owners.start[owners.start != NOT_KNOWN]
    began = int(starts.min()) if len(starts) else 0
    had = np.isin(missed, owners.offset[received])
    early = (missed < began) & ~had
    for anomaly, part in (
        ("record_never_processed", missed[had]),
        ("record_skipped_at_start", missed[early]),
        ("record_never_received", missed[~had & ~early]),
    ):
        if len(part):
            yield _found(anomaly, owners, part, _witness(owners, known, int(part[0])))


def _witness(owners: Owners, known: Known, offset: int) -> tuple[int, ...]:
    """The line that shows that the record is there, and the one that passed it."""
    shows = np.flatnonzero((owners.kind == Kind.RECEIVED) & (owners.offset == offset))
    first = int(owners.rows[shows[0]]) if len(shows) else known.row_of(offset)
    passes = np.flatnonzero(
        np.isin(owners.kind, (Kind.COMMITTED, Kind.ASSIGNED, Kind.RECEIVED)) & (owners.offset > offset)
    )
    commits = passes[owners.kind[passes] == Kind.COMMITTED]
    chosen = commits if len(commits) else passes
    return (first, *(int(owners.rows[row]) for row in chosen[:1]))


def _first(keys: Ints, values: Ints) -> tuple[Ints, Ints]:
    """The keys, ascending, each with the first of its values. values: ascending for each key."""
    unique, places = np.unique(keys, return_index=True)
    return unique, values[places]


def _committed_early(owners: Owners, done: Ints) -> Iterator[Violation]:
    """Commits past a record that the process had received and processed only later, and no other process at
    all."""
    found: list[tuple[int, int, int]] = []
    for life in np.unique(owners.life):
        mine = owners.life == life
        commits = np.flatnonzero(mine & (owners.kind == Kind.COMMITTED))
        received = np.flatnonzero(mine & (owners.kind == Kind.RECEIVED))
        if not len(commits) or not len(received):
            continue
        offsets, at = _first(owners.offset[received], received)
        own = done[owners.life[done] == life]
        processed, when = _first(owners.offset[own], own)
        others = owners.offset[done[owners.life[done] != life]]
        keep = np.isin(offsets, processed) & ~np.isin(offsets, others)
        offsets, at = offsets[keep], at[keep]
        later = when[np.searchsorted(processed, offsets)]
        highest = np.maximum.accumulate(owners.offset[commits])
        places = np.maximum(
            np.searchsorted(highest, offsets, side="right"), np.searchsorted(commits, at, side="right")
        )
        there = places < len(commits)
        commit = commits[np.minimum(places, len(commits) - 1)]
        early = there & (owners.offset[commit] > offsets) & (commit < later)
        found += zip(offsets[early].tolist(), commit[early].tolist(), later[early].tolist(), strict=True)
    if found:
        found.sort()
        _, committed, processed_at = found[0]
        yield _found(
            "committed_before_processed",
            owners,
            np.array([offset for offset, _, _ in found], dtype=np.int64),
            (int(owners.rows[committed]), int(owners.rows[processed_at])),
        )


def _revoked(owners: Owners, done: Ints) -> Iterator[Violation]:
    """Records processed by an owner after the partition was taken from it."""
    late = done[owners.revoked[done].astype(bool)]
    if len(late):
        before = np.flatnonzero(
            np.isin(owners.kind, (Kind.REVOKED, Kind.LOST)) & (np.arange(len(owners.rows)) < late[0])
        )
        yield _found(
            "processed_after_revoked",
            owners,
            np.unique(owners.offset[late]),
            (int(owners.rows[before[-1]]), int(owners.rows[late[0]])),
        )


def _repeated(owners: Owners, done: Ints, *, repeats: bool) -> Iterator[Violation]:
    """Records processed again although no repetition was due."""
    order = done[np.lexsort((done, owners.offset[done]))]
    offsets, spans = owners.offset[order], owners.span[order]
    again = np.flatnonzero(offsets[1:] == offsets[:-1]) + 1
    if not len(again):
        return
    wrong = set() if repeats else set(again.tolist())
    if repeats:
        past = owners.last_commit[spans] > offsets
        same = spans[again] == spans[again - 1]
        commits = owners.of(Kind.COMMITTED)
        for place in again[same].tolist():
            between = commits[(commits > order[place - 1]) & (commits < order[place])]
            if owners.reported[spans[place]] or (owners.offset[between] > offsets[place]).any():
                wrong.add(place)
        ordered = owners.span_life[spans[again]] == owners.span_life[spans[again - 1]]
        wrong |= set(again[~same & ordered & past[again - 1]].tolist())
        wrong |= _committed_twice(offsets, spans, past)
    if wrong:
        first = min(wrong)
        before = int(np.searchsorted(offsets, offsets[first]))
        shows = order[before : first + 1]
        yield _found(
            "processed_twice",
            owners,
            np.unique(offsets[sorted(wrong)]),
            (int(owners.rows[shows[0]]), int(owners.rows[shows[-1]])),
        )


def _committed_twice(offsets: Ints, spans: Ints, past: Ints) -> set[int]:
    """Positions of records that a second owner processed and committed past."""
    rows = np.flatnonzero(past)
    rows = rows[changes(offsets[rows], spans[rows])] if len(rows) else rows
    return set(rows[1:][offsets[rows[1:]] == offsets[rows[:-1]]].tolist())


def _disordered(
    events: Events, owners: Owners, known: Known, done: Ints, *, by_key: bool
) -> Iterator[Violation]:
    """Records that an owner processed for the first time after a later one, of the same key or of any."""
    spans = owners.span[done]
    first = done[np.sort(_first_of_pairs(spans, owners.offset[done]))]
    spans, offsets = owners.span[first], owners.offset[first]
    keys = np.zeros(len(first), dtype=np.int64)
    if by_key:
        own = events.key[owners.rows[first]]
        keys = np.where(own != NO_HASH, own, known.key_of(offsets))
        has_key = keys != NO_HASH
        first, spans, offsets, keys = first[has_key], spans[has_key], offsets[has_key], keys[has_key]
    order = np.lexsort((first, keys, spans))
    first, spans, offsets, keys = first[order], spans[order], offsets[order], keys[order]
    if not len(first):
        return
    falls = np.zeros(len(first), dtype=bool)
    falls[1:] = (offsets[1:] < offsets[:-1]) & ~changes(spans, keys)[1:]
    late = np.flatnonzero(falls)
    if len(late):
        place = late[np.argmin(offsets[late])]
        rows = (int(owners.rows[first[place - 1]]), int(owners.rows[first[place]]))
        yield _found("processed_out_of_order", owners, np.unique(offsets[late]), rows)


def _first_of_pairs(left: Ints, right: Ints) -> Ints:
    """The position of the first row of each pair of values."""
    order = np.lexsort((np.arange(len(left)), right, left))
    return order[changes(left[order], right[order])] if len(order) else order

"""Owners: which process had which partition, from where, and how far it committed.

Owns the cutting of a group's events of one partition into spans. Must not know promises.

A span is what one life of a process did with a partition between two assignments of it: from a line
`assigned`, or from its first event where it reports none, to the next `assigned` or its end. What it did
after `revoked` or `lost` belongs to the span, and is marked.
"""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from fencepost.checkers.application.application_events import NOWHERE, Events, Ints, Kind

OF_OWNERS = (*(Kind.ASSIGNED, Kind.RECEIVED, Kind.PROCESSED), *(Kind.COMMITTED, Kind.REVOKED, Kind.LOST))
"""Kinds of events of an owner."""
NOT_KNOWN = -1
"""A start or a commit that no line names."""


@frozen(kw_only=True, eq=False)
class Owners:
    """What the processes of a group did with one partition. The columns are ordered by life, and within a
    life by line; `rows` are rows of the run."""

    group: int
    place: int
    rows: Ints
    kind: Ints
    life: Ints
    offset: Ints
    # Of each row, from 0.
    span: Ints
    # Whether the partition was taken from the process and not given back.
    revoked: Ints
    # Of each span: its position at the beginning, and the last offset that it committed; NOT_KNOWN.
    start: Ints
    last_commit: Ints
    # Of each span: whether its life reports assignments of this partition at all.
    reported: Ints
    # Of each span.
    span_life: Ints

    def of(self, kind: Kind) -> Ints:
        """Positions of the rows of a kind."""
        return np.flatnonzero(self.kind == kind)


def owners_of(events: Events) -> Iterator[Owners]:
    """Each group with each partition that it had, in the order of groups and places."""
    ours = np.isin(events.kind, OF_OWNERS) & (events.place != NOWHERE)
    rows = np.flatnonzero(ours)
    rows = rows[np.lexsort((rows, events.life[rows], events.place[rows], events.group[rows]))]
    group, place = events.group[rows], events.place[rows]
    for begin, end in stretches(group, place):
        yield _owners(events, rows[begin:end], int(group[begin]), int(place[begin]))


def stretches(*columns: Ints) -> Iterator[tuple[int, int]]:
    """The stretches in which no column changes, as begin and end."""
    bounds = [0, *(np.flatnonzero(changes(*columns)[1:]) + 1), len(columns[0])] if len(columns[0]) else [0]
    yield from zip(map(int, bounds[:-1]), map(int, bounds[1:]), strict=True)


def changes(*columns: Ints) -> Ints:
    """Whether each row differs from the one before it in any column; the first one does."""
    differs = np.ones(len(columns[0]), dtype=bool)
    differs[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return differs


def _owners(events: Events, rows: Ints, group: int, place: int) -> Owners:
    kind, life, offset = events.kind[rows], events.life[rows], events.offset[rows]
    begins = changes(life)
    span = np.cumsum(begins | (kind == Kind.ASSIGNED)) - 1
    spans = int(span[-1]) + 1
    first = np.flatnonzero(changes(span))
    start = np.full(spans, NOT_KNOWN, dtype=np.int64)
    named = np.flatnonzero(((kind == Kind.ASSIGNED) | (kind == Kind.RECEIVED)) & (offset >= 0))
    # of several values for one span NumPy keeps the last, which is the first event
    start[span[named[::-1]]] = offset[named[::-1]]
    last_commit = np.full(spans, NOT_KNOWN, dtype=np.int64)
    commits = np.flatnonzero(kind == Kind.COMMITTED)
    last_commit[span[commits]] = offset[commits]
    taken = (kind == Kind.REVOKED) | (kind == Kind.LOST)
    last_taken = np.maximum.accumulate(np.where(taken, np.arange(len(rows)), -1))
    reporting = np.unique(life[kind == Kind.ASSIGNED])
    return Owners(
        group=group,
        place=place,
        rows=rows,
        kind=kind,
        life=life,
        offset=offset,
        span=span,
        revoked=(last_taken >= first[span]) & ~taken,
        start=start,
        last_commit=last_commit,
        reported=np.isin(life[first], reporting),
        span_life=life[first],
    )

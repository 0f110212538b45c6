"""The records of a partition, as the lines of a run show them.

Owns which lines show that a record is there, its key, and whether a sink holds it. Must not know groups.
"""

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from fencepost.checkers.application.application_events import (
    AT_A_RECORD,
    NO_HASH,
    NOWHERE,
    Events,
    Ints,
    Kind,
)
from fencepost.checkers.application.owner_spans import changes, stretches

NONE = np.zeros(0, dtype=np.int64)


@frozen(kw_only=True, eq=False)
class Known:
    """The records of one partition."""

    # Ascending.
    offsets: Ints = NONE
    # Of each, the row that first shows it, and its key.
    rows: Ints = NONE
    keys: Ints = NONE
    # Of records that a sink holds, ascending; once for each row.
    in_sink: Ints = NONE

    def row_of(self, offset: int) -> int:
        """The row that first shows a record. offset: one of `offsets`."""
        return int(self.rows[np.searchsorted(self.offsets, offset)])

    def key_of(self, offsets: Ints) -> Ints:
        """The keys of records, NO_HASH where no line names one. offsets: any."""
        if not len(self.offsets):
            return np.full(len(offsets), NO_HASH)
        places = np.minimum(np.searchsorted(self.offsets, offsets), len(self.offsets) - 1)
        return np.where(self.offsets[places] == offsets, self.keys[places], NO_HASH)


NO_RECORDS = Known()


def known_records(events: Events, sinks: Mapping[int, Ints]) -> Mapping[int, Known]:
    """The records of each place of a run. sinks: as sunk() answers."""
    rows = np.flatnonzero(
        np.isin(events.kind, AT_A_RECORD) & (events.offset >= 0) & (events.place != NOWHERE)
    )
    # those with a key come first, so that the first of a record has one if any has
    keyless = events.key[rows] == NO_HASH
    rows = rows[np.lexsort((rows, keyless, events.offset[rows], events.place[rows]))]
    rows = rows[changes(events.place[rows], events.offset[rows])] if len(rows) else rows
    found = {}
    for begin, end in stretches(events.place[rows]):
        place = int(events.place[rows[begin]])
        part = rows[begin:end]
        found[place] = Known(
            offsets=events.offset[part], rows=part, keys=events.key[part], in_sink=sinks.get(place, NONE)
        )
    return found


def sunk(events: Events) -> dict[int, Ints]:
    """The offsets that sinks hold of each place, ascending, once for each row. A row that names no place is
    found by its value, if one record of the run has it."""
    rows = np.flatnonzero(events.kind == Kind.SINK)
    place, offset = events.place[rows].astype(np.int64), events.offset[rows].copy()
    by_value = (offset < 0) & (events.value[rows] != NO_HASH)
    if by_value.any():
        values, places, offsets = _by_value(events)
        at = np.minimum(np.searchsorted(values, events.value[rows]), max(len(values) - 1, 0))
        hit = by_value & (values[at] == events.value[rows]) if len(values) else by_value & False
        place[hit], offset[hit] = places[at[hit]], offsets[at[hit]]
    there = (place != NOWHERE) & (offset >= 0)
    place, offset = place[there], offset[there]
    order = np.lexsort((offset, place))
    place, offset = place[order], offset[order]
    return {int(place[begin]): offset[begin:end] for begin, end in stretches(place)}


def _by_value(events: Events) -> tuple[Ints, Ints, Ints]:
    """The values that one record of the run has alone, ascending, with its place and offset."""
    rows = np.flatnonzero(
        np.isin(events.kind, AT_A_RECORD) & (events.offset >= 0) & (events.value != NO_HASH)
    )
    rows = rows[np.lexsort((events.offset[rows], events.place[rows], events.value[rows]))]
    rows = rows[changes(events.value[rows], events.place[rows], events.offset[rows])] if len(rows) else rows
    values, counts = np.unique(events.value[rows], return_counts=True)
    alone = rows[np.isin(events.value[rows], values[counts == 1])]
    return events.value[alone], events.place[alone].astype(np.int64), events.offset[alone]

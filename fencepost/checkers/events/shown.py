"""The log ends that clients were shown, from rows of an `operations` table, for HW-MONO.

Owns which operations show an end of which partition (checkers/invariants/hw_mono.py does the same for
objects). Must not know what a regression is.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.arrow_arrays import (
    NONE,
    Array,
    Arrow,
    arrow,
    integer_array,
    list_children,
    recoded,
    slice_starts,
    string_codes,
    struct_field,
    table_column,
)
from fencepost.checkers.events.event_columns import claims_of, keys_of, rows_by_trace
from fencepost.checkers.events.kernels.shown import MOST_TERMS, screen_shown
from fencepost.checkers.invariants.hw_mono import READ_COMMITTED
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Trace

SHOWING = (Function.POLL.value, Function.LIST_OFFSETS.value)
COLUMNS = (
    *("trace_id", "function", "outcome", "invoke_time", "completion_time", "topic", "partition"),
    *("offset", "end_offset", "leader_epoch", "positions", "isolation"),
)
_MISSING = int(np.iinfo(np.int64).min)


@frozen
class _Rows:
    """Operations that show ends, once for each of their positions. row: index into `table`; of_list: whether
    the position has the values, not the operation itself."""

    table: pa.Table
    positions: Arrow
    row: Array
    of_list: Array

    def own(self, name: str, null: int = _MISSING) -> Array:
        """A column of the operations."""
        return integer_array(table_column(self.table, name), null)

    def each(self, own: Array, of_positions: Array) -> Array:
        """The value of the position, or that of the operation if there is no position."""
        values: Array = own[self.row]
        values[self.of_list] = of_positions
        return values

    def numbers(self, name: str) -> Array:
        """A column that both operations and positions have."""
        return self.each(self.own(name), integer_array(struct_field(self.positions, name), _MISSING))

    def topics(self) -> tuple[list[str], Array]:
        """Topics as numbers, and their names."""
        names, codes = string_codes(table_column(self.table, "topic"))
        others, other_codes = string_codes(struct_field(self.positions, "topic"))
        known = {name: code for code, name in enumerate(dict.fromkeys((*names, *others)))}
        own, of_positions = (
            recoded(some, [known[name] for name in told])
            for some, told in ((codes, names), (other_codes, others))
        )
        return list(known), self.each(own, of_positions)


def mark_regresses(table: pa.Table, traces: Sequence[Trace], suspicious: Array) -> None:
    """Mark the traces of an `operations` table in which an end that a client was shown may have gone back."""
    table = table.select(list(COLUMNS)).unify_dictionaries()
    names = pa.array(SHOWING)
    shows = arrow.and_(
        arrow.equal(_plain(table.column("outcome")), Outcome.OK.value),
        arrow.is_in(_plain(table.column("function")), value_set=names),
    )
    table, start = rows_by_trace(table.filter(shows), traces)
    if not table.num_rows:
        return
    at, positions = list_children(table_column(table, "positions"))
    several = np.diff(at)
    row = np.repeat(np.arange(len(several)), np.maximum(several, 1))
    rows = _Rows(table, positions, row, (several > 0)[row])
    listed = arrow.equal(_plain(table_column(table, "function")), SHOWING[1]).to_numpy(zero_copy_only=False)
    own_end = rows.own("end_offset")
    committed = arrow.fill_null(
        arrow.equal(_plain(table_column(table, "isolation")), READ_COMMITTED), False
    ).to_numpy(zero_copy_only=False)
    own_end = np.where((own_end == _MISSING) & listed & ~committed, rows.own("offset"), own_end)
    end = rows.each(own_end, integer_array(struct_field(positions, "end_offset"), _MISSING))
    epoch, partition = rows.numbers("leader_epoch"), rows.numbers("partition")
    topics, topic = rows.topics()
    keys = keys_of(topic, np.where(partition == _MISSING, NONE, partition))
    completion = rows.own("completion_time")
    trace = np.repeat(np.arange(len(traces)), np.diff(start))
    suspicious[trace[completion == _MISSING]] = True
    suspicious[trace[row[keys.odd]]] = True
    shown = np.flatnonzero((end != _MISSING) & (epoch >= 0))
    row = row[shown]
    claims = claims_of(traces, topics, keys.known)
    screen_shown(
        slice_starts(np.bincount(trace[row], minlength=len(traces))),
        rows.own("invoke_time")[row],
        completion[row],
        keys.codes[shown],
        epoch[shown],
        end[shown],
        listed[row],
        claims["claims"],
        claims["allowed"],
        np.empty((2, len(row)), np.int64),
        np.empty((MOST_TERMS, 3), np.int64),
        suspicious,
    )


def _plain(column: Arrow) -> Arrow:
    """Strings that are not dictionary-encoded."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column

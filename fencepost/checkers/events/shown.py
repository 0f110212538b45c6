"""The log ends that clients were shown, decoded from the columns of an `operations` table, for HW-MONO.

Owns which rows show an end of which partition (`shown_by` in checkers/invariants/hw_mono.py does the same for
objects). Must not know what a regression is.
"""

from collections.abc import Collection
from typing import Any

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
    string_codes,
    struct_field,
    table_column,
)
from fencepost.checkers.invariants.hw_mono import LISTED, READ_COMMITTED, SHOWING, Shown, ShownEnd
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import ACKS_ALL, Function, Outcome
from fencepost.traces.tables import CHUNK_ROWS

COLUMNS = (
    *("trace_id", "op_id", "clock_id", "function", "outcome", "invoke_time", "completion_time", "topic"),
    *("partition", "offset", "end_offset", "leader_epoch", "positions", "isolation"),
    *("acks", "argument", "records", "node", "attempts"),
)
_MISSING = int(np.iinfo(np.int64).min)


@frozen
class _Rows:
    """Operations that show ends, once for each of their positions."""

    table: pa.Table
    # The positions of all operations, one after another.
    positions: Arrow
    # For each row its index into `table`.
    row: Array
    # For each row whether its values are those of a position.
    of_position: Array

    def own(self, name: str, null: int = _MISSING) -> Array:
        """A column of the operations, one value a row."""
        return integer_array(table_column(self.table, name), null)[self.row]

    def numbers(self, name: str, own: Array | None = None) -> Array:
        """A column that operations and positions have: the value of the position, if there is one.

        Args:
            name: of the column.
            own: the values of the operations, if they are not those of the column.
        """
        values = self.own(name) if own is None else own
        values[self.of_position] = integer_array(struct_field(self.positions, name), _MISSING)
        return values

    def topics(self) -> list[str | None]:
        """The topic of each row."""
        names, codes = string_codes(table_column(self.table, "topic"))
        others, other_codes = string_codes(struct_field(self.positions, "topic"))
        values = codes[self.row]
        values[self.of_position] = np.where(other_codes < 0, NONE, other_codes + len(names))
        return [None if code < 0 else (*names, *others)[code] for code in values.tolist()]


def shown_ends(table: pa.Table, ids: Collection[int]) -> dict[int, list[Shown]]:
    """The ends that clients were shown.

    Args:
        table: rows of the `operations` table, with at least COLUMNS.
        ids: of the traces that the rows belong to.

    Returns:
        The ends by trace id, in the order of the rows. A trace without any has no entry.

    Raises:
        TraceError: if a column is missing, a row belongs to another trace, or a successful operation has no
            completion time.
    """
    table = table.select(list(COLUMNS)).unify_dictionaries()
    strange = set(table_column(table, "trace_id").unique().to_pylist()) - set(ids)
    if strange:
        raise TraceError(
            expected="a row in traces for every trace", seen=f"none for {min(strange)}", where="operations"
        )
    showing = arrow.and_(
        arrow.equal(_plain(table.column("outcome")), Outcome.OK.value),
        arrow.is_in(_plain(table.column("function")), value_set=pa.array([name.value for name in SHOWING])),
    )
    table = table.filter(showing)
    at, positions = list_children(table_column(table, "positions"))
    several = np.diff(at)
    row = np.repeat(np.arange(len(several)), np.maximum(several, 1))
    rows = _Rows(table, positions, row, (several > 0)[row])
    end, epoch, partition = (
        rows.numbers("end_offset", _own_ends(table)[row]),
        rows.numbers("leader_epoch"),
        rows.numbers("partition"),
    )
    completion = rows.own("completion_time")
    if (completion == _MISSING).any():
        raise TraceError(
            expected="a completion time of each successful operation", seen="none", where="operations"
        )
    again = _is(table, "function", Function.APPEND.value)[row] & (rows.own("attempts", 1) > 1)  # is_of_retry
    node, epoch = rows.own("node"), np.where(again, NONE, np.maximum(epoch, NONE))
    names, functions = string_codes(table_column(table, "function"))
    columns = (
        *(rows.own("trace_id"), np.where(partition == _MISSING, NONE, partition)),
        *(rows.own("invoke_time"), completion, end, epoch, rows.own("clock_id"), rows.own("op_id")),
        *(functions[rows.row], node),
    )
    topics, found, keys = rows.topics(), dict[int, list[Shown]](), dict[Key, Key]()
    by = [Function(name) if name in SHOWING else None for name in names]
    kept = np.flatnonzero((end != _MISSING) & ((epoch >= 0) | (node >= 0)))
    for some in (kept[at : at + CHUNK_ROWS] for at in range(0, len(kept), CHUNK_ROWS)):
        for place, trace_id, number, *times_and_ends, function, broker in zip(
            some.tolist(), *(column[some].tolist() for column in columns), strict=True
        ):
            values: list[Any] = [*times_and_ends, by[function], broker]
            key = (topics[place], number)
            found.setdefault(trace_id, []).append((keys.setdefault(key, key), ShownEnd(*values)))
    return found


def _own_ends(table: pa.Table) -> Array:
    """The end that each operation of one partition showed; _MISSING if it showed none."""
    end, offset = (integer_array(table_column(table, name), _MISSING) for name in ("end_offset", "offset"))
    other = arrow.is_valid(table_column(table, "argument")).to_numpy(zero_copy_only=False)
    other |= _is(table, "isolation", READ_COMMITTED)
    end = np.where((end == _MISSING) & _is(table, "function", LISTED.value) & ~other, offset, end)
    acks = integer_array(table_column(table, "acks"), _MISSING)
    counts = np.diff(list_children(table_column(table, "records"))[0])
    known = (acks == ACKS_ALL) & (counts > 0) & (offset >= 0)
    own = np.where(known, offset + counts, _MISSING)
    found: Array = np.where(_is(table, "function", Function.APPEND.value), own, end)
    return found


def _plain(column: Arrow) -> Arrow:
    """Strings that are not dictionary-encoded."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _is(table: pa.Table, name: str, value: str) -> Array:
    """For each row of `table` whether its column `name` is `value`."""
    equal = arrow.fill_null(arrow.equal(_plain(table_column(table, name)), value), False)
    mask: Array = equal.to_numpy(zero_copy_only=False)
    return mask

"""The log ends that clients were shown, decoded from the columns of an `operations` table, for HW-MONO.

Owns which rows show an end of which partition (`shown_by` in checkers/invariants/hw_mono.py does the same for
objects). Must not know what a regression is.
"""

from collections.abc import Collection

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
from fencepost.checkers.invariants.hw_mono import READ_COMMITTED, Shown, ShownEnd
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Outcome

SHOWING = (Function.POLL.value, Function.LIST_OFFSETS.value)
COLUMNS = (
    *("trace_id", "op_id", "clock_id", "function", "outcome", "invoke_time", "completion_time", "topic"),
    *("partition", "offset", "end_offset", "leader_epoch", "positions", "isolation"),
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
        arrow.is_in(_plain(table.column("function")), value_set=pa.array(SHOWING)),
    )
    table = table.filter(showing)
    at, positions = list_children(table_column(table, "positions"))
    several = np.diff(at)
    row = np.repeat(np.arange(len(several)), np.maximum(several, 1))
    rows = _Rows(table, positions, row, (several > 0)[row])
    listed = _is(table, "function", SHOWING[1])[row]
    committed = _is(table, "isolation", READ_COMMITTED)[row]
    own_end = rows.own("end_offset")
    own_end = np.where((own_end == _MISSING) & listed & ~committed, rows.own("offset"), own_end)
    end, epoch, partition = (
        rows.numbers("end_offset", own_end),
        rows.numbers("leader_epoch"),
        rows.numbers("partition"),
    )
    completion = rows.own("completion_time")
    if (completion == _MISSING).any():
        raise TraceError(
            expected="a completion time of each successful operation", seen="none", where="operations"
        )
    columns = (
        *(rows.own("trace_id"), np.where(partition == _MISSING, NONE, partition)),
        *(rows.own("invoke_time"), completion, end, epoch, rows.own("clock_id"), rows.own("op_id"), listed),
    )
    topics, found = rows.topics(), dict[int, list[Shown]]()
    kept = np.flatnonzero((end != _MISSING) & (epoch >= 0))
    for place, trace_id, number, *fields in zip(
        kept.tolist(), *(column[kept].tolist() for column in columns), strict=True
    ):
        found.setdefault(trace_id, []).append(((topics[place], number), ShownEnd(*fields)))
    return found


def _plain(column: Arrow) -> Arrow:
    """Strings that are not dictionary-encoded."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _is(table: pa.Table, name: str, value: str) -> Array:
    """For each row of `table` whether its column `name` is `value`."""
    equal = arrow.fill_null(arrow.equal(_plain(table_column(table, name)), value), False)
    mask: Array = equal.to_numpy(zero_copy_only=False)
    return mask

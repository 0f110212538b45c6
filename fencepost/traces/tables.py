"""Canonical rows as Arrow tables, both ways, without loss, and cutting tables between traces.

Owns how whole traces are laid out in the three tables. Must not know files, digests, judges.

The rows of one trace are together and in order in all three tables. Reading turns few rows at a time into
Python values; columns hold the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import accumulate, chain, pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import fields, frozen

from fencepost.traces.canonical_rows import NESTED, ROWS_MAX, Row, Rows, check_rows, trace_of
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.making import maker_of
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.schema import EVENT_COLUMNS, OPERATION_COLUMNS, SCHEMAS, TABLES, TRACE_COLUMNS, Table
from fencepost.traces.trace import Trace

CHUNK_ROWS = 16_384
"""Rows held as Python values at a time; columns hold the rest."""


@frozen(kw_only=True)
class Tables:
    """Whole traces as Arrow tables with the schemas of schema.py; rows of one trace are together, in order,
    in all three."""

    traces: pa.Table
    operations: pa.Table
    events: pa.Table

    def of(self, table: Table) -> pa.Table:
        """The table by name."""
        return {"traces": self.traces, "operations": self.operations, "events": self.events}[table]


def _nested_array(lists: Sequence[Sequence[Row]], field: Any) -> Any:
    """list<struct> from lists of field values, by column: Arrow's own conversion of tuples is ten times
    slower."""
    inner = list(field.type.value_type)
    columns = list(zip(*chain.from_iterable(lists), strict=True)) or [()] * len(inner)
    structs = pa.StructArray.from_arrays(
        [_array(column, member) for column, member in zip(columns, inner, strict=True)], fields=inner
    )
    offsets = list(accumulate((len(values) for values in lists), initial=0))
    return pa.ListArray.from_arrays(pa.array(offsets, type=pa.int32()), structs, type=field.type)


def _array(values: Sequence[Any], field: Any) -> Any:
    try:
        if field.name in NESTED:
            return _nested_array(values, field)
        array: Any = pa.array(values, type=field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError, TypeError, ValueError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(
            expected=f"{field.type} values", seen=str(error).splitlines()[0], where=f"column {field.name}"
        ) from None
    if array.null_count and not field.nullable:
        raise TraceError(expected="a value in every row", seen="null", where=f"column {field.name}")
    return array


def _table(table: Table, rows: list[Row]) -> pa.Table:
    schema = SCHEMAS[table]
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [_array(values, field) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def tables_of(many: Iterable[Rows]) -> Tables:
    """Whole traces as Arrow tables, in the order given.

    Raises TraceError naming a column that cannot hold a value.
    """
    traces: list[Row] = []
    operations: list[Row] = []
    events: list[Row] = []
    for rows in many:
        trace_id = rows.trace[0]
        traces.append(rows.trace)
        operations.extend((trace_id, *row) for row in rows.operations)
        events.extend((trace_id, position, *row) for position, row in enumerate(rows.events))
    return Tables(
        traces=_table("traces", traces),
        operations=_table("operations", operations),
        events=_table("events", events),
    )


def values_of(column: Any) -> list[Any]:
    """A column as Python values, structs and lists as tuples, structs in field order. column: chunked.

    By way of NumPy and of dictionaries where there are few strings, because Arrow's own `to_pylist` makes an
    object per value on the way.
    """
    values: list[Any]
    if pa.types.is_list(column.type):
        values = list(chain.from_iterable(map(_lists, column.chunks)))
    elif column.null_count == len(column):
        values = [None] * len(column)
    elif pa.types.is_int64(column.type):
        missing = column.null_count
        values = (column.fill_null(0) if missing else column).to_numpy().tolist()
        for row in np.flatnonzero(column.is_null().to_numpy()).tolist() if missing else ():
            values[row] = None
    elif pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
        values = []
        for array in column.chunks:
            few = pa.types.is_dictionary(column.type) and len(array.dictionary) <= len(array)
            encoded = array if few else array.cast(pa.string()).dictionary_encode()
            words = [*encoded.dictionary.to_pylist(), None]
            values += map(words.__getitem__, encoded.indices.fill_null(len(words) - 1).to_numpy().tolist())
    else:
        values = column.to_pylist()
    return values


def _lists(array: Any, make: Callable[..., Any] | None = None) -> list[tuple[Any, ...]]:
    """The values of a list column, cut by its offsets; as tuples, because an empty one then costs nothing.
    make: what is made of the fields of a struct; None: a tuple."""
    inner: tuple[Any, ...]
    flat, offsets = array.flatten(), array.offsets.to_numpy()
    if pa.types.is_struct(flat.type):
        children = [values_of(pa.chunked_array([child])) for child in flat.flatten()]
        inner = tuple(zip(*children, strict=True) if make is None else map(make, *children))
    else:
        inner = tuple(values_of(pa.chunked_array([flat])))
    places = (offsets - offsets[0]).tolist()
    lists: list[tuple[Any, ...]] = [()] * len(array)
    for row in np.flatnonzero(np.diff(offsets)).tolist():  # in most rows of most columns there is nothing
        lists[row] = inner[places[row] : places[row + 1]]
    return lists


def _rows(table: pa.Table, columns: Sequence[str]) -> list[Row]:
    return list(zip(*(values_of(table.column(name)) for name in columns), strict=True))


def rows_of_tables(tables: Tables, *, where: str = "tables") -> Iterator[Rows]:
    """The traces in whole tables, in the order of `traces`; few rows at a time are Python values.

    Raises TraceError for operations or events whose trace has no row in `traces`, and for a trace with two.
    """
    for chunk in chunks_of(tables):
        if chunk.operations.num_rows + chunk.events.num_rows > ROWS_MAX:
            _check_traces(chunk, where)
        operations = _by_trace(chunk.operations, OPERATION_COLUMNS)
        events = _by_trace(chunk.events, EVENT_COLUMNS)
        seen: set[int] = set()
        for row in _rows(chunk.traces, TRACE_COLUMNS):
            if row[0] in seen:
                raise TraceError(
                    expected="one row in traces per trace", seen=f"two for {row[0]}", where=where
                )
            seen.add(row[0])
            yield Rows(trace=row, operations=operations.pop(row[0], []), events=events.pop(row[0], []))
        orphans = sorted({*operations, *events})
        if orphans:
            raise TraceError(
                expected="a row in traces for every trace", seen=f"none for {orphans[0]}", where=where
            )


_NAMES: dict[str, Name] = {name.value: name for name in Name}
_EVENT_FIELDS = tuple(each.name for each in fields(Event))
_event_of = maker_of(Event, keywords=False)


def place_of(where: str, trace_id: int) -> str:
    """The place of one trace among many: `where` with the trace id."""
    return f"{where}, trace {trace_id}"


def _check_traces(tables: Tables, where: str) -> None:
    """Refuse a trace with more rows than may become Python values. Raises TraceError."""
    counts: dict[int, int] = {}
    for table in (tables.operations, tables.events):
        tally: Any = table.column("trace_id").value_counts()
        for trace_id, count in zip(tally.field(0).to_pylist(), tally.field(1).to_pylist(), strict=True):
            counts[trace_id] = counts.get(trace_id, 0) + count
    for trace_id, count in counts.items():
        check_rows(count, where=place_of(where, trace_id))


def _by_trace(table: pa.Table, columns: Sequence[str]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    ids: list[Any] = table.column("trace_id").to_pylist()
    for trace_id, row in zip(ids, _rows(table, columns), strict=True):
        found.setdefault(trace_id, []).append(row)
    return found


def chunks_of(tables: Tables, *, rows: int = CHUNK_ROWS) -> Iterator[Tables]:
    """The tables cut between traces into pieces of about `rows` rows; in one piece where trace ids do not
    increase."""
    ids = [tables.of(table).column("trace_id").to_numpy() for table in TABLES]
    traces = ids[0]
    if not len(traces) or any((np.diff(found) < 0).any() for found in ids) or (np.diff(traces) == 0).any():
        yield tables
        return
    ends = [np.searchsorted(found, traces, side="right") for found in ids]
    piece = (ends[1] + ends[2]) // rows
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(traces)]
    starts = [0, 0, 0]
    for cut in cuts[1:]:
        # the last piece takes what follows the last trace too, so that rows without a trace are noticed
        stops = [len(found) for found in ids] if cut == len(traces) else [int(end[cut - 1]) for end in ends]
        pieces = [
            tables.of(table).slice(start, stop - start)
            for table, start, stop in zip(TABLES, starts, stops, strict=True)
        ]
        yield Tables(traces=pieces[0], operations=pieces[1], events=pieces[2])
        starts = stops


def traces_of_tables(tables: Tables, *, where: str = "tables") -> Iterator[Trace]:
    """As `rows_of_tables`, as Trace values. tables: of whole traces; where: for errors."""
    for rows in rows_of_tables(tables, where=where):
        yield trace_of(rows, where=where)


def events_of_table(
    events: pa.Table, trace_ids: Collection[int], *, where: str = "tables"
) -> dict[int, tuple[Event, ...]]:
    """The events of each trace that has some, made column by column in a third of the time that whole traces
    take. trace_ids: of the traces that there are.

    Raises TraceError for an event of no trace, and for a name that this version does not know.
    """
    columns = {name: values_of(events.column(name)) for name in EVENT_COLUMNS}
    columns["name"] = _names(columns["name"], where)
    made = list(map(_event_of, *(columns[field] for field in _EVENT_FIELDS)))
    ids = events.column("trace_id").to_numpy()
    begins = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1)).tolist() if len(ids) else []
    found: dict[int, tuple[Event, ...]] = {}
    for start, stop in pairwise([*begins, len(made)]):
        trace_id = int(ids[start])
        found[trace_id] = found.get(trace_id, ()) + tuple(made[start:stop])
    orphans = sorted(found.keys() - trace_ids)
    if orphans:
        raise TraceError(
            expected="a row in traces for every trace", seen=f"none for {orphans[0]}", where=where
        )
    return found


_NESTED_OF = {
    name: (maker_of(made, keywords=False), tuple(each.name for each in fields(made)))
    for name, made in {"records": Record, "positions": Position}.items()
}
_OPERATION_FIELDS = fields(Operation)
_operation_of = maker_of(Operation, keywords=False)


def operations_of_table(
    operations: pa.Table, columns: Collection[str], *, where: str = "tables"
) -> dict[int, tuple[Operation, ...]]:
    """The operations of each trace that has some, in the order of the rows, made column by column, CHUNK_ROWS
    rows at a time: the columns as values take a quarter of what the operations do.

    Args:
        operations: rows of the table, those of one trace not necessarily together.
        columns: of the fields to decode; the others keep their defaults.
        where: for errors.

    Raises:
        TraceError: for a function or an outcome that cannot be.
    """
    if not len(operations):
        return {}
    made: list[Operation] = []
    for at in range(0, len(operations), CHUNK_ROWS):
        some = operations.slice(at, CHUNK_ROWS)
        made += map(_operation_of, *(_field_of(some, columns, each, where) for each in _OPERATION_FIELDS))
    ids = operations.column("trace_id").to_numpy()
    begins = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1)).tolist()
    found: dict[int, tuple[Operation, ...]] = {}
    for start, stop in pairwise([*begins, len(made)]):
        trace_id = int(ids[start])
        found[trace_id] = found.get(trace_id, ()) + tuple(made[start:stop])
    return found


def _field_of(operations: pa.Table, columns: Collection[str], each: Any, where: str) -> Iterable[Any]:
    """The values of a field of operations."""
    if each.name not in columns:
        return repeat(each.default, len(operations))
    column: Any = operations.column(each.name)
    if each.name in _NESTED_OF:
        make, names = _NESTED_OF[each.name]
        assert tuple(inner.name for inner in column.type.value_type) == names
        return chain.from_iterable(_lists(chunk, make) for chunk in column.chunks)
    values = values_of(column)
    kinds: dict[str, type[StrEnum]] = {"function": Function, "outcome": Outcome}
    if each.name not in kinds:
        return values
    try:
        known = {word: kinds[each.name](word) for word in set(values)}
    except ValueError as error:
        raise TraceError(expected=f"a known {each.name}", seen=str(error), where=where) from None
    return map(known.__getitem__, values)


def _names(words: list[str], where: str) -> list[Name]:
    try:
        return list(map(_NAMES.__getitem__, words))
    except KeyError as unknown:
        raise TraceError(expected="a known event name", seen=repr(unknown.args[0]), where=where) from None


def only(tables: Tables, trace_id: int) -> Tables:
    """One trace of the tables."""
    return these(tables, [trace_id])


def these(tables: Tables, trace_ids: Sequence[int]) -> Tables:
    """Some traces of the tables, as slices, which copy nothing: rows of a trace are next to each other."""
    found = {}
    for table in TABLES:
        rows = tables.of(table)
        mine = np.isin(rows.column("trace_id").to_numpy(), trace_ids)
        edges = np.flatnonzero(np.diff(mine, prepend=False, append=False)).tolist()
        runs = zip(edges[::2], edges[1::2], strict=True)
        pieces = [rows.slice(start, stop - start) for start, stop in runs]
        found[table] = pa.concat_tables(pieces or [rows.slice(0, 0)])
    return Tables(traces=found["traces"], operations=found["operations"], events=found["events"])

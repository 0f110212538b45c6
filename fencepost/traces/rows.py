"""Traces as rows and as Arrow tables, both ways, without loss.

Owns: the canonical row (plain values in column order) of a trace, an operation and an event, and the tables
made of them. Must not know: files, digests, judges.

A canonical row holds nothing but None, bool, int, str and sequences: nested records and positions are
sequences of values in field order. The digest is taken over canonical rows and the journal stores them; Arrow
tables are columns of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
from attrs import frozen

from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.schema import (
    EVENT_COLUMNS,
    OPERATION_COLUMNS,
    POSITION_FIELDS,
    RECORD_FIELDS,
    SCHEMAS,
    TRACE_COLUMNS,
    Table,
    field_names,
)
from fencepost.traces.trace import Claims, LossRange, Trace

Row = Sequence[Any]
_NESTED = {"records": RECORD_FIELDS, "positions": POSITION_FIELDS}
_plain_operation_columns = tuple(name for name in OPERATION_COLUMNS if name not in _NESTED)
assert (*_plain_operation_columns, *_NESTED) == OPERATION_COLUMNS

_operation_values: Callable[[Operation], tuple[Any, ...]] = attrgetter(*_plain_operation_columns)
_event_values: Callable[[Event], tuple[Any, ...]] = attrgetter(*EVENT_COLUMNS)
_record_values: Callable[[Record], tuple[Any, ...]] = attrgetter(*RECORD_FIELDS)
_position_values: Callable[[Position], tuple[Any, ...]] = attrgetter(*POSITION_FIELDS)
_trace_values: Callable[[Trace], tuple[Any, ...]] = attrgetter(*TRACE_COLUMNS)
_CLAIMS_AT = TRACE_COLUMNS.index("claims")

_FUNCTIONS: dict[str, Function] = {function.value: function for function in Function}
_OUTCOMES: dict[str, Outcome] = {outcome.value: outcome for outcome in Outcome}
_NAMES: dict[str, Name] = {name.value: name for name in Name}


@frozen(kw_only=True)
class Rows:
    """One trace as canonical rows: its row of `traces`, its operations and its events, in order.

    Operations and events come without `trace_id` and `position`, which say where a row lies, not what it is.
    """

    trace: Row
    operations: Sequence[Row]
    events: Sequence[Row]

    @property
    def trace_id(self) -> int:
        """The trace's id."""
        return int(self.trace[0])


@frozen(kw_only=True)
class Tables:
    """Whole traces as Arrow tables with the schemas of schema.py; rows of one trace stand together, in order, in all three."""

    traces: pa.Table
    operations: pa.Table
    events: pa.Table

    def of(self, table: Table) -> pa.Table:
        """The table by name."""
        return {"traces": self.traces, "operations": self.operations, "events": self.events}[table]


_claims_values: Callable[[Claims], tuple[Any, ...]] = attrgetter(*field_names(Claims))


def claims_to_json(claims: Claims) -> str:
    """Canonical JSON: all fields in field order, no white space.

    Spelled out because msgspec writes the fields of a slotted class in the order of its slots, which is not the fields'.
    """
    values = dict(zip(field_names(Claims), _claims_values(claims), strict=True))
    values["loss"] = [{name: getattr(loss, name) for name in field_names(LossRange)} for loss in claims.loss]
    return msgspec.json.encode(values).decode()


def claims_from_json(text: str, *, where: str = "claims") -> Claims:
    """The claims that `text` holds. Raises TraceError."""
    try:
        return msgspec.json.decode(text, type=Claims)
    except msgspec.DecodeError as error:
        raise TraceError(expected="claims as JSON", seen=str(error), where=where) from None


def operation_row(operation: Operation) -> Row:
    """The canonical row of an operation."""
    return (
        *_operation_values(operation),
        [_record_values(record) for record in operation.records],
        [_position_values(position) for position in operation.positions],
    )


def event_row(event: Event) -> Row:
    """The canonical row of an event."""
    return _event_values(event)


def trace_row(trace: Trace) -> Row:
    """The canonical row of a trace in `traces`; claims as JSON."""
    values = list(_trace_values(trace))
    values[_CLAIMS_AT] = claims_to_json(trace.claims)
    return values


def rows_of(trace: Trace) -> Rows:
    """A trace as canonical rows."""
    return Rows(
        trace=trace_row(trace),
        operations=[operation_row(operation) for operation in trace.operations],
        events=[event_row(event) for event in trace.events],
    )


def _known(names: dict[str, Any], value: str, what: str, where: str) -> Any:
    try:
        return names[value]
    except KeyError:
        raise TraceError(expected=f"a known {what}", seen=repr(value), where=where) from None


def _operation(row: Row, where: str) -> Operation:
    values = dict(zip(OPERATION_COLUMNS, row, strict=True))
    values["function"] = _known(_FUNCTIONS, values["function"], "function", where)
    values["outcome"] = _known(_OUTCOMES, values["outcome"], "outcome", where)
    values["records"] = tuple(
        [Record(**dict(zip(RECORD_FIELDS, record, strict=True))) for record in values["records"]]
    )
    values["positions"] = tuple(
        [Position(**dict(zip(POSITION_FIELDS, position, strict=True))) for position in values["positions"]]
    )
    return Operation(**values)


def _event(row: Row, where: str) -> Event:
    values = dict(zip(EVENT_COLUMNS, row, strict=True))
    values["name"] = _known(_NAMES, values["name"], "event name", where)
    for name in ("isr", "replicas", "values"):
        values[name] = tuple(values[name])
    return Event(**values)


def trace_of(rows: Rows, *, where: str = "trace") -> Trace:
    """The trace that canonical rows hold.

    Raises TraceError for a function, outcome or event name that this version does not know.
    """
    values = dict(zip(TRACE_COLUMNS, rows.trace, strict=True))
    values["claims"] = claims_from_json(values["claims"], where=where)
    return Trace(
        **values,
        operations=tuple([_operation(row, where) for row in rows.operations]),
        events=tuple([_event(row, where) for row in rows.events]),
    )


# --- Arrow


def _nested_array(lists: Sequence[Sequence[Row]], field: Any) -> Any:
    """list<struct> from lists of field values, by column: Arrow's own conversion of tuples is ten times slower."""
    inner = list(field.type.value_type)
    columns = list(zip(*chain.from_iterable(lists), strict=True)) or [()] * len(inner)
    structs = pa.StructArray.from_arrays(
        [_array(column, member) for column, member in zip(columns, inner, strict=True)], fields=inner
    )
    offsets = list(accumulate((len(values) for values in lists), initial=0))
    return pa.ListArray.from_arrays(pa.array(offsets, type=pa.int32()), structs, type=field.type)


def _array(values: Sequence[Any], field: Any) -> Any:
    try:
        if field.name in _NESTED:
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

    Raises TraceError naming a column whose value has no place in it.
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


def _values(column: Any) -> list[Any]:
    """A column as Python values; structs as tuples in field order."""
    kind = column.type
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        values: list[Any] = column.to_pylist()
        return values
    result: list[Any] = []
    for array in column.chunks:
        structs = list(zip(*(child.to_pylist() for child in array.flatten().flatten()), strict=True))
        offsets = array.offsets.to_pylist()
        base = offsets[0]
        result.extend(structs[start - base : end - base] for start, end in pairwise(offsets))
    return result


def _rows(table: pa.Table, columns: Sequence[str]) -> list[Row]:
    return list(zip(*(_values(table.column(name)) for name in columns), strict=True))


def rows_of_tables(tables: Tables, *, where: str = "tables") -> Iterator[Rows]:
    """The traces that whole tables hold, in the order of `traces`.

    Raises TraceError for operations or events whose trace has no row in `traces`.
    """
    grouped: list[dict[int, list[Row]]] = []
    for table, columns in ((tables.operations, OPERATION_COLUMNS), (tables.events, EVENT_COLUMNS)):
        by_trace: dict[int, list[Row]] = {}
        ids: list[Any] = table.column("trace_id").to_pylist()
        for trace_id, row in zip(ids, _rows(table, columns), strict=True):
            by_trace.setdefault(trace_id, []).append(row)
        grouped.append(by_trace)
    for row in _rows(tables.traces, TRACE_COLUMNS):
        yield Rows(trace=row, operations=grouped[0].pop(row[0], []), events=grouped[1].pop(row[0], []))
    orphans = sorted({*grouped[0], *grouped[1]})
    if orphans:
        raise TraceError(
            expected="a row in traces for every trace id", seen=f"none for trace {orphans[0]}", where=where
        )


def traces_of_tables(tables: Tables, *, where: str = "tables") -> Iterator[Trace]:
    """As `rows_of_tables`, as Trace values."""
    for rows in rows_of_tables(tables, where=where):
        yield trace_of(rows, where=where)

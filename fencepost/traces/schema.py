"""The Arrow schemas of the three tables, and the check that a file has them.

Owns which columns `traces`, `operations` and `events` have, their types, and the key-value metadata of
their Parquet files. Must not know how rows are made (canonical_rows.py) or where the files are (store.py).

The columns are the fields of `Trace`, `Operation` and `Event`, in their order and under their names, so that
the vocabulary is the schema: every integer is int64, a column is nullable exactly where the attrs type admits
None, tuples are lists and nested values structs. `operations` and `events` start with `trace_id`; `events`
continues with `position`, the row's number within its trace, because certificates name events by it. Strings
are plain strings in Arrow; Parquet stores them dictionary-encoded, and a reader that wants them so asks for
it (parquet.read_group). Golden files and a fingerprint in the tests pin version 1.
"""

from __future__ import annotations

import types
from enum import StrEnum
from typing import Any, Literal, get_args, get_origin

import attrs
import pyarrow as pa

from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation, Position, Record
from fencepost.traces.trace import SCHEMA_VERSION, Trace

Table = Literal["traces", "operations", "events"]
TABLES: tuple[Table, ...] = ("traces", "operations", "events")

VERSION_KEY = b"fencepost.schema_version"
TABLE_KEY = b"fencepost.table"
WHOLE_KEY = b"fencepost.traces_whole_in_row_group"


def field_names(cls: type[attrs.AttrsInstance], *, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names of an attrs class's fields, in order, less those in `without`."""
    return tuple(field.name for field in attrs.fields(cls) if field.name not in without)


TRACE_COLUMNS = field_names(Trace, without=("operations", "events"))
OPERATION_COLUMNS = field_names(Operation)
EVENT_COLUMNS = field_names(Event)
RECORD_FIELDS = field_names(Record)
POSITION_FIELDS = field_names(Position)


def _arrow_type(annotation: Any) -> tuple[pa.DataType, bool]:
    """(Arrow type, nullable) of a field's annotation."""
    if isinstance(annotation, types.UnionType):
        inner = [member for member in get_args(annotation) if member is not types.NoneType]
        assert len(inner) == 1, f"a column has one type, not {annotation}"
        return _arrow_type(inner[0])[0], True
    if get_origin(annotation) is tuple:
        element, nullable = _arrow_type(get_args(annotation)[0])
        return pa.list_(pa.field("element", element, nullable=nullable)), False
    if annotation is bool:
        return pa.bool_(), False
    if annotation is int:
        return pa.int64(), False
    if isinstance(annotation, type) and issubclass(annotation, str):
        assert annotation is str or issubclass(annotation, StrEnum)
        return pa.string(), False
    assert attrs.has(annotation), f"no Arrow type for {annotation}"
    return pa.struct(_fields(annotation)), False


def _fields(cls: type[attrs.AttrsInstance], *, without: tuple[str, ...] = ()) -> list[pa.Field[Any]]:
    """One Arrow field per attrs field."""
    fields = []
    for field in attrs.fields(cls):
        if field.name not in without:
            kind, nullable = _arrow_type(field.type)
            fields.append(pa.field(field.name, kind, nullable=nullable))
    return fields


def _schema(table: Table, fields: list[pa.Field[Any]]) -> pa.Schema:
    return pa.schema(fields).with_metadata(
        {VERSION_KEY: str(SCHEMA_VERSION).encode(), TABLE_KEY: table.encode(), WHOLE_KEY: b"true"}
    )


_TRACE_ID = pa.field("trace_id", pa.int64(), nullable=False)
_POSITION = pa.field("position", pa.int64(), nullable=False)
_CLAIMS = pa.field("claims", pa.string(), nullable=False)

SCHEMAS: dict[Table, pa.Schema] = {
    "traces": _schema(
        "traces",
        [
            _CLAIMS if field.name == "claims" else field
            for field in _fields(Trace, without=("operations", "events"))
        ],
    ),
    "operations": _schema("operations", [_TRACE_ID, *_fields(Operation)]),
    "events": _schema("events", [_TRACE_ID, _POSITION, *_fields(Event)]),
}
"""The schema of each table, with the metadata that every Parquet part carries."""


def _string_paths(field: Any, before: str = "") -> list[str]:
    path = before + field.name
    if pa.types.is_list(field.type):
        return _string_paths(field.type.value_field.with_name("list.element"), f"{path}.")
    if pa.types.is_struct(field.type):
        return [found for member in field.type for found in _string_paths(member, f"{path}.")]
    return [path] if pa.types.is_string(field.type) else []


STRINGS: dict[Table, tuple[str, ...]] = {
    table: tuple(path for field in SCHEMAS[table] for path in _string_paths(field)) for table in TABLES
}
"""Paths of each table's string columns, those within lists included, as Parquet names them."""

RECORD_TYPE = pa.struct(_fields(Record))


def fingerprint(table: Table) -> str:
    """One line per column: name, type, nullable or not. A test pins it for each schema version."""
    return "\n".join(
        f"{field.name} {field.type}{' null' if field.nullable else ''}" for field in SCHEMAS[table]
    )


def _problem(schema: pa.Schema, table: Table) -> tuple[str, str] | None:
    """(expected, seen) of the first thing that makes `schema` another than that of `table`; None if it
    fits."""
    metadata = {key: value.decode(errors="replace") for key, value in (schema.metadata or {}).items()}
    version, name = metadata.get(VERSION_KEY), metadata.get(TABLE_KEY)
    if version is None:
        return f"a part of the table {table}", f"Parquet without the key {VERSION_KEY.decode()}"
    if version != str(SCHEMA_VERSION):
        return f"schema version {SCHEMA_VERSION}", f"schema version {version}"
    if name != table:
        return f"a part of the table {table}", f"one of the table {name}"
    if metadata.get(WHOLE_KEY) != "true":
        return "each trace whole within one row group", "a file that does not promise it"
    for field in SCHEMAS[table]:
        position = schema.get_field_index(field.name)
        if position < 0:
            return f"the column {field.name}", "a table without it"
        if schema.field(position).type != field.type:
            return f"the column {field.name} as {field.type}", str(schema.field(position).type)
    return None


def check_schema(schema: pa.Schema, table: Table, *, where: str) -> None:
    """Refuse a file that is not a part of `table` in this schema version. Extra columns are ignored.

    Raises TraceError in one sentence.
    """
    problem = _problem(schema, table)
    if problem is not None:
        raise TraceError(expected=problem[0], seen=problem[1], where=where)

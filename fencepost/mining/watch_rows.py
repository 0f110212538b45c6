"""Reading the lines of a trace under way quickly.

Owns: the usual form of a line. Must not know: Spark, judges.

The reader of traces/jsonlines.py says what is wrong with a line; this one says only that something is, and
then the other reads the file. That one costs 20 us an operation, this one 4: the files of a trace under way
are read again each time that it is judged.
"""

import types
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args, get_origin

import attrs
import msgspec
from attrs import evolve
from msgspec.structs import asdict, astuple

from fencepost.traces.jsonlines import LINE_BYTES_MAX, Int64, Run, check_runs, read_lines, records_of
from fencepost.traces.making import maker_of
from fencepost.traces.operations import Operation, Position, Record
from fencepost.traces.trace import Trace

_MADE: dict[Any, Any] = {int: Int64}


def _kind(annotation: Any) -> Any:
    """The type of a field, with 64-bit integers and with our form of what is nested."""
    if annotation in _MADE:
        return _MADE[annotation]
    if isinstance(annotation, types.UnionType):
        inner = [_kind(member) for member in get_args(annotation) if member is not types.NoneType]
        return inner[0] | None
    if get_origin(annotation) is tuple:
        return tuple[_kind(get_args(annotation)[0]), ...]  # type: ignore[misc]
    return annotation


def _form_of(cls: Any, *more: tuple[str, Any, Any]) -> Any:
    """A class with the fields of an attrs class, their order and their defaults; more: fields after them."""
    fields = [
        (field.name, _kind(field.type))
        if field.default is attrs.NOTHING
        else (field.name, _kind(field.type), field.default)
        for field in attrs.fields(attrs.resolve_types(cls))
    ]
    tag = "operation" if cls is Operation else None
    made = msgspec.defstruct(
        f"{cls.__name__}{'Line' if more else 'Row'}", [*fields, *more], module=__name__,
        tag_field=None if tag is None else "type", tag=tag,
        forbid_unknown_fields=True, omit_defaults=True, gc=False, frozen=True,
    )  # fmt: skip
    _MADE.setdefault(cls, made)
    return made


RecordRow, PositionRow = _form_of(Record), _form_of(Position)
OperationRow: Any = _form_of(Operation)

_decode_row = msgspec.json.Decoder(OperationRow).decode
_decode_runs = msgspec.json.Decoder(_form_of(Operation, ("runs", list[Run], []))).decode
_make_operation: Any = maker_of(Operation, keywords=False)
_make_record: Any = maker_of(Record, keywords=False)
_IS_OPERATION, _HAS_RUNS = b'{"type":"operation",', b'"runs":'


def _decode_line(line: bytes) -> Operation:
    """The operation of a line. Raises msgspec.MsgspecError."""
    *plain, records, positions = astuple(
        _decode_row(line) if _HAS_RUNS not in line else _decode_with_runs(line)
    )
    made = _make_operation(
        *plain,
        tuple([_make_record(*astuple(one)) for one in records]),
        tuple([Position(**asdict(one)) for one in positions]),
    )
    return cast(Operation, made)


def _decode_with_runs(line: bytes) -> Any:
    fields = asdict(_decode_runs(line))
    runs = fields.pop("runs")
    if runs and fields["records"]:
        raise msgspec.ValidationError("records and runs")
    check_runs(runs)
    if runs:
        fields["records"] = tuple(records_of(runs, RecordRow))
    return OperationRow(**fields)


def read_quickly(path: Path) -> list[Trace] | None:
    """The traces under way in a file of JSON lines. None if anything else is in it: a trace with a
    digest, or a line that cannot be read or has an unusual form; then the reader of
    jsonlines.py says what. Raises OSError."""
    found: list[Trace] = []
    others: list[bytes] = []
    operations: list[Operation] = []

    def close() -> bool:
        if not others:
            return not operations
        (trace,) = read_lines(others, where=str(path))
        found.append(evolve(trace, operations=tuple(operations)))
        return not trace.digest and not trace.operations

    try:
        with path.open("rb") as file:
            for line in iter(partial(file.readline, LINE_BYTES_MAX + 1), b""):
                if line.startswith(_IS_OPERATION):
                    operations.append(_decode_line(line))
                elif line.startswith(b'{"type":"trace"'):
                    if not close():
                        return None
                    others, operations = [line], []
                elif line.strip():
                    others.append(line)
            whole = close()
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return found if whole and found else None

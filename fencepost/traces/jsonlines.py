"""JSON lines: the readable twin of the three tables.

Owns: how a trace is written as lines, and strict reading with file and line in every error. Must not know: Parquet.

Each line is an object with a `type`: `trace` (the row of `traces`, claims as an object; it begins a trace), `operation`
or `event` (they belong to the trace above, in order). Fields that have their default value are left out, so that a
person can read what is there; the same defaults are filled in when reading, so nothing is lost. Several traces
may follow each other in one file. An unknown field, a wrong type or a missing field is refused by name.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import msgspec
from attrs import define, evolve

from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation, Position, Record
from fencepost.traces.trace import Claims, LossRange, Trace

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_TYPES: dict[str, type[Any]] = {"trace": Trace, "operation": Operation, "event": Event}
_OWN_LINES = frozenset({"operations", "events"})
"""Fields of a trace that are lines of their own."""
_NESTED = frozenset({"claims", "records", "positions"})
_DEFAULTS: dict[type[Any], dict[str, Any]] = {
    cls: {
        field.name: field.default
        for field in attrs.fields(cls)
        if cls is not Trace or field.name not in _OWN_LINES
    }
    for cls in (*_TYPES.values(), Claims, LossRange, Record, Position)
}


def _shown(value: Any) -> Any:
    """A value as it is written: of nested values only the fields that differ from their defaults, in field order."""
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    defaults = _DEFAULTS.get(type(value))
    if defaults is None:
        return value
    fields = ((name, getattr(value, name), default) for name, default in defaults.items())
    return {
        name: _shown(field) for name, field, default in fields if default is attrs.NOTHING or field != default
    }


def _line(kind: str, value: Any) -> bytes:
    try:
        return msgspec.json.encode({"type": kind, **_shown(value)})
    except (OverflowError, UnicodeError) as error:
        raise TraceError(
            expected="text and integers", seen=str(error), where=f"a row of type {kind}"
        ) from None


def lines_of(trace: Trace) -> Iterator[str]:
    """The lines of one trace, without line feeds."""
    yield _line("trace", trace).decode()
    for operation in trace.operations:
        yield _line("operation", operation).decode()
    for event in trace.events:
        yield _line("event", event).decode()


def write_traces(path: Path, traces: Iterable[Trace]) -> int:
    """Write traces to a file, one after another; answers how many."""
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for trace in traces:
            file.writelines(line + "\n" for line in lines_of(trace))
            count += 1
    return count


@define
class _Open:
    """The trace being read: its first line, and the rows that followed it so far."""

    trace: Trace
    operations: list[Operation]
    events: list[Event]

    def close(self) -> Trace:
        return evolve(self.trace, operations=tuple(self.operations), events=tuple(self.events))


def _check_range(value: Any, where: str) -> None:
    """Refuse an integer that no column can hold, wherever it stands in a row."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _check_range(item, where)
    elif isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        raise TraceError(expected="64-bit integers", seen=str(value), where=where)


def _unknown_inside(given: Any, understood: Any) -> str | None:
    """A field of a nested value that reading dropped because nothing is called so; None if there is none."""
    if isinstance(given, list):
        pairs = list(zip(given, understood, strict=True))
    elif isinstance(given, dict):
        extra: list[str] = sorted(set(given) - set(understood))
        if extra:
            return extra[0]
        pairs = [(given[name], understood[name]) for name in given]
    else:
        return None
    return next((found for pair in pairs if (found := _unknown_inside(*pair)) is not None), None)


def _parse(text: str | bytes, where: str) -> Any:
    try:
        row = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise TraceError(expected="a JSON object", seen=str(error), where=where) from None
    if not isinstance(row, dict):
        raise TraceError(expected="a JSON object", seen=type(row).__name__, where=where)
    kind = row.pop("type", None)
    cls = _TYPES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise TraceError(expected='a "type" of trace, operation or event', seen=repr(kind), where=where)
    unknown = sorted(set(row) - set(_DEFAULTS[cls]))
    if unknown:
        raise TraceError(
            expected=f"the fields of a {kind}", seen=f"the unknown field {unknown[0]}", where=where
        )
    _check_range(row, where)
    try:
        value = msgspec.convert(row, cls)
    except msgspec.ValidationError as error:
        raise TraceError(expected=f"the fields of a {kind}", seen=str(error), where=where) from None
    for name in _NESTED.intersection(row):
        extra = _unknown_inside(row[name], msgspec.to_builtins(getattr(value, name)))
        if extra is not None:
            raise TraceError(expected=f"the fields of {name}", seen=f"the unknown field {extra}", where=where)
    return value


def read_lines(lines: Iterable[str | bytes], *, where: str) -> Iterator[Trace]:
    """The traces that lines hold; blank lines are skipped. Raises TraceError with `where` and the line number."""
    current: _Open | None = None
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        at = f"{where}:{number}"
        row = _parse(text, at)
        if isinstance(row, Trace):
            if current is not None:
                yield current.close()
            current = _Open(row, [], [])
        elif current is None:
            raise TraceError(expected="a trace's own line first", seen=type(row).__name__.lower(), where=at)
        elif isinstance(row, Operation):
            current.operations.append(row)
        else:
            current.events.append(row)
    if current is not None:
        yield current.close()


def read_traces(path: Path) -> Iterator[Trace]:
    """The traces of a file, one at a time. Raises TraceError with file and line."""
    try:
        with path.open("rb") as file:
            yield from read_lines(file, where=str(path))
    except OSError as error:
        raise TraceError(
            expected="a readable file of JSON lines", seen=error.strerror or str(error), where=str(path)
        ) from None

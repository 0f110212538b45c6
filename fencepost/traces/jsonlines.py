"""JSON lines: the readable twin of the three tables.

Owns how a trace is written as lines, and strict reading with file and line in every error. Must not know
Parquet.

Each line is an object with a `type`: `trace` (the row of `traces`, claims as an object; it begins a trace),
`operation` or `event` (they belong to the trace above, in order). Fields with their default value are
left out, so that a person can read what is there; reading fills in the same defaults, so nothing is
lost. Several traces may follow each other in one file. An unknown field, a wrong type or a missing field is
refused by name.

Instead of `records`, an operation may have `runs`, records at neighbouring offsets with only their values:
`{"topic":"t","partition":0,"offset":7,"values":[5,6]}` says the same as two records at the offsets 7 and 8;
from offset -1 all have the offset -1. A proxy under load writes a fifth of the bytes so.

A recorder that writes while things happen writes an operation twice: its invocation before it is sent, and
the whole when it has completed. Of a trace without a digest the whole takes the place of its invocation. A
last line without its line feed that cannot be read was cut: it alone is lost.
"""

import codecs
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar

import attrs
import msgspec
from attrs import Factory, define, evolve, field

from fencepost.traces.canonical_rows import left_out_in_words
from fencepost.traces.decoding import from_json
from fencepost.traces.errors import BYTE_ORDER_MARK, EnvironmentError_, TraceError
from fencepost.traces.events import Event, Name, lacks_topic
from fencepost.traces.kafka_names.client_errors import kafka_error
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Claims, LossRange, Trace
from fencepost.traces.whole_file import whole

R = TypeVar("R")
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
CUT_LINE = "a whole last line"
"""What is expected where the end of a file was cut: the traces before the error count."""
LINE_BYTES_MAX = 1 << 24
"""One line: a poll of 200,000 records. Lists within lists take up to 22 times as much memory."""

MOST_VALUES = 400_000
"""In the runs of one line: a line of the largest length holds 360,000 records that are written one by one."""
_VALUES, _RECORD = b'"values":[', b'"value":'
_TYPES: dict[str, type[Any]] = {"trace": Trace, "operation": Operation, "event": Event}
_OWN_LINES = frozenset({"operations", "events"})
"""Fields of a trace that are separate lines."""
_OF_KAFKA = frozenset(
    {Function.APPEND, Function.POLL, Function.LIST_OFFSETS, Function.DELETE_RECORDS, Function.TXN}
    | {Function.COMMIT, Function.FETCH_COMMITTED, Function.JOIN, Function.ASSIGN, Function.SUBSCRIBE}
    | {Function.LEAVE}
)
"""Functions with errors that have names of Kafka's; what other systems answer is their own."""
MOST_UNKNOWN, OTHERS = 100, "(another)"
"""How many unknown event names are listed for one file, and the name for further ones."""
_NAMES = frozenset(name.value for name in Name)
_NESTED = frozenset({"claims", "records", "positions"})
_DEFAULTS: dict[type[Any], dict[str, Any]] = {
    cls: {
        field.name: field.default
        for field in attrs.fields(cls)
        if cls is not Trace or field.name not in _OWN_LINES
    }
    for cls in (*_TYPES.values(), Claims, LossRange, Record, Position)
}


class Run(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Records at neighbouring offsets of one partition, of one leader epoch."""

    topic: str
    partition: Int64
    # Of the first record. -1: the client was not given any.
    offset: Int64
    # The value ids, in offset order.
    values: list[Int64]
    leader_epoch: Int64 = -1


def _runs_of(given: Any) -> list[Run]:
    """The runs of a line. Raises msgspec.ValidationError for what is none, and for too many values."""
    runs = msgspec.convert(given, list[Run])
    check_runs(runs)
    return runs


def check_runs(runs: list[Run]) -> None:
    """Refuse runs that no trace holds. Raises msgspec.ValidationError."""
    if sum(len(run.values) for run in runs) > MOST_VALUES:
        raise msgspec.ValidationError(f"more than {MOST_VALUES:,} values in the runs of one line")
    for run in runs:
        if run.offset < -1 or run.offset + len(run.values) > INT64_MAX:
            raise msgspec.ValidationError(f"a run of {len(run.values)} records from offset {run.offset}")


def records_of(runs: list[Run], make: Callable[..., R]) -> Iterator[R]:
    """Each record; make: a class with the fields of a record."""
    for run in runs:
        topic, partition, epoch = run.topic, run.partition, run.leader_epoch
        for offset, value in enumerate(run.values, run.offset):
            yield make(
                topic=topic,
                partition=partition,
                offset=offset if run.offset >= 0 else -1,
                value=value,
                leader_epoch=epoch,
            )


def records_in(line: bytes) -> int:
    """How many records a line names, without reading it."""
    found = line.count(_RECORD)
    for rest in line.split(_VALUES)[1:]:
        values = rest[: rest.find(b"]")]
        found += values.count(b",") + 1 if values else 0
    return found


def _shown(value: Any) -> Any:
    """A value as it is written: of nested values only the fields that differ from their defaults, in field
    order."""
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


def operation_line(operation: Operation) -> bytes:
    """The line of an operation, without its line feed. Raises TraceError for what has none."""
    return _line("operation", operation)


def event_line(event: Event) -> bytes:
    """The line of an event, without its line feed. Raises TraceError for what has none."""
    return _line("event", event)


def lines_of(trace: Trace) -> Iterator[str]:
    """The lines of one trace, without line feeds."""
    yield _line("trace", trace).decode()
    for operation in trace.operations:
        yield _line("operation", operation).decode()
    for event in trace.events:
        yield _line("event", event).decode()


def write_traces(path: Path, traces: Iterable[Trace]) -> int:
    """Write traces to a file, whole or not at all; answers how many. Raises EnvironmentError_, with the
    path, when the disk refuses."""
    count = 0
    try:
        with whole(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
            for trace in traces:
                file.writelines(line + "\n" for line in lines_of(trace))
                count += 1
    except OSError as error:
        raise EnvironmentError_(
            expected="room for traces", seen=error.strerror or str(error), where=str(path)
        ) from None
    return count


@define
class _Open:
    """The trace being read: its first line, and the rows that followed it so far."""

    trace: Trace
    operations: list[Operation]
    events: list[Event]
    # The position of each operation, by op id, to find its invocation; empty for a trace with a digest, which
    # is complete.
    places: dict[int, int] = field(factory=dict)

    def add(self, operation: Operation) -> None:
        """Add the next operation, or complete the one with its invocation."""
        if self.trace.digest:
            self.operations.append(operation)
            return
        place = self.places.setdefault(operation.op_id, len(self.operations))
        if place == len(self.operations):
            self.operations.append(operation)
        elif _completes(self.operations[place], operation):
            self.operations[place] = operation
        else:
            self.operations.append(operation)

    def close(self) -> Trace:
        return evolve(self.trace, operations=tuple(self.operations), events=tuple(self.events))


def _completes(invocation: Operation, whole: Operation) -> bool:
    """Whether an operation completes an invocation."""
    return (
        invocation.outcome is Outcome.UNKNOWN
        and invocation.completion_time is None
        and (invocation.process, invocation.function, invocation.invoke_time)
        == (whole.process, whole.function, whole.invoke_time)
    )


def _check_range(value: Any, where: str) -> None:
    """Refuse an integer that no column can hold, anywhere in a row."""
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


@define
class _LeftOut:
    """Events of names that this version does not know: how many of each name, and where the first one was."""

    counts: Counter[str] = Factory(Counter)
    first: dict[str, str] = Factory(dict)

    def add(self, name: str, where: str) -> None:
        name = name if name in self.counts or len(self.counts) < MOST_UNKNOWN else OTHERS
        self.counts[name] += 1
        self.first.setdefault(name, where)

    def reasons(self) -> Iterator[str]:
        for name, count in self.counts.items():
            yield left_out_in_words(name, count, self.first[name])


def _article(kind: str | None) -> str:
    return f"{'an' if kind in ('operation', 'event') else 'a'} {kind}"


def _parse(text: str | bytes, where: str, left_out: _LeftOut | None) -> Any:
    """The value of a line; None for an event that is left out."""
    try:
        row = from_json(text)
    except msgspec.DecodeError as error:
        marked = text[:1] == "\ufeff" if isinstance(text, str) else text.startswith(codecs.BOM_UTF8)
        seen, hint = BYTE_ORDER_MARK if marked else (str(error), "")
        raise TraceError(expected="a JSON object", seen=seen, where=where, hint=hint) from None
    if not isinstance(row, dict):
        raise TraceError(expected="a JSON object", seen=type(row).__name__, where=where)
    kind = row.pop("type", None)
    cls = _TYPES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise TraceError(expected='a "type" of trace, operation or event', seen=repr(kind), where=where)
    if (
        left_out is not None
        and cls is Event
        and isinstance(row.get("name"), str)
        and row["name"] not in _NAMES
    ):
        left_out.add(row["name"], where)
        return None
    runs = row.pop("runs", None) if cls is Operation and "records" not in row else None
    unknown = sorted(set(row) - set(_DEFAULTS[cls]))
    if unknown:
        raise TraceError(
            expected=f"the fields of {_article(kind)}", seen=f"the unknown field {unknown[0]}", where=where
        )
    _check_range(row, where)
    try:
        value = msgspec.convert(row, cls)
        if runs is not None:
            value = evolve(value, records=tuple(records_of(_runs_of(runs), Record)))
    except msgspec.ValidationError as error:
        raise TraceError(expected=f"the fields of {_article(kind)}", seen=str(error), where=where) from None
    if cls is Event and lacks_topic(value):
        raise TraceError(expected=f"the topic of an event {value.name}", seen="none", where=where)
    for name in _NESTED.intersection(row):
        extra = _unknown_inside(row[name], msgspec.to_builtins(getattr(value, name)))
        if extra is not None:
            raise TraceError(expected=f"the fields of {name}", seen=f"the unknown field {extra}", where=where)
    return value


def read_lines(
    lines: Iterable[str | bytes],
    *,
    where: str,
    may_be_cut: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Trace]:
    """The traces in lines; blank lines are skipped. Raises TraceError with `where` and the line
    number.

    may_be_cut: lines have their line feeds. A last one without it that cannot be read is reported after the
    trace that it cut, which has no digest then. tell: is called after the last line, with a sentence
    about events that were left out because this version does not know their name; without it they are
    refused.
    """
    current: _Open | None = None
    left_out = None if tell is None else _LeftOut()
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        at = f"{where}:{number}"
        try:
            row = _parse(text, at, left_out)
        except TraceError as error:
            if not may_be_cut or text[-1:] in (b"\n", "\n"):
                raise
            if current is not None:
                yield evolve(current.close(), digest="")
            raise TraceError(
                expected=CUT_LINE, seen=f"one that was cut ({error.seen})", where=at, hint="that line is lost"
            ) from None
        if row is None:
            continue
        if isinstance(row, Trace):
            if current is not None:
                yield current.close()
            current = _Open(row, [], [])
        elif current is None:
            raise TraceError(expected="a trace's own line first", seen=type(row).__name__.lower(), where=at)
        elif isinstance(row, Operation):
            foreign = not current.trace.plan and row.error is not None and row.function in _OF_KAFKA
            if foreign and row.error is not None:
                row = evolve(row, error=kafka_error(row.error, where=at))
            current.add(row)
        else:
            current.events.append(row)
    if current is not None:
        yield current.close()
    if tell is not None and left_out is not None:
        for reason in left_out.reasons():
            tell(reason)


def _lines(file: BinaryIO, where: str) -> Iterator[bytes]:
    """The lines of a file with their line feeds. Raises TraceError for one beyond LINE_BYTES_MAX."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise TraceError(
                expected=f"lines of at most {LINE_BYTES_MAX:,} bytes",
                seen="a longer one",
                where=f"{where}:{number}",
            )
        yield line


def read_traces(path: Path, tell: Callable[[str], None] | None = None) -> Iterator[Trace]:
    """The traces of the file `path`, one at a time; tell: as for `read_lines`. Raises TraceError with file
    and line."""
    try:
        with path.open("rb") as file:
            yield from read_lines(_lines(file, str(path)), where=str(path), may_be_cut=True, tell=tell)
    except OSError as error:
        raise TraceError(
            expected="a readable file of JSON lines", seen=error.strerror or str(error), where=str(path)
        ) from None

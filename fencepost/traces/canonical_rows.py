"""Traces as canonical rows, both ways, without loss.

Owns: the canonical row (plain values in column order) of a trace, an operation and an event. Must not know:
Arrow, files, digests, judges.

A canonical row holds nothing but None, bool, int, str and sequences: nested records and positions are
sequences of values in field order. The digest is taken over canonical rows and the journal stores them; Arrow
tables are columns of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
from attrs import evolve, frozen

from fencepost.traces.decoding import from_json
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.schema import (
    EVENT_COLUMNS,
    OPERATION_COLUMNS,
    POSITION_FIELDS,
    RECORD_FIELDS,
    TRACE_COLUMNS,
    field_names,
)
from fencepost.traces.trace import Claims, LossRange, Trace

Row = Sequence[Any]
ROWS_MAX = 1_000_000
"""Operations and events of a run that becomes Python values: a million take 1.7 GB in `check`.
`fencepost mine` judges more, by columns."""
NESTED = {"records": RECORD_FIELDS, "positions": POSITION_FIELDS}
_plain_operation_columns = tuple(name for name in OPERATION_COLUMNS if name not in NESTED)
assert (*_plain_operation_columns, *NESTED) == OPERATION_COLUMNS

_operation_values: Callable[[Operation], tuple[Any, ...]] = attrgetter(*_plain_operation_columns)
_event_values: Callable[[Event], tuple[Any, ...]] = attrgetter(*EVENT_COLUMNS)
_record_values: Callable[[Record], tuple[Any, ...]] = attrgetter(*RECORD_FIELDS)
_position_values: Callable[[Position], tuple[Any, ...]] = attrgetter(*POSITION_FIELDS)
_trace_values: Callable[[Trace], tuple[Any, ...]] = attrgetter(*TRACE_COLUMNS)
_CLAIMS_AT, _DIGEST_AT = TRACE_COLUMNS.index("claims"), TRACE_COLUMNS.index("digest")

LONGEST_NAME = 80
"""Characters of an unknown name that are shown: ours have at most 25."""

_OUTCOMES: dict[str, Outcome] = {outcome.value: outcome for outcome in Outcome}
_NAMES: dict[str, Name] = {name.value: name for name in Name}


@frozen(kw_only=True)
class Rows:
    """One trace as canonical rows: its row of `traces`, its operations and its events, in order.

    Operations and events come without `trace_id` and `position`, which say where a row is, not what it is.
    """

    trace: Row
    operations: Sequence[Row]
    events: Sequence[Row]

    @property
    def trace_id(self) -> int:
        """The trace's id."""
        return int(self.trace[0])

    @property
    def digest(self) -> str:
        """The trace's digest as its row has it."""
        return str(self.trace[_DIGEST_AT])

    def with_digest(self, digest: str) -> Rows:
        """The same rows with another digest."""
        return evolve(self, trace=[*self.trace[:_DIGEST_AT], digest, *self.trace[_DIGEST_AT + 1 :]])


_claims_values: Callable[[Claims], tuple[Any, ...]] = attrgetter(*field_names(Claims))
DURATIONS = ("stall_ms", "transaction_timeout_ms", "producer_expiry_ms", "offsets_expiry_ms")
"""Claims in milliseconds."""
LONGEST_MS = 10**12
"""Thirty years: in nanoseconds it fits 64 bits."""
_LATER_CLAIMS: dict[str, Any] = {
    name: getattr(Claims(), name) for name in ("retention", "compacted", "acks_1_may_lose", *DURATIONS)
}
"""Claims that came after schema version 1, with their defaults: left out where they have them, so that
digests stay the same."""


def claims_to_json(claims: Claims) -> str:
    """Canonical JSON: fields in field order, no white space; those of `_LATER_CLAIMS` only where they say
    something.

    Spelled out because msgspec writes the fields of a slotted class in the order of its slots, which is not
    the fields'.
    """
    values = dict(zip(field_names(Claims), _claims_values(claims), strict=True))
    values["loss"] = [{name: getattr(loss, name) for name in field_names(LossRange)} for loss in claims.loss]
    silent = [name for name, default in _LATER_CLAIMS.items() if values[name] == default]
    return msgspec.json.encode({name: values[name] for name in values if name not in silent}).decode()


def claims_from_json(text: str, *, where: str = "claims") -> Claims:
    """The claims that `text` holds. Raises TraceError."""
    try:
        claims = _decoded_claims(text)
    except msgspec.DecodeError as error:
        raise TraceError(expected="claims as JSON", seen=str(error), where=where) from None
    check_claims(claims, where)
    return claims


@lru_cache(maxsize=1024)
def _decoded_claims(text: str) -> Claims:
    """Most traces of a campaign claim the same."""
    claims: Claims = from_json(text, Claims)
    return claims


def check_claims(claims: Claims, where: str) -> None:
    """Refuse numbers that mean nothing: they would convict the innocent, or excuse nothing.

    Args:
        claims: of a trace.
        where: the place, for the message.

    Raises:
        TraceError: for the first such number.
    """
    if claims.clock_uncertainty_ns < 0:
        raise TraceError(
            expected="clock_uncertainty_ns from 0", seen=str(claims.clock_uncertainty_ns), where=where
        )
    for name in DURATIONS:
        least, value = (-1 if name == "offsets_expiry_ms" else 0), getattr(claims, name)
        if not least <= value <= LONGEST_MS:
            raise TraceError(
                expected=f"{name} from {least} to {LONGEST_MS}, milliseconds", seen=str(value), where=where
            )
    for loss in claims.loss:
        if not 0 <= loss.start <= loss.end:
            raise TraceError(
                expected="ranges of loss with offsets 0 <= start <= end",
                seen=f"start {loss.start}, end {loss.end} for {loss.topic}-{loss.partition}",
                where=where,
            )


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


def check_rows(count: int, *, where: str = "a trace's rows") -> None:
    """Refuse a run that would take too much memory as Python values. count: its rows; where: for the error.
    Raises TraceError."""
    if count > ROWS_MAX:
        raise TraceError(
            expected=f"at most {ROWS_MAX:,} operations and events in one trace",
            seen=f"{count:,}",
            where=where,
            hint="`fencepost mine` judges longer histories, from Parquet",
        )


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
    try:
        values["function"] = Function(values["function"])
    except ValueError:
        raise TraceError(
            expected="the name of a function", seen=repr(values["function"]), where=where
        ) from None
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


def known_events(rows: Rows) -> tuple[Rows, dict[str, int]]:
    """The rows without events of names that this version does not know, and how many of each such name there
    were."""
    at = EVENT_COLUMNS.index("name")
    strange = Counter(str(row[at]) for row in rows.events if row[at] not in _NAMES)
    if not strange:
        return rows, {}
    kept = [row for row in rows.events if row[at] in _NAMES]
    return evolve(rows, events=kept), dict(strange)


def left_out_in_words(name: str, count: int, where: str) -> str:
    """The message for events of an unknown name that were left out. name: of the events; count: how many;
    where: the file."""
    many = f"{count} events" if count != 1 else "an event"
    shown = name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "..."
    return f"{where}: {many} of the unknown name {shown!r} left out, the rest of the trace is judged"


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

"""A recording that is too long to be one value: piece by piece into Parquet, which `fencepost mine` judges by
slot ranges.

Owns the two walks over the parts. Must not know who records. What parts.py says of a recording holds here,
too: an invocation gives way to the whole, and what was refused and sent again, or was there before and sent
here, is left out. The first walk gathers the values of what was sent and read, the second writes. In memory
are the rows without an outcome, 16 bytes for each record that was sent, 24 for each from before (one more for
each of their rows), and operations that weigh MOST_HELD. The
events keep their order, the operations that of their invocations, unless one took longer than what is held.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, evolve, field

from fencepost.traces.canonical_rows import Rows, event_row, operation_row, trace_row
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import CUT_LINE, read_traces
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.parquet.writer import FileWriter
from fencepost.traces.parts import BEFORE, RETRIED, Place, parts_of, places_if_sent, places_of
from fencepost.traces.schema import SCHEMAS, TABLES, WHOLE_KEY, Table
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace

IntArray = np.ndarray[Any, np.dtype[np.int64]]
GROUP_EVENTS = 100_000
"""Events of a row group: 200 MB as Python values."""
GROUP_WEIGHT = 1_000_000
"""Weight of the operations of a row group: 200 MB as Python values."""
OPERATION_WEIGHT = 10
"""Of an operation without records, in records: it takes 2 KB, a record about 150 bytes."""
MOST_HELD = 2 * GROUP_WEIGHT
"""Weight of the operations that wait to be put in order."""


def each_part(path: Path, read: Callable[[int, int], None] = lambda done, parts: None) -> Iterator[Trace]:
    """The parts of a recording.

    Args:
        path: the recording.
        read: called after each part, with the numbers of parts read and of all parts.

    Returns:
        the parts, in order; half a line at the end of the last is left out.

    Raises:
        TraceError: for a part that cannot be read.
    """
    parts = parts_of(path)
    for number, part in enumerate(parts, start=1):
        try:
            yield from read_traces(part)
        except TraceError as error:
            if number < len(parts) or error.expected != CUT_LINE:
                raise
        read(number, len(parts))


@define(eq=False)
class Joined:
    """Operations once each, whichever part they end in."""

    # Without an outcome so far, by op id.
    open: dict[int, Operation] = field(factory=dict)

    def of(self, rows: Iterable[Operation]) -> Iterator[Operation]:
        """Those with a known outcome by now."""
        for row in rows:
            if row.outcome is Outcome.UNKNOWN and row.argument != BEFORE:
                self.open[row.op_id] = row
            else:
                self.open.pop(row.op_id, None)
                yield row

    def rest(self) -> Iterator[Operation]:
        """Those that have not ended."""
        yield from self.open.values()
        self.open.clear()


@define(eq=False)
class Sent:
    """What the first walk finds."""

    header: Trace
    # Value ids of all records that were sent and not refused, ascending.
    values: IntArray
    # Op ids of appends from before the proxy that were sent in the recording after all.
    doubled: frozenset[int]
    unique: bool
    retried: bool


@lru_cache(maxsize=100_000)
def _salt(topic: str, partition: int) -> int:
    return int.from_bytes(blake2b(f"{partition} {topic}".encode(), digest_size=8).digest(), "big")


def _number(place: Place) -> int:
    """A number for a place; that two of 10^8 places have one has a chance of 1 in 3,000."""
    topic, partition, value, offset = place
    mixed = (value ^ _salt(topic, partition)) + (offset + 1) * 0x9E3779B97F4A7C15
    return (mixed & (1 << 64) - 1) - (1 << 63)


def _array(numbers: Iterable[int]) -> IntArray:
    return np.fromiter(numbers, np.int64)


@define(eq=False)
class _Gathering:
    """What the first walk keeps."""

    # Values of the records that were sent, and numbers of their places.
    values: list[IntArray] = field(factory=list)
    places: list[IntArray] = field(factory=list)
    # Of each append from before: its op id, its values, and the numbers of what would show that it was sent.
    before: list[tuple[int, IntArray, IntArray]] = field(factory=list)

    def take(self, rows: Iterable[Operation]) -> None:
        """Operations with their outcome."""
        appends = [row for row in rows if row.function is Function.APPEND]
        sent = [row for row in appends if row.argument != BEFORE and row.outcome is not Outcome.FAIL]
        self.values.append(_array(record.value for row in sent for record in row.records))
        self.places.append(_array(_number(place) for row in sent for place in places_of(row)))
        for row in appends:
            if row.argument == BEFORE:
                wanted = _array(_number(place) for place in places_if_sent(row))
                self.before.append((row.op_id, _array(one.value for one in row.records), wanted))

    def doubled(self) -> frozenset[int]:
        """Op ids of appends from before that were sent here."""
        places = np.sort(np.concatenate(self.places))
        return frozenset(op_id for op_id, _, wanted in self.before if _any_in(places, wanted))


def _any_in(ascending: IntArray, wanted: IntArray) -> bool:
    if not len(ascending):
        return False
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return bool((ascending[at] == wanted).any())


def _sent(path: Path, read: Callable[[int, int], None]) -> Sent:
    header: Trace | None = None
    found, joined, retried = _Gathering(), Joined(), False
    for part in each_part(path, read):
        header = header or part
        found.take(joined.of(part.operations))
        retried = retried or any(each.name is Name.MARK and each.cause == RETRIED for each in part.events)
    found.take(joined.rest())
    if header is None:
        raise TraceError(expected="a part of a recording", seen="none", where=str(path))
    doubled, values = found.doubled(), np.sort(np.concatenate(found.values))
    before = [kept for op_id, kept, _ in found.before if op_id not in doubled]
    every = np.sort(np.concatenate([values, *before]))
    unique = bool((every[1:] != every[:-1]).all())
    return Sent(evolve(header, operations=(), events=(), digest=""), values, doubled, unique, retried)


def _left_out(sent: Sent, row: Operation) -> bool:
    """Refused and sent again in other batches, or sent here and taken for what was there before."""
    if row.function is not Function.APPEND:
        return False
    if row.argument == BEFORE:
        return row.op_id in sent.doubled
    return row.outcome is Outcome.FAIL and _any_in(sent.values, _array(one.value for one in row.records))


def _weight(row: Operation) -> int:
    return OPERATION_WEIGHT + len(row.records)


def _order(row: Operation) -> tuple[int, int]:
    return row.invoke_time, row.op_id


@define
class Ordered:
    """Operations, almost in the order of their invocations, in groups of a bounded weight."""

    held: list[Operation] = field(factory=list)
    weight: int = 0

    def add(self, row: Operation) -> None:
        """Hold one more."""
        self.held.append(row)
        self.weight += _weight(row)

    def groups(self, most: int) -> Iterator[list[Operation]]:
        """The first groups, until no more than this weight is held."""
        if self.weight <= most:
            return
        self.held.sort(key=_order)
        start, gathered = 0, 0
        for place, row in enumerate(self.held):
            gathered += _weight(row)
            if gathered >= GROUP_WEIGHT or place + 1 == len(self.held):
                yield self.held[start : place + 1]
                self.weight -= gathered
                start, gathered = place + 1, 0
                if self.weight <= most:
                    break
        del self.held[:start]


Piece = tuple[list[Operation], list[Event]]
"""A row group of operations, or one of events."""


def _pieces(path: Path, sent: Sent, read: Callable[[int, int], None]) -> Iterator[Piece]:
    """Everything that is written, in row groups."""
    joined, ordered = Joined(), Ordered()
    events: list[Event] = []
    for part in each_part(path, read):
        events += part.events
        for start in range(0, len(events) - GROUP_EVENTS + 1, GROUP_EVENTS):
            yield [], events[start : start + GROUP_EVENTS]
        del events[: len(events) // GROUP_EVENTS * GROUP_EVENTS]
        for row in joined.of(part.operations):
            if not _left_out(sent, row):
                ordered.add(row)
                for group in ordered.groups(MOST_HELD):
                    yield group, []
    for row in joined.rest():
        if not _left_out(sent, row):
            ordered.add(row)
    for group in ordered.groups(0):
        yield group, []
    if events:
        yield [], events


def _schema(table: Table) -> pa.Schema:
    """Not promising a trace whole in a row group."""
    schema = SCHEMAS[table]
    return schema.with_metadata({**schema.metadata, WHOLE_KEY: b"false"})


@define
class Written:
    """How much was written."""

    operations: int = 0
    events: int = 0


def write_long(
    path: Path, out: Path, walked: Callable[[int, int], None] = lambda done, steps: None
) -> Written:
    """Write a recording as a folder of traces with one trace in many row groups.

    Args:
        path: the recording.
        out: the new folder.
        walked: called with the progress in steps, done and all; each part is two steps, one for each walk.

    Returns:
        how much was written.

    Raises:
        TraceError: for input that cannot be read.
    """
    sent = _sent(path, lambda done, parts: walked(done, 2 * parts))
    written = Written()
    claims = sent.header.claims
    if sent.retried:
        reason = "a producer without idempotence tried again after an attempt of unknown fate"
        claims = evolve(claims, duplicates=True, reasons=(*claims.reasons, reason))
    header = trace_row(evolve(sent.header, claims=claims, unique_values=sent.unique))
    TraceStore.create(out)
    part = part_at(out, 0)
    empty = Rows(trace=header, operations=(), events=())
    with ExitStack() as stack:
        traces, operations, events = (
            stack.enter_context(
                FileWriter.open(stack.enter_context(part.of(table).open("wb")), _schema(table))
            )
            for table in TABLES
        )
        traces.write(tables_of([empty]).of("traces").cast(_schema("traces")))
        for rows, happened in _pieces(path, sent, lambda done, parts: walked(parts + done, 2 * parts)):
            if rows:
                made = Rows(trace=header, operations=[operation_row(row) for row in rows], events=())
                operations.write(tables_of([made]).of("operations").cast(_schema("operations")))
                written.operations += len(rows)
            if happened:
                events.write(_event_table(header, happened, written.events))
                written.events += len(happened)
    return written


def _event_table(header: Sequence[Any], happened: list[Event], first: int) -> pa.Table:
    """Rows of events. first: the position of the first one in its trace."""
    made = Rows(trace=header, operations=(), events=[event_row(event) for event in happened])
    table = tables_of([made]).of("events")
    at = table.schema.get_field_index("position")
    places = pa.array(range(first, first + len(happened)), table.schema.field(at).type)
    return table.set_column(at, table.schema.field(at), places).cast(_schema("events"))

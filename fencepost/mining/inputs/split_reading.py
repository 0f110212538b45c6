"""What is read of a split: its tables, only the columns that are asked for, or its traces one by one, without
those that cannot be judged.

Owns which columns are read, which traces are left out, and why: the same ones by `check`, `mine` and `watch`.
Must not know how checks work.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.judges import Check, under_profile
from fencepost.mining.inputs.contradictions import COLUMNS, contradictions, contradictions_of_events
from fencepost.mining.inputs.splits import Split, Unreadable
from fencepost.mining.triage.features import OPERATION_COLUMNS
from fencepost.model.lives import ENDING
from fencepost.traces.canonical_rows import Rows, check_rows, known_events, left_out_in_words, trace_of
from fencepost.traces.digest import check_digest
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Name
from fencepost.traces.journal import frames_one_by_one, read_frames
from fencepost.traces.parquet.row_groups import read_group, read_tables
from fencepost.traces.parquet.soundness import unsound, without
from fencepost.traces.schema import SCHEMAS, STRINGS, Table
from fencepost.traces.tables import Tables, place_of, rows_of_tables, tables_of
from fencepost.traces.trace import Trace

AS_WRITTEN = "as many rows as were written"
_ENDING = pa.array(sorted(ENDING))
FAULT_COLUMNS = ["trace_id", "name", "cause"]
"""Columns of events that identify the kinds of fault in a trace."""


def read_split(
    split: Split, checks: tuple[Check, ...], *, rows: bool = False, triage: bool = False
) -> Tables:
    """The tables of a split, or of them only the columns that are asked for.

    Args:
        split: what to read.
        checks: the checks that will judge it.
        rows: whether to read all columns of operations.
        triage: whether to read what triage needs.

    Returns:
        its tables; strings are dictionaries, as Parquet keeps them, unless they come from a journal.

    Raises:
        TraceError: if it cannot be read, or has other numbers of rows than were written.
    """
    if split.group is None:
        assert split.journal is not None
        return tables_of(read_frames(split.journal, split.frames))
    if split.group.differs:
        raise TraceError(expected=AS_WRITTEN, seen=split.group.differs, where=split.place)
    part, index = split.group.part, split.group.index
    by_column = [check.operation_columns for check in checks if has_columns(check)]
    rows_needed = rows or any(not has_columns(check) for check in checks)
    asked = {*COLUMNS, "function"}.union(*by_column, OPERATION_COLUMNS if triage else ())
    columns = sorted(asked, key=SCHEMAS["operations"].names.index)
    whole = triage or any(check.reads_events for check in checks)

    def of(table: Table, columns: list[str] | None) -> pa.Table:
        return read_group(part.of(table), table, index, columns=columns, dictionary=STRINGS[table])

    events = of("events", None if whole else FAULT_COLUMNS)
    if not whole and pc.any(pc.is_in(events.column("name").cast(pa.string()), value_set=_ENDING)).as_py():
        events = of("events", None)  # operations are cut where a topic was deleted
    return Tables(
        traces=of("traces", None),
        operations=of("operations", None if rows_needed else columns),
        events=events,
    )


def has_columns(check: Check) -> bool:
    """Whether it has a form over all traces of a row group."""
    return check.judge_table is not None or check.judge_events is not None


def sound(tables: Tables, split: Split) -> tuple[Tables, list[Unreadable]]:
    """The tables of a split without the traces that lack rows or values, contradict themselves or were met
    before, and why."""
    wrong = unsound(tables)
    kept = without(tables, wrong.traces) if wrong.traces or wrong.nameless else tables
    contradicting = {
        trace_id: f"the trace contradicts itself: {why}"
        for trace_id, why in {
            **contradictions_of_events(kept.events),
            **contradictions(kept.operations),
        }.items()
    }
    known_before = "its trace id is in an earlier row group too, which is judged"
    reasons = {**contradicting, **wrong.traces, **dict.fromkeys(split.repeated, known_before)}
    answers = [_refused(split, -1, f"{split.place}: {reason}") for reason in wrong.nameless]
    answers += [_refused(split, trace_id, reason) for trace_id, reason in reasons.items()]
    return without(kept, reasons) if reasons else kept, answers


def sound_rows(split: Split) -> Iterator[Rows | Unreadable]:
    """The traces of a split that can be judged, one by one, with all their rows; and why the others cannot.
    The digest of each is compared where it comes from a part. Raises nothing for bad input."""
    if split.group is None:
        yield from _sound_frames(split)
        return
    try:
        tables, strange = sound(read_tables(split.group.part, split.group.index), split)
    except TraceError as error:
        yield unread(split, error)
        return
    yield from strange
    if split.group.differs:
        yield _refused(split, -1, f"{split.place}: expected {AS_WRITTEN}, saw {split.group.differs}")
    yield from by_digest(split, tables)


def by_digest(split: Split, tables: Tables) -> Iterator[Rows | Unreadable]:
    """The traces of sound tables, one by one, and those whose digest does not agree, or that are too large to
    become values. split: a row group, where the tables come from; tables: all columns."""
    assert split.group is not None
    sizes = Counter(sizes_of(tables)) + Counter(sizes_of(tables, "events"))
    large: dict[int, str] = {}
    for trace_id, count in sizes.items():
        try:
            check_rows(count, where=place_of(split.place, trace_id))
        except TraceError as error:
            large[trace_id] = str(error)
            yield _refused(split, trace_id, str(error))
    for rows in rows_of_tables(without(tables, large) if large else tables, where=split.place):
        try:
            _check_stored(split, rows)
        except TraceError as error:
            yield _refused(split, rows.trace_id, str(error))
        else:
            yield rows


def _check_stored(split: Split, rows: Rows) -> None:
    """Refuse a trace that is not as it was stored. Raises TraceError."""
    assert split.group is not None
    where = place_of(split.place, rows.trace_id)
    try:
        check_digest(rows, where=where)
    except TraceError:
        trace_of(known_events(rows)[0], where=where)  # a word that this version does not know says more
        raise
    if split.group.differs and not rows.digest:
        seen = f"{split.group.differs}, and the trace has no digest"
        raise TraceError(expected=AS_WRITTEN, seen=seen, where=where)


def _sound_frames(split: Split) -> Iterator[Rows | Unreadable]:
    """As `sound_rows`, of a journal, in which every frame has a checksum."""
    assert split.journal is not None, f"a split of nothing: {split.place}"
    for frame, rows in zip(split.frames, frames_one_by_one(split.journal, split.frames), strict=True):
        try:
            if isinstance(rows, TraceError):
                raise rows
            strange = sound(tables_of([rows]), split)[1]
        except TraceError as error:
            yield _refused(split, frame.trace_id, str(error))
        else:
            yield strange[0] if strange else rows


def _refused(split: Split, trace_id: int, reason: str) -> Unreadable:
    return Unreadable(source=split.source, place=split.place, reason=reason, trace_id=trace_id)


def unread(split: Split, error: TraceError) -> Unreadable:
    """Why no trace of a split can be read, and how many there are, as far as that can be. error: why."""
    many = len(ids_of(split))
    return _refused(split, -1, f"{error}; none of its {many:,} traces is judged" if many else str(error))


def ids_of(split: Split) -> list[int]:
    """The traces of a split; none where its row group of `traces` cannot be read."""
    if split.group is None:
        return [frame.trace_id for frame in split.frames]
    part, index = split.group.part, split.group.index
    with suppress(TraceError):
        ids: Any = read_group(part.traces, "traces", index, columns=["trace_id"]).column("trace_id")
        return list(ids.drop_null().to_pylist())
    return []


_EVENT_NAMES = pa.array([name.value for name in Name])


def known_event_rows(events: pa.Table, source: str, place: str) -> tuple[pa.Table, list[Unreadable]]:
    """The rows of events without those of names that this version does not know, and the messages about
    these. events: rows of a row group; source, place: of the split."""
    column: Any = events.column("name")
    if pa.types.is_dictionary(column.type):  # few distinct names, many rows
        distinct = {name for chunk in column.chunks for name in chunk.dictionary.to_pylist()}
    else:
        distinct = set(column.unique().to_pylist())
    if distinct <= set(_EVENT_NAMES.to_pylist()):
        return events, []
    known = pc.is_in(column.cast(pa.string()), value_set=_EVENT_NAMES)
    strange: Any = events.filter(pc.invert(known)).select(["trace_id", "name"])
    pairs = zip(*(strange.column(name).to_pylist() for name in ("trace_id", "name")), strict=True)
    answers = [
        Unreadable(
            source=source,
            place=place,
            reason=left_out_in_words(name, count, f"{place}, trace {trace_id}"),
            trace_id=trace_id,
        )
        for (trace_id, name), count in Counter(pairs).items()
    ]
    return events.filter(known), answers


def headers_of(traces: pa.Table, profile: str | None, where: str) -> list[Trace]:
    """The traces without operations and events.

    Args:
        traces: rows of the table `traces`.
        profile: of the log check; None: each trace's own.
        where: names the place in errors.

    Returns:
        the traces, in order.

    Raises:
        TraceError: for a row that makes no trace.
    """
    none = {name: SCHEMAS[name].empty_table() for name in ("operations", "events")}
    bare = Tables(traces=traces, operations=none["operations"], events=none["events"])
    return [under_profile(trace_of(rows, where=where), profile) for rows in rows_of_tables(bare, where=where)]


def sizes_of(tables: Tables, table: Table = "operations") -> dict[int, int]:
    """Rows of a table by trace id."""
    counted: Any = tables.of(table).column("trace_id").value_counts()
    return dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))

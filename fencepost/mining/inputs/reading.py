"""What a task reads of a split: its tables, only the columns that are asked for, without rows that cannot be
judged.

Owns which columns are read, which traces are left out, and why. Must not know how checks work.
"""

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from fencepost.checkers.judges import Check, under_profile
from fencepost.mining.inputs.contradictions import COLUMNS, contradictions
from fencepost.mining.inputs.splits import Split, Unreadable
from fencepost.mining.triage.features import OPERATION_COLUMNS
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Name
from fencepost.traces.journal import read_frames
from fencepost.traces.parquet import read_group
from fencepost.traces.rows import left_out_in_words, trace_of
from fencepost.traces.schema import SCHEMAS, STRINGS, TABLES, Table
from fencepost.traces.tables import Tables, rows_of_tables, tables_of
from fencepost.traces.trace import Trace

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
        TraceError: if it cannot be read.
    """
    if split.group is None:
        assert split.journal is not None
        return tables_of(read_frames(split.journal, split.frames))
    part, index = split.group.part, split.group.index
    by_column = [check.operation_columns for check in checks if has_columns(check)]
    rows_needed = rows or any(not has_columns(check) for check in checks)
    asked = set(COLUMNS).union(*by_column, OPERATION_COLUMNS if triage else ())
    columns = sorted(asked, key=SCHEMAS["operations"].names.index)
    whole = triage or any(check.reads_events for check in checks)

    def of(table: Table, columns: list[str] | None) -> pa.Table:
        return read_group(part.of(table), table, index, columns=columns, dictionary=STRINGS[table])

    return Tables(
        traces=of("traces", None),
        operations=of("operations", None if rows_needed else columns),
        events=of("events", None if whole else FAULT_COLUMNS),
    )


def has_columns(check: Check) -> bool:
    """Whether it has a form over all traces of a row group."""
    return check.judge_table is not None or check.judge_events is not None


def sound(tables: Tables, split: Split) -> tuple[Tables, list[Unreadable]]:
    """The tables of a split without the traces that contradict themselves or were met before, and why."""
    reasons = {
        **{
            found: f"the trace contradicts itself: {why}"
            for found, why in contradictions(tables.operations).items()
        },
        **dict.fromkeys(split.repeated, "its trace id is in an earlier row group too, which is judged"),
    }
    events, answers = known_event_rows(tables.events, split.source, split.place)
    tables = evolve(tables, events=events)
    if not reasons:
        return tables, answers
    strange = pa.array(reasons, pa.int64())
    kept = {
        name: tables.of(name).filter(pc.invert(pc.is_in(tables.of(name).column("trace_id"), strange)))
        for name in TABLES
    }
    answers += [
        Unreadable(source=split.source, place=split.place, reason=reason, trace_id=trace_id)
        for trace_id, reason in reasons.items()
    ]
    return Tables(traces=kept["traces"], operations=kept["operations"], events=kept["events"]), answers


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


def check_whole(tables: Tables, headers: list[Trace], where: str) -> None:
    """Refuse operations of a trace that has no row: their verdict would belong to no trace.

    Args:
        tables: the tables of a split.
        headers: its traces.
        where: names the place in errors.

    Raises:
        TraceError: if there are such operations.
    """
    known = {trace.trace_id for trace in headers}
    found: list[Any] = tables.operations.column("trace_id").unique().to_pylist()
    strange = set(found) - known
    if strange:
        raise TraceError(
            expected="a row in traces for every trace", seen=f"none for {min(strange)}", where=where
        )


def sizes_of(tables: Tables) -> dict[int, int]:
    """Operations by trace id."""
    counted: Any = tables.operations.column("trace_id").value_counts()
    return dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))

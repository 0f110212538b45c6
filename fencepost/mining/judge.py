"""What a Spark task does: read splits with PyArrow, judge every trace in them, write what was found.

Owns: the way from a split to rows of results. Must not know: Spark (a test calls it as a function), how judges work.

A check that has a form over columns judges all traces of a row group at once; the others see one trace at a time, with events but
without operations, because they say that they do not read them. A row group that cannot be judged as a whole is
judged trace by trace, so that one bad trace costs only itself.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

from fencepost.checkers.judges import Check, checks_by_name, guarded, under_profile
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.mining.results import Counts, ResultWriter, Sample, finding_row, quarantine_row, verdict_row
from fencepost.mining.splits import Split, Unreadable
from fencepost.report.explain import explain
from fencepost.traces.errors import TraceError
from fencepost.traces.journal import read_frames
from fencepost.traces.parquet import read_group, read_tables
from fencepost.traces.rows import trace_of
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.tables import Tables, only, rows_of_tables, tables_of, traces_of_tables
from fencepost.traces.trace import Trace

Judged = tuple[Trace, int, tuple[Verdict, ...]]
"""A trace (not all of it was read), how many operations it has, and a verdict per check."""


@frozen(kw_only=True)
class Settings:
    """What every task is told. checks: names; profile: of the log check, None for each trace's own; folder: for results."""

    checks: tuple[str, ...]
    profile: str | None
    folder: Path


@frozen(kw_only=True)
class TaskResult:
    """What a task answers. files: that it wrote, relative to the folder."""

    counts: Counts
    files: tuple[str, ...]


def _read(split: Split, checks: tuple[Check, ...]) -> Tables:
    """The tables of a split: whole, or only the columns that `checks` read. Raises TraceError."""
    if split.group is None:
        assert split.journal is not None
        return tables_of(read_frames(split.journal, split.frames))
    part, index = split.group.part, split.group.index
    by_column = [check.operation_columns for check in checks if check.judge_table is not None]
    rows_needed = any(check.judge_table is None and not check.reads_events for check in checks)
    columns = sorted({"trace_id", "op_id"}.union(*by_column), key=SCHEMAS["operations"].names.index)
    events: pa.Table = SCHEMAS["events"].empty_table()
    if any(check.reads_events for check in checks):
        events = read_group(part.events, "events", index)
    return Tables(
        traces=read_group(part.traces, "traces", index),
        operations=read_group(part.operations, "operations", index, columns=None if rows_needed else columns),
        events=events,
    )


def _headers(tables: Tables, profile: str | None, where: str) -> list[Trace]:
    """The traces without operations and events."""
    none = {name: SCHEMAS[name].empty_table() for name in ("operations", "events")}
    bare = Tables(traces=tables.traces, operations=none["operations"], events=none["events"])
    return [under_profile(trace_of(rows, where=where), profile) for rows in rows_of_tables(bare, where=where)]


def _check_whole(tables: Tables, headers: list[Trace], where: str) -> None:
    """Refuse operations of a trace that has no row: their verdict would be nobody's."""
    known = {trace.trace_id for trace in headers}
    found: list[Any] = tables.operations.column("trace_id").unique().to_pylist()
    strange = set(found) - known
    if strange:
        raise TraceError(
            expected="a row in traces for every trace", seen=f"none for {min(strange)}", where=where
        )


def _sizes(tables: Tables) -> dict[int, int]:
    """Operations by trace id."""
    counted: Any = tables.operations.column("trace_id").value_counts()
    return dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))


def judge_tables(
    tables: Tables, checks: tuple[Check, ...], profile: str | None, *, where: str
) -> list[Judged]:
    """Every trace of the tables with its verdicts, in order. Raises TraceError for rows that make no trace."""
    headers = _headers(tables, profile, where)
    _check_whole(tables, headers, where)
    by_table = {
        check.name: check.judge_table(tables.operations, headers)
        for check in checks
        if check.judge_table is not None
    }
    one_by_one = tuple(check for check in checks if check.judge_table is None)
    whole: dict[int, dict[str, Verdict]] = {}
    if one_by_one:
        keep = any(not check.reads_events for check in one_by_one)
        operations = tables.operations if keep else SCHEMAS["operations"].empty_table()
        needed = Tables(traces=tables.traces, operations=operations, events=tables.events)
        for rows in rows_of_tables(needed, where=where):
            trace = under_profile(trace_of(rows, where=where), profile)
            whole[trace.trace_id] = {check.name: guarded(check, trace) for check in one_by_one}
    sizes = _sizes(tables)

    def verdict(check: Check, trace: Trace) -> Verdict:
        if check.judge_table is None:
            return whole[trace.trace_id][check.name]
        return by_table[check.name].get(trace.trace_id) or Verdict(decision=Decision.OK, check=check.name)

    return [
        (trace, sizes.get(trace.trace_id, 0), tuple(verdict(check, trace) for check in checks))
        for trace in headers
    ]


def _one_by_one(
    split: Split, checks: tuple[Check, ...], profile: str | None
) -> Iterator[Judged | Unreadable]:
    """The traces of a split that could not be judged together, each by itself."""

    def bad(error: TraceError, trace_id: int = -1) -> Unreadable:
        return Unreadable(source=split.source, place=split.place, reason=str(error), trace_id=trace_id)

    try:
        if split.group is None:
            assert split.journal is not None
            many = read_frames(split.journal, split.frames)
        else:
            many = rows_of_tables(read_tables(split.group.part, split.group.index), where=split.place)
        for rows in many:
            try:
                trace = under_profile(trace_of(rows, where=split.place), profile)
            except TraceError as error:
                yield bad(error, rows.trace_id)
                continue
            yield trace, len(trace.operations), tuple(guarded(check, trace) for check in checks)
    except TraceError as error:
        yield bad(error)


def judge_split(split: Split, settings: Settings, writer: ResultWriter, counts: Counts) -> None:
    """Judge every trace of a split; what cannot be read goes to quarantine."""
    checks, before = checks_by_name(settings.checks), dict(counts.samples)
    judged: Iterable[Judged | Unreadable]
    try:
        tables = _read(split, checks)
        judged = judge_tables(tables, checks, settings.profile, where=split.place)
        counts.events += tables.events.num_rows
    except TraceError:
        judged = _one_by_one(split, checks, settings.profile)
    for item in judged:
        if isinstance(item, Unreadable):
            writer.rows["quarantine"].append(quarantine_row(item))
            counts.quarantined.append(item)
            continue
        trace, operations, verdicts = item
        counts.operations += operations
        counts.add_verdicts(split.source, trace, operations, verdicts)
        for verdict in verdicts:
            writer.rows["verdicts"].append(verdict_row(split.source, trace, verdict))
            for finding in verdict.findings:
                writer.rows["findings"].append(finding_row(split.source, trace, finding))
    writer.flush()
    _prove(split, counts, before)


def _prove(split: Split, counts: Counts, before: dict[str, Sample]) -> None:
    """Tell the proof of the samples that this split supplied; only here is the trace at hand."""
    for name, sample in sorted(counts.samples.items()):
        if before.get(name) is not sample:
            trace = _trace(split, sample.trace_id)
            counts.samples[name] = evolve(sample, proof=explain(sample.finding, trace).proof)


def _trace(split: Split, trace_id: int) -> Trace:
    """One whole trace of a split that was read before."""
    if split.group is None:
        assert split.journal is not None
        frames = [frame for frame in split.frames if frame.trace_id == trace_id]
        return trace_of(next(read_frames(split.journal, frames)), where=split.place)
    tables = only(read_tables(split.group.part, split.group.index), trace_id)
    return next(traces_of_tables(tables, where=split.place))


def judge_splits(splits: Iterable[Split], settings: Settings, *, name: str) -> TaskResult:
    """One task: its splits one after another, memory bounded by one. name: of its files, unique to this attempt."""
    counts = Counts()
    with ResultWriter(settings.folder, name) as writer:
        for split in splits:
            judge_split(split, settings, writer, counts)
    return TaskResult(counts=counts, files=tuple(writer.files()))

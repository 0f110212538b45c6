"""What a Spark task does: judge every trace of its splits, write what was found.

Owns: the way from the tables of a split to rows of results. Must not know: Spark (a test calls it as a
function), how judges work.

A check that has a form over columns judges all traces of a row group at once; the others see one trace at a
time. A row group that cannot be judged as a whole is judged trace by trace, so that one bad trace costs only
itself; one that contradicts itself is not judged at all.
"""

import contextlib
import gc
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, evolve, field, frozen

from fencepost.checkers.decoded import tables_with_lives
from fencepost.checkers.judges import (
    LOG,
    Check,
    checks_by_name,
    event_tables,
    guarded,
    named_back,
    under_profile,
)
from fencepost.checkers.log.accounts import LogCounts, counts_of_trace
from fencepost.checkers.unjudged import Data, data_of, data_of_tables, with_lines
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.mining.inputs.contradictions import contradictions
from fencepost.mining.inputs.history_files import HistoryFile
from fencepost.mining.inputs.split_reading import (
    by_digest,
    has_columns,
    headers_of,
    ids_of,
    known_event_rows,
    read_split,
    sizes_of,
    sound,
    sound_rows,
)
from fencepost.mining.inputs.splits import Split, Unreadable
from fencepost.mining.model_check import ModelQuestion
from fencepost.mining.results.checkpoint import TaskResult, keep, key_of
from fencepost.mining.results.result_rows import (
    Counts,
    ResultWriter,
    lost_row,
    quarantine_row,
    replay_command,
)
from fencepost.mining.triage.compared import Compared
from fencepost.mining.triage.triage_rows import TaskTriage, TriagedTrace
from fencepost.model.lives import with_lives
from fencepost.traces.canonical_rows import known_events, left_out_in_words, rows_of, trace_of
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.events import Name
from fencepost.traces.parquet.row_groups import read_tables
from fencepost.traces.parquet.soundness import without
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.tables import Tables, place_of, rows_of_tables, tables_of, these
from fencepost.traces.trace import Trace

ROWS_HELD = 20_000
"""Rows of results that a task holds back, some megabytes: a row group of few rows costs a millisecond."""


@frozen
class Judged:
    """A trace (only partly read), how many operations it has, the kinds of fault in it, a
    verdict per check, the counts of its logs' records (None: not requested, or it contradicts itself)."""

    trace: Trace
    operations: int
    faults: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    records: LogCounts | None = None


@frozen(kw_only=True)
class Settings:
    """The settings of every task."""

    # Names of checks.
    checks: tuple[str, ...]
    # Profile of the log check; None: each trace's own.
    profile: str | None
    # The folder of the work (results/checkpoint.py).
    folder: Path
    # The sequential model for small histories; None: none.
    model: ModelQuestion | None = None
    # Whether to report evidence of bad traces, and count features of healthy ones.
    triage: bool = True
    # Whether to report the features of every trace.
    spectra: bool = False
    # Which healthy traces bad ones are compared with.
    compared: Compared = field(factory=Compared)


def _equal(column: Any, word: str) -> Any:
    """Which rows say `word`; of a dictionary only its codes are compared."""
    if not pa.types.is_dictionary(column.type):
        return pc.equal(column, pa.scalar(word))
    chunks = [
        pc.equal(chunk.indices, pa.scalar(chunk.dictionary.index(word).as_py(), chunk.indices.type))
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, pa.bool_())


def faults_of(events: pa.Table) -> dict[int, tuple[str, ...]]:
    """The kinds of fault that struck, by trace id; nothing for a trace without any."""
    names: Any = events.column("name")
    began: Any = events.filter(_equal(names, Name.FAULT_BEGAN.value))
    pairs: Any = began.select(["trace_id", "cause"]).group_by(["trace_id", "cause"]).aggregate([])
    found: dict[int, tuple[str, ...]] = {}
    for trace_id, kind in sorted(
        zip(*(pairs.column(name).to_pylist() for name in ("trace_id", "cause")), strict=True)
    ):
        found[trace_id] = (*found.get(trace_id, ()), kind)
    return found


def judge_tables(
    tables: Tables,
    checks: tuple[Check, ...],
    profile: str | None,
    *,
    where: str,
    model: ModelQuestion | None = None,
    complete: bool = True,
) -> list[Judged]:
    """Every trace of the tables with its verdicts, in order. complete: whether all rows of the traces are
    there, so that what is not there was not judged. Raises TraceError for rows that make no trace."""
    headers = headers_of(tables.traces, profile, where)
    recorded = event_tables(tables, headers)
    decoded = partial(getattr, recorded, "traces") if any(check.judge_events for check in checks) else None
    operations, cut, lives = tables_with_lives(tables, headers, decoded)
    by_table = {
        check.name: check.judge_table(operations, cut)
        for check in checks
        if check.judge_table is not None and check.name != LOG
    }
    records: dict[int, LogCounts] = {}
    if any(check.name == LOG for check in checks):
        by_table[LOG], records = _log(operations, cut)
    if decoded is not None:
        events = recorded.named(operations, cut, lives)
        by_table |= {
            check.name: check.judge_events(events if check.by_lives else recorded)
            for check in checks
            if check.judge_events
        }
    for found in by_table.values():
        found |= {number: named_back(found[number], one) for number, one in lives.items() if number in found}
    one_by_one = tuple(check for check in checks if not has_columns(check))
    whole: dict[int, dict[str, Verdict]] = {}
    if one_by_one:
        for rows in rows_of_tables(tables, where=where):
            trace = under_profile(trace_of(rows, where=where), profile)
            whole[trace.trace_id] = {check.name: guarded(check, trace) for check in one_by_one}
    sizes, faults = sizes_of(tables), faults_of(tables.events)
    by_model = _by_model(tables, headers, sizes, model, where) if model is not None else {}

    data = data_of_tables(tables.operations, tables.events) if complete else {}
    lacking = Data(0) if complete else ~Data(0)
    quiet = {check.name: Verdict(decision=Decision.OK, check=check.name) for check in checks}
    strange = {trace_id for found in by_table.values() for trace_id in found}
    passed: dict[Data, tuple[Verdict, ...]] = {}

    def verdicts(trace_id: int) -> tuple[Verdict, ...]:
        has = data.get(trace_id, lacking)
        if trace_id not in strange and not whole and not by_model:
            if has not in passed:
                passed[has] = with_lines(quiet.values(), has)
            return passed[has]
        found = whole.get(trace_id, {})
        own = [
            found[name] if name in found else by_table[name].get(trace_id) or quiet[name] for name in quiet
        ]
        return (*with_lines(own, has), *by_model.get(trace_id, ()))

    return [
        Judged(
            trace,
            sizes.get(trace.trace_id, 0),
            faults.get(trace.trace_id, ()),
            verdicts(trace.trace_id),
            records.get(trace.trace_id),
        )
        for trace in headers
    ]


def _log(operations: pa.Table, headers: list[Trace]) -> tuple[dict[int, Verdict], dict[int, LogCounts]]:
    """The verdicts of the log check that are not Ok and the counts of records, by trace id, from the same
    columns."""
    from fencepost.checkers.log import judge_columns, log_columns
    from fencepost.checkers.log.accounts import counts_of
    from fencepost.checkers.operation_columns import columns_of_table

    columns = log_columns(columns_of_table(operations, headers))
    counts = {columns.traces[index].trace_id: one for index, one in counts_of(columns).items()}
    return dict(judge_columns(columns)), counts


def _by_model(
    tables: Tables, headers: list[Trace], sizes: dict[int, int], model: ModelQuestion, where: str
) -> dict[int, tuple[Verdict]]:
    """The verdict of general linearizability, by trace id; only small histories become objects."""
    large = {trace.trace_id for trace in headers if sizes.get(trace.trace_id, 0) > model.operations}
    small = {
        table: tables.of(table).filter(
            pc.invert(pc.is_in(tables.of(table).column("trace_id"), pa.array(sorted(large), pa.int64())))
        )
        for table in ("traces", "operations")
    }
    rows = rows_of_tables(Tables(**small, events=SCHEMAS["events"].empty_table()), where=where)
    found = {one.trace_id: (model.judge(trace_of(one, where=where)),) for one in rows}
    return found | {trace_id: (model.too_large(sizes[trace_id]),) for trace_id in large}


def _one_by_one(
    split: Split, checks: tuple[Check, ...], settings: Settings, task: "_Task"
) -> Iterator[Judged | Unreadable]:
    """The traces of a split that could not be judged together, one by one."""
    for found in sound_rows(split):
        if isinstance(found, Unreadable):
            yield found
            continue
        rows, unknown = known_events(found)
        where = place_of(split.place, rows.trace_id)
        reasons = [left_out_in_words(name, count, where) for name, count in unknown.items()]
        judged = []
        try:
            judged.append(
                _alone(under_profile(trace_of(rows, where=where), settings.profile), checks, settings)
            )
        except TraceError as error:
            reasons.append(str(error))
        for reason in reasons:
            yield Unreadable(source=split.source, place=split.place, reason=reason, trace_id=rows.trace_id)
        if judged:
            task.tell(split.source, tables_of([rows]), judged)
            yield from judged


def _alone(trace: Trace, checks: tuple[Check, ...], settings: Settings) -> Judged:
    """Judge one whole trace."""
    struck = {event.cause for event in trace.events if event.name is Name.FAULT_BEGAN}
    kinds = tuple(sorted(str(kind) for kind in struck))
    verdicts = list(with_lines((guarded(check, trace) for check in checks), data_of(trace)))
    if settings.model is not None:
        verdicts.append(settings.model.judge(trace))
    records = None
    if any(check.name == LOG for check in checks):
        with contextlib.suppress(FencepostError):  # its verdict says why
            records = counts_of_trace(with_lives(trace).trace)
    return Judged(trace, len(trace.operations), kinds, tuple(verdicts), records)


@define
class _Task:
    """What a task gathers in addition to verdicts."""

    writer: ResultWriter
    counts: Counts
    # None if it is not wanted.
    triage: TaskTriage | None

    def tell(self, source: str, tables: Tables, judged: Sequence[Judged]) -> None:
        """The evidence of traces, in the order of the tables."""
        if self.triage is None or not judged:
            return
        answers = [
            TriagedTrace(
                trace=one.trace,
                operations=one.operations,
                verdicts=one.verdicts,
                replay=replay_command(source, one.trace)
                if any(verdict.findings for verdict in one.verdicts)
                else "",
            )
            for one in judged
        ]
        self.triage.add(source, tables, answers, self.writer.rows)


def _of_file(
    file: HistoryFile, checks: tuple[Check, ...], settings: Settings, task: _Task
) -> Iterator[Judged | Unreadable]:
    """The histories of a file."""
    for many in file.read():
        if isinstance(many, Unreadable):
            yield many
            continue
        tables = tables_of(rows_of(trace) for trace in many)
        strange = contradictions(tables.operations)
        alone = []
        for trace in many:
            if trace.trace_id in strange:
                reason = f"the trace contradicts itself: {strange[trace.trace_id]}"
                yield Unreadable(source=file.source, place=file.place, reason=reason, trace_id=trace.trace_id)
            else:
                task.counts.events += len(trace.events)
                alone.append(_alone(under_profile(trace, settings.profile), checks, settings))
                yield alone[-1]
        if strange:
            tables = tables_of(rows_of(trace) for trace in many if trace.trace_id not in strange)
        task.tell(file.source, tables, alone)


def _of_split(
    split: Split, checks: tuple[Check, ...], settings: Settings, task: _Task
) -> Iterable[Judged | Unreadable]:
    """The traces of a split, judged together, or where that cannot be, one by one."""
    try:
        read = read_split(split, checks, rows=settings.model is not None, triage=settings.triage)
        tables, strange = sound(read, split)
        events, left_out = known_event_rows(tables.events, split.source, split.place)
        tables = evolve(tables, events=events)
        judged = judge_tables(tables, checks, settings.profile, where=split.place, model=settings.model)
        damaged = _damaged(split, judged)
    except TraceError:
        return _one_by_one(split, checks, settings, task)
    if damaged:
        judged = [one for one in judged if one.trace.trace_id not in damaged]
        tables = without(tables, {trace_id: one.reason for trace_id, one in damaged.items()})
    task.counts.events += tables.events.num_rows
    task.tell(split.source, tables, judged)
    return [*strange, *left_out, *damaged.values(), *judged]


def _damaged(split: Split, judged: list[Judged]) -> dict[int, Unreadable]:
    """The traces with a verdict other than Ok whose digest does not agree, by id: no damaged row convicts.
    The digest takes all rows as values, several times what judging columns costs, so that the others rely on
    the checksums of the pages that were read; a part of before has none, and there all are compared. Raises
    TraceError if such a part cannot be read."""
    if split.group is None:
        return {}
    every = not split.group.sealed_with_checksums
    strange = [
        one.trace.trace_id
        for one in judged
        if one.trace.digest
        and (every or any(verdict.decision is not Decision.OK for verdict in one.verdicts))
    ]
    if not strange:
        return {}
    try:
        tables = these(read_tables(split.group.part, split.group.index), strange)
    except TraceError:
        if every:
            raise
        return {}  # a column that no verdict needs is damaged, or all of them together are too large
    return {
        found.trace_id: found
        for found in by_digest(split, tables)
        if isinstance(found, Unreadable) and found.trace_id in strange
    }


def all_accounted(split: Split, judged: Iterable[Judged | Unreadable]) -> Iterator[Judged | Unreadable]:
    """The answers themselves, and one more for each trace of the split that has none of them.

    Args:
        split: what was judged.
        judged: its traces with their verdicts, and why others have none.

    Yields:
        at least one answer for every trace: traces in are verdicts and quarantined ones. One answer without a
        trace id is for all of a split that could not be read.
    """
    answered: set[int] = set()
    for one in judged:
        answered.add(one.trace_id if isinstance(one, Unreadable) else one.trace.trace_id)
        yield one
    for trace_id in ids_of(split) if answered != {-1} else ():
        if trace_id not in answered:
            reason = (
                f"{place_of(split.place, trace_id)}: expected a verdict or a reason, saw neither; report it"
            )
            yield Unreadable(source=split.source, place=split.place, reason=reason, trace_id=trace_id)


def judge_split(
    split: Split | HistoryFile,
    settings: Settings,
    writer: ResultWriter,
    counts: Counts,
    triage: TaskTriage | None = None,
) -> None:
    """Judge every trace of a split; what cannot be read goes to quarantine. triage: gathers evidence, None
    for none."""
    with without_collector():
        _judge_split(split, settings, writer, counts, triage)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Python's collector of cycles does not run meanwhile. A split becomes a hundred thousand values that are
    in no cycle. The collector would walk over all of them again and again: a seventh of a task's time."""
    ran = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ran:
            gc.enable()


def _judge_split(
    split: Split | HistoryFile,
    settings: Settings,
    writer: ResultWriter,
    counts: Counts,
    triage: TaskTriage | None,
) -> None:
    task = _Task(writer, counts, triage)
    checks = checks_by_name(settings.checks)
    judged: Iterable[Judged | Unreadable]
    if isinstance(split, HistoryFile):
        judged = _of_file(split, checks, settings, task)
    else:
        judged = _of_split(split, checks, settings, task)
    for item in all_accounted(split, judged) if isinstance(split, Split) else judged:
        if isinstance(item, Unreadable):
            writer.rows["quarantine"].append(quarantine_row(item))
            counts.quarantined.append(item)
            continue
        counts.operations += item.operations
        counts.add_verdicts(split.source, item.trace, item.operations, item.verdicts, item.faults)
        writer.add(split.source, item.trace, item.verdicts)
        if item.records is not None:
            counts.add_records(split.source, item.trace.trace_id, item.records)
            writer.rows["lost"].extend(
                lost_row(split.source, item.trace.trace_id, lost) for lost in item.records.lost_values
            )


def judge_splits(splits: Iterable[Split | HistoryFile], settings: Settings, *, attempt: str) -> TaskResult:
    """One task: its splits one after another, memory bounded by one; what came of it is kept. attempt: unique
    among the attempts of this task."""
    mine, counts = tuple(splits), Counts()
    key = key_of(mine)
    triage = TaskTriage(spectra=settings.spectra, compared=settings.compared) if settings.triage else None
    with ResultWriter(settings.folder / "files", f"part-{key}-{attempt}") as writer:
        for split in mine:
            judge_split(split, settings, writer, counts, triage)
            writer.flush(unless_below=ROWS_HELD)
        if triage is not None:
            writer.rows["contrast"].extend(triage.contrast())
    result = TaskResult(counts=counts, files=tuple(writer.files()))
    keep(settings.folder, key, result, attempt=attempt)
    return result

"""`mine`: the traces of whole campaigns judged on Spark, findings and verdicts written whole or not at all.

Owns the driver's side: splits to tasks without a shuffle, progress, interruption, the commit. Must not know
how a trace is read or judged (spark_judge.py).

Why not a DataFrame: passing rows from the JVM to Python one by one is ten times slower than letting the task
read columns itself (docs/explanation/mining.md). Each task attempt writes files under a name that contains
the attempt, and returns that name. Only files named by the attempts that Spark accepted are kept, so a
retried or a speculative task doubles nothing. The results of ended tasks are kept (results/checkpoint.py), so
an interrupted mining can continue.
"""

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from attrs import define, evolve, frozen

from fencepost.checkers.judges import DEFAULT_CHECKS, checks_by_name
from fencepost.mining.giant.checks import WHOLE_OPERATIONS
from fencepost.mining.giant.verdict import Judging, task_result
from fencepost.mining.inputs.history_files import HistoryFile, told_apart
from fencepost.mining.inputs.regroup import regroup
from fencepost.mining.inputs.splits import Split, Unreadable, profiles_of, work_of
from fencepost.mining.inputs.splits import Work as Found
from fencepost.mining.inputs.ungrouped_parts import GIANT_OPERATIONS, Giant, Prepared, prepare
from fencepost.mining.model_check import MODEL_CHECK, ModelQuestion
from fencepost.mining.results.checkpoint import TaskResult, Work, key_of
from fencepost.mining.results.mining_page import page_of
from fencepost.mining.results.proofs import proven
from fencepost.mining.results.result_rows import (
    RESULTS,
    SCHEMAS,
    Counts,
    ResultWriter,
    quarantine_row,
    statistics_rows,
)
from fencepost.mining.results.summary import Summary, summary_of
from fencepost.mining.spark.session import check_spark
from fencepost.mining.spark.spark_engine import MOST_TASKS, Engine, TaskProgress
from fencepost.mining.spark_judge import Settings, judge_splits
from fencepost.mining.triage.bugs import Bugs, read_bugs
from fencepost.mining.triage.compared import MOST_COMPARED, Compared, compared_of
from fencepost.mining.triage.since import since as compared_with
from fencepost.mining.triage.triage import triage as triage_of
from fencepost.record.claimed.profiles import check_profile
from fencepost.traces.whole_file import write_whole

TASK_BYTES = 32 * 1024 * 1024
"""Compressed bytes of one task, some seconds of work: Spark takes ten milliseconds to begin one."""
FEW_TASKS = 16
"""Up to so many tasks are one row group each, so that a small input spreads too. With 64, 20,000 traces took
two fifths more processor time: each task writes files, counts features and compresses rows of its own
(docs/decisions/log-check.md)."""


@frozen(kw_only=True)
class _Task:
    """The function that Spark calls with the splits of one task."""

    settings: Settings

    def __call__(self, lists: Iterable[tuple[Split | HistoryFile, ...]]) -> Iterator[TaskResult]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        # a worker may outlive its driver
        attempt = f"{context.stageId()}-{context.taskAttemptId()}-{secrets.token_hex(4)}"
        yield judge_splits((split for splits in lists for split in splits), self.settings, attempt=attempt)


def _tasks(splits: tuple[Split | HistoryFile, ...]) -> list[tuple[Split | HistoryFile, ...]]:
    """The splits of each task, the largest first, so that no large one begins last.

    The tasks depend only on the input, so that a mining that continues, on any machine, finds the
    same tasks again.
    """
    ordered = sorted(splits, key=lambda split: (-split.size_bytes, split.place))
    by_size = -(-sum(split.size_bytes for split in ordered) // TASK_BYTES)
    count = min(len(ordered), max(by_size, FEW_TASKS), MOST_TASKS)
    return [tuple(ordered[index::count]) for index in range(count)]


def _commit(work: Work, results: list[TaskResult], unreadable: tuple[Unreadable, ...]) -> None:
    """Move to the results what accepted attempts wrote, and nothing else; every result has at least an empty
    file. May be repeated when more tasks have ended."""
    counts = _sum(results, unreadable)
    with ResultWriter(work.folder / "files", "part-driver") as writer:
        writer.rows["statistics"].extend(statistics_rows(counts))
        writer.rows["quarantine"].extend(quarantine_row(found) for found in unreadable)
    kept = {name for result in results for name in result.files}.union(writer.files())
    for result in RESULTS:
        folder = work.out / result
        folder.mkdir(exist_ok=True)
        own = {name for name in kept if name.startswith(f"{result}/")}
        for name in sorted(own):
            fresh = work.folder / "files" / name
            if fresh.exists():
                fresh.replace(work.out / name)
        for path in sorted(folder.iterdir()):
            if f"{result}/{path.name}" not in own:
                path.unlink()
        if not own:
            pq.write_table(SCHEMAS[result].empty_table(), folder / "part-empty.parquet")


def _sum(results: list[TaskResult], unreadable: tuple[Unreadable, ...]) -> Counts:
    """The counts of all tasks, and what the driver itself could not read."""
    counts = Counts(quarantined=list(unreadable))
    for result in results:
        counts.merge(result.counts)
    return counts


def _found(stores: list[Path], files: list[HistoryFile]) -> Found:
    """What the folders hold; where there are only files, nothing."""
    return work_of(stores) if stores or not files else Found(splits=(), unreadable=())


def _compared(found: Found) -> Compared:
    """The healthy traces that triage compares bad ones with. Profiles are read only if there are many
    traces."""
    known = [
        len(split.frames) if split.group is None else split.group.traces if split.group.traces >= 0 else None
        for split in found.splits
    ]
    if None not in known and sum(count or 0 for count in known) <= MOST_COMPARED:
        return Compared()
    return compared_of(*profiles_of(found.splits))


def key_of_giant(giant: Giant) -> str:
    """Names the task that a giant is."""
    place = f"{giant.place} of {giant.operations} operations"
    return key_of((Split(source=giant.source, place=place, size_bytes=giant.trace_id),))


@define
class _Mining:
    """One mining in progress."""

    # Its work, in which `judge` regroups cut traces.
    prepared: Prepared
    # Further input.
    files: tuple[HistoryFile, ...]
    work: Work
    settings: Settings

    def _tasks(self) -> dict[str, tuple[Split | HistoryFile, ...]]:
        return {key_of(splits): splits for splits in _tasks((*self.prepared.found.splits, *self.files))}

    def _giants(self) -> dict[str, Giant]:
        return {key_of_giant(one): one for one in self.prepared.giants}

    def keys(self) -> list[str]:
        """Keys of all tasks."""
        return [*self._tasks(), *self._giants()]

    def judge(self, engine: Engine, progress: TaskProgress | None) -> list[TaskResult]:
        """Regroup what must be, then judge what is not judged yet: row groups and files, then giants."""
        self.prepared = regroup(self.prepared, self.work.folder, engine.spread)
        done = self.work.done(self.keys())
        results = list(done.values())
        left = [splits for key, splits in self._tasks().items() if key not in done]
        giants = [(key, one) for key, one in self._giants().items() if key not in done]
        total = len(left) + len(giants)

        def on_task(ended: int, _: int) -> None:
            if progress is not None:
                progress(ended, total)

        if left:
            results += engine.run(left, _Task(settings=self.settings), on_task if progress else None)
        judging = Judging(settings=self.settings, spread=engine.spread)
        for number, (key, one) in enumerate(giants, 1):
            results.append(task_result(one, judging(one), self.settings, key))
            on_task(len(left) + number, total)
        return results

    def tell(self, results: list[TaskResult], *, page: bool) -> Summary:
        """Write tables, summary and page of the tasks that have ended. page: whether to write the page
        too."""
        found, work, settings = self.prepared.found, self.work, self.settings
        _commit(work, results, found.unreadable)
        counts = _sum(results, found.unreadable)
        counts.samples = proven(counts.samples, (*found.splits, *self.files))
        summary = evolve(
            summary_of(
                counts,
                out=work.out,
                checks=settings.checks if settings.model is None else (*settings.checks, MODEL_CHECK),
                splits=len(found.splits),
                unfinished=len(self.keys()) - len(results),
            ),
            giants=len(self.prepared.giants),
            uncounted=tuple(
                f"{one.source} trace {one.trace_id}"
                for one in self.prepared.giants
                if one.weight > WHOLE_OPERATIONS
            ),
            regrouped=self.prepared.regrouped,
        )
        self._write(summary, page=page)
        return summary

    def triage(self, summary: Summary, earlier: tuple[Path, Bugs] | None) -> Summary:
        """Group the bad traces by bug, report the groups, and compare them with those of an
        earlier mining."""
        judged = sum(summary.traces.values())
        bugs = triage_of(self.work.out, tables=self.settings.spectra, judged=judged)
        compared = compared_with(bugs, earlier[1], str(earlier[0])) if earlier is not None else None
        summary = evolve(summary, bugs=bugs, since=compared)
        self._write(summary, page=True)
        return summary

    def _write(self, summary: Summary, *, page: bool) -> None:
        """summary.json, and the page if it will not be written again soon."""
        out = self.work.out
        write_whole(out / "summary.json", summary.to_json() + "\n")
        if page:
            write_whole(out / "index.html", page_of(summary, out / "index.html"))


def mine(
    inputs: list[Path],
    out: Path,
    *,
    master: str | None = None,
    checks: tuple[str, ...] = DEFAULT_CHECKS,
    profile: str | None = None,
    giant: int = GIANT_OPERATIONS,
    format: str = "auto",
    model: ModelQuestion | None = None,
    resume: bool = False,
    triage: bool = True,
    tables: bool = False,
    since: Path | None = None,
    progress: TaskProgress | None = None,
    spark: Any = None,
) -> Summary:
    """Judge every trace of the inputs (folders of traces, files of histories) with every check and write the
    results to `out` (docs/how-to/mining.md).

    out: new or empty. master: where Spark runs (spark/session.py). checks: names; None for the default.
    profile: of the log check, instead of each trace's own. giant: a history with more operations is judged by
    slot ranges. format: of files, as for `fencepost check`. model: a sequential model for small histories, as
    a further check. resume: continue a mining that did not end there. triage: group bad traces by bug
    (docs/how-to/triage.md). tables: keep the features of every trace too. since: the folder of an earlier
    mining, to compare its bugs with these. spark: a session to use instead of a new one on `master`.
    Unreadable pieces of the input go to quarantine. Interrupted by KeyboardInterrupt, it leaves valid results
    of the tasks that had ended; killed, or ended by an error, it leaves work that can be continued, if
    anything was judged. Raises FencepostError for invalid inputs, and for missing software.
    """
    checks_by_name(checks)
    check_profile(profile)
    earlier = (since, read_bugs(since)) if since is not None else None
    if spark is None:
        check_spark()
    if model is not None:
        model.model()  # an unknown name is reported before any input is read
    stores, files = told_apart(inputs, format)
    prepared = prepare(stores, _found(stores, files), giant=giant)
    work = Work(out=out)
    asked = {
        "inputs": [str(path) for path in inputs],
        "checks": list(checks),
        "profile": profile,
        "giant": giant,
        "format": format,
        "model": model,
        "triage": triage,
        "tables": tables,
    }
    work.begin(asked, resume=resume)
    settings = Settings(
        checks=checks,
        profile=profile,
        folder=work.folder,
        model=model,
        triage=triage,
        spectra=tables,
        compared=_compared(prepared.found) if triage and not tables else Compared(),
    )
    mining = _Mining(prepared=prepared, files=tuple(files), work=work, settings=settings)
    with Engine(master, spark, name=f"fencepost mine {work.folder}") as engine:
        try:
            results = mining.judge(engine, progress)
            summary = mining.tell(results, page=not triage)
            if triage:
                summary = mining.triage(summary, earlier)
        except BaseException as error:
            kept = list(work.done(mining.keys()).values())
            if kept:
                engine.goes_on = f"{out} holds what was judged, --resume continues"
            else:
                work.discard()
            if kept and isinstance(error, KeyboardInterrupt):
                mining.tell(kept, page=True)
            raise
    work.end()
    return summary

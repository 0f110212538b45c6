"""`mine`: the traces of whole campaigns judged on Spark, findings and verdicts written whole or not at all.

Owns: the driver's side: splits to tasks without a shuffle, progress, interruption, the commit. Must not know: how a
trace is read or judged (judge.py).

Why not a DataFrame: handing rows from the JVM to Python one by one is ten times slower than letting the task read columns itself
(DESIGN.md, Mining). Each task writes its own files under a name that carries its attempt, and answers with that name; only files named by the
attempts that Spark accepted are kept, so a retried or a speculative task doubles nothing. The folder appears under its final name when everything
is in it.
"""

import contextlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pyarrow.parquet as pq
from attrs import frozen

from fencepost.checkers.judges import DEFAULT_CHECKS, check_profile, checks_by_name
from fencepost.mining.judge import Settings, TaskResult, judge_splits
from fencepost.mining.results import RESULTS, SCHEMAS, Counts, ResultWriter, quarantine_row
from fencepost.mining.session import session
from fencepost.mining.splits import Split, Unreadable, work_of
from fencepost.mining.summary import Summary, summary_of
from fencepost.traces.errors import EnvironmentError_, FencepostError

MOST_TASKS = 10_000
"""More tasks than these only keep the scheduler busy; a task then takes several splits."""
POLL_S = 0.2
"""How often the driver looks how far the tasks are."""

Progress = Callable[[int, int], None]
"""progress(tasks finished, tasks in all), from the driver."""


@frozen(kw_only=True)
class _Task:
    """The function that Spark calls with the splits of one task."""

    settings: Settings

    def __call__(self, lists: Iterable[tuple[Split, ...]]) -> Iterator[TaskResult]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        name = f"{context.partitionId():05}-{context.taskAttemptId()}"
        yield judge_splits((split for splits in lists for split in splits), self.settings, name=name)


def _tasks(splits: tuple[Split, ...]) -> list[tuple[Split, ...]]:
    """The splits of each task, the largest first, so that no large one begins last."""
    ordered = sorted(splits, key=lambda split: (-split.size_bytes, split.place))
    count = min(len(ordered), MOST_TASKS)
    return [tuple(ordered[index::count]) for index in range(count)]


def _completed(context: Any, group: str) -> int:
    """Tasks of the job group that have ended."""
    tracker = context.statusTracker()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    stages = (tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds)
    return sum(stage.numCompletedTasks for stage in stages if stage)


def _run(
    spark: Any, tasks: list[tuple[Split, ...]], task: _Task, progress: Progress | None
) -> list[TaskResult]:
    """Run the tasks; an interruption, or whatever `progress` raises, cancels them."""
    from pyspark import InheritableThread

    context, group, ended = spark.sparkContext, f"fencepost mine {task.settings.folder}", Flag()
    results: list[TaskResult] = []
    failures: list[Exception] = []

    def collect() -> None:
        try:
            context.setJobGroup(group, "judging traces", interruptOnCancel=True)
            results.extend(context.parallelize(tasks, len(tasks)).mapPartitions(task).collect())
        except Exception as error:
            failures.append(error)
        finally:
            ended.set()

    thread = InheritableThread(target=collect, daemon=True)
    thread.start()
    try:
        while not ended.wait(POLL_S):
            if progress is not None:
                progress(_completed(context, group), len(tasks))
    except BaseException:
        context.cancelJobGroup(group)
        thread.join()
        raise
    thread.join()
    if failures:
        raise EnvironmentError_(
            expected="every task to end", seen=_cause(failures[0]), where="judging on Spark"
        ) from failures[0]
    if progress is not None:
        progress(len(tasks), len(tasks))
    return results


def _cause(error: Exception) -> str:
    """The last line of the Python traceback inside Spark's message, which says what went wrong."""
    lines = [line.strip() for line in str(error).splitlines()]
    named = [
        line
        for line in lines
        if re.match(r"[\w.]*(Error|Exception)\b", line) and "SparkException" not in line
    ]
    return named[0] if named else next((line for line in lines if line), type(error).__name__)


def _commit(folder: Path, results: list[TaskResult], unreadable: tuple[Unreadable, ...]) -> None:
    """Keep the files that accepted attempts named, under their final names; every result has at least an empty file."""
    with ResultWriter(folder, "driver") as writer:
        writer.rows["quarantine"].extend(quarantine_row(found) for found in unreadable)
    kept = sorted(name for result in results for name in result.files) + writer.files()
    for result in RESULTS:
        (folder / result).mkdir(exist_ok=True)
        own = [name for name in kept if name.startswith(f"{result}/")]
        for number, name in enumerate(own):
            (folder / name).rename(folder / result / f"part-{number:05}.parquet")
        for path in sorted((folder / result).iterdir()):
            if not path.name.startswith("part-"):
                path.unlink()
        if not own:
            pq.write_table(SCHEMAS[result].empty_table(), folder / result / "part-00000.parquet")


def _sum(results: list[TaskResult], unreadable: tuple[Unreadable, ...]) -> Counts:
    """The counts of all tasks, and what the driver itself could not read."""
    counts = Counts(quarantined=list(unreadable))
    for result in results:
        counts.merge(result.counts)
    return counts


def _prepared(out: Path) -> Path:
    """An empty folder beside `out` to write into. Raises FencepostError if `out` holds something."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FencepostError(
            expected="a new or an empty folder for the results", seen="that it is in use", where=str(out)
        )
    folder = out.absolute().with_name(f".{out.name}.partial")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def mine(
    inputs: list[Path],
    out: Path,
    *,
    master: str = "local[*]",
    checks: tuple[str, ...] = DEFAULT_CHECKS,
    profile: str | None = None,
    progress: Progress | None = None,
    spark: Any = None,
) -> Summary:
    """Judge every trace of the input folders with every check and write the results to `out` (docs/mining.md).

    out: new or empty; it holds everything or nothing. profile: of the log check, instead of each trace's own. spark: a session to use
    instead of a new one on `master`. Unreadable pieces of the input go to quarantine. Raises FencepostError for inputs that are no
    folders of traces, and for what the machine lacks.
    """
    checks_by_name(checks)
    check_profile(profile)
    work = work_of(inputs)
    folder = _prepared(out)
    settings = Settings(checks=checks, profile=profile, folder=folder)
    try:
        results: list[TaskResult] = []
        if work.splits:
            with session(master) if spark is None else contextlib.nullcontext(spark) as running:
                results = _run(running, _tasks(work.splits), _Task(settings=settings), progress)
        _commit(folder, results, work.unreadable)
        counts = _sum(results, work.unreadable)
        summary = summary_of(counts, out=out, checks=checks, splits=len(work.splits))
        (folder / "summary.json").write_text(summary.to_json() + "\n")
        folder.rename(out)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return summary

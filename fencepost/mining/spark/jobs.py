"""One Spark job whose tasks are counted while it runs, and which ends when its driver is interrupted.

Owns the thread that waits for Spark, cancelling, and the message for an error inside a task. Must not know
what a task does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Event as Flag
from typing import Any

from fencepost.traces.errors import EnvironmentError_

POLL_S = 0.2
"""How often the driver looks how far the tasks are."""


def run_tasks(
    spark: Any,
    tasks: Sequence[Any],
    function: Callable[[Iterable[Any]], Iterator[Any]],
    *,
    name: str,
    where: str,
    on_poll: Callable[[int], None] | None,
) -> list[Any]:
    """The results of `function` for each task, one Spark task each. name: of the job group, unique among
    those that run; where: for a person.

    on_poll: called with the number of ended tasks, from this thread; its exceptions cancel the job, as
    an interruption does. None: Spark is not asked how far they are. Raises EnvironmentError_ if a task fails
    as often as Spark tries it.
    """
    from pyspark import InheritableThread

    context, ended = spark.sparkContext, Flag()
    results: list[Any] = []
    failures: list[Exception] = []

    def collect() -> None:
        try:
            context.setJobGroup(name, where, interruptOnCancel=True)
            results.extend(context.parallelize(tasks, len(tasks)).mapPartitions(function).collect())
        except Exception as error:
            failures.append(error)
        finally:
            ended.set()

    thread = InheritableThread(target=collect, daemon=True)
    thread.start()
    try:
        while not ended.wait(POLL_S):
            if on_poll is not None:
                on_poll(_completed(context, name))
    except BaseException:
        context.cancelJobGroup(name)
        thread.join()
        raise
    thread.join()
    if failures:
        raise EnvironmentError_(
            expected="every task to end", seen=_cause(failures[0]), where=where
        ) from failures[0]
    if on_poll is not None:
        on_poll(len(tasks))
    return results


def _completed(context: Any, group: str) -> int:
    """Tasks of the job group that have ended."""
    tracker = context.statusTracker()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    stages = (tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds)
    return sum(stage.numCompletedTasks for stage in stages if stage)


def _cause(error: Exception) -> str:
    """The last line of the Python traceback inside Spark's message, which says what went wrong."""
    lines = [line.strip() for line in str(error).splitlines()]
    named = [
        line
        for line in lines
        if re.match(r"[\w.]*(Error|Exception)\b", line) and "SparkException" not in line
    ]
    return named[0] if named else next((line for line in lines if line), type(error).__name__)

"""Work spread over Spark: the tasks of one job, their progress, and interruption.

Owns the session, which begins on first use, and how items become tasks. Must not know what the
work is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

from attrs import define, field, frozen

from fencepost.mining.spark.jobs import run_tasks
from fencepost.mining.spark.session import java_options, session
from fencepost.traces.errors import TraceError

MOST_TASKS = 10_000
"""More tasks than these only keep the scheduler busy; a task then takes several items."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1"
"""The JVM only distributes tasks and reads nothing itself, so its second compiler costs more than it saves
(docs/explanation/mining.md). The caller's `spark.driver.extraJavaOptions` come after it."""

TaskProgress = Callable[[int, int], None]
"""progress(tasks finished, tasks in all), from the driver."""


@frozen
class _Each:
    """Calls a function with each item. A TraceError is an answer, so that Spark does not try again what stays
    wrong."""

    function: Callable[[Any], Any]

    def __call__(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            try:
                yield self.function(item), None
            except TraceError as error:
                yield None, (error.expected, error.seen, error.where)


@frozen
class _Task:
    """A task of several items."""

    function: Callable[[Iterable[Any]], Iterator[Any]]

    def __call__(self, lists: Iterable[Sequence[Any]]) -> Iterator[Any]:
        yield from self.function(item for items in lists for item in items)


def _report(progress: TaskProgress, total: int, completed: int) -> None:
    progress(completed, total)


@define
class Engine:
    """A Spark session on first use."""

    master: str | None
    # One that the caller has; otherwise one on `master`, stopped at the end.
    spark: Any = None
    name: str = "fencepost mine"
    # How the work is continued if Spark's JVM dies, for the sentence about it.
    goes_on: str = ""
    # Begun so far.
    jobs: int = 0
    stack: ExitStack = field(factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stack.__exit__(kind, error, trace)

    def session(self) -> Any:
        """The session, begun on first use. Raises EnvironmentError_."""
        if self.spark is None:
            self.spark = self.stack.enter_context(
                session(
                    self.master,
                    settings={"spark.driver.defaultJavaOptions": f"{QUICK_JAVA} {java_options()}"},
                    source=False,
                    goes_on=lambda: self.goes_on,
                )
            )
        return self.spark

    def run(
        self,
        items: Sequence[Any],
        task: Callable[[Iterable[Any]], Iterator[Any]],
        progress: TaskProgress | None,
    ) -> list[Any]:
        """The results of the tasks, in order. An interruption, or an exception of `progress`, cancels them.
        Raises EnvironmentError_."""
        spark = self.session()
        self.jobs += 1
        size = -(-len(items) // MOST_TASKS)
        tasks = [items[start : start + size] for start in range(0, len(items), size)]

        on_poll = None if progress is None else partial(_report, progress, len(tasks))
        name = f"{self.name} {self.jobs}"
        return run_tasks(spark, tasks, _Task(task), name=name, where="judging on Spark", on_poll=on_poll)

    def spread(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """function(item) of each item, in order. Raises TraceError for what an item raised,
        EnvironmentError_."""
        if not len(items):
            return []
        answers = self.run(items, _Each(function), None)
        for _, error in answers:
            if error is not None:
                raise TraceError(expected=error[0], seen=error[1], where=error[2])
        return [answer for answer, _ in answers]

"""Breadth-first exploration by several processes. Each owns the states with a content that hashes to it.

Owns the schedule of the work, and that no process is left running. Must not know any system.

    round   1. each worker expands some of its states of this level, and hands over the successors that others
               own
            2. each takes in its own, from all workers in their order, and checks the new ones
    level   rounds until every worker is done; then the next one

Rounds are synchronous. Counts and depth are those of one process; a counterexample is equally short, though
it may be another one. Messages go through the parent, which holds one round of them.
"""

import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic

from attrs import define, field

from fencepost.model.explore.compiled import Broken, Exploration
from fencepost.model.explore.paths import path_through
from fencepost.model.explore.process import resident_bytes
from fencepost.model.explore.share import Report, Worker
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.store import NO_STATE
from fencepost.model.explore.transition_system import (
    ExplorationOutcome,
    Limits,
    Result,
    State,
    Step,
    Symmetry,
    result_of,
)
from fencepost.traces.errors import FencepostError


def _serve(
    link: Connection,
    number: int,
    workers: int,
    system: SlottedSystem[Any],
    start: tuple[Any, ...],
    symmetry: bool,
) -> None:
    """A worker's process: executes the parent's calls one after the other, until the parent closes the
    connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this process
    symmetries = system.symmetries if symmetry else ()
    worker = Worker(number, workers, Exploration(system, start, Limits(), symmetries))
    while True:
        try:
            method, *arguments = link.recv()
        except EOFError:
            return
        link.send(getattr(worker, method)(*arguments))


@define
class Crew:
    """The processes. A context, so that none is left running."""

    links: list[Connection] = field(factory=list)
    processes: list[BaseProcess] = field(factory=list)

    def hire(self, workers: int, *arguments: Any) -> None:
        """Start the processes.

        Args:
            workers: the number of processes.
            arguments: for each worker's constructor.
        """
        # forked from a process without other threads, whose locks a fork would share, that loads numba once
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__])
        for number in range(workers):
            link, other_end = context.Pipe()
            process = context.Process(
                target=_serve, args=(other_end, number, workers, *arguments), daemon=True
            )
            process.start()
            other_end.close()
            self.links.append(link)
            self.processes.append(process)

    def call(self, method: str, *of_each: list[Any]) -> list[Any]:
        """Call a method of all workers at once. of_each: lists of arguments, by worker. Returns the answers,
        by worker."""
        for number, link in enumerate(self.links):
            link.send((method, *(arguments[number] for arguments in of_each)))
        return [self._answer(number) for number in range(len(self.links))]

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one worker."""
        self.links[number].send((method, *arguments))
        return self._answer(number)

    def _answer(self, number: int) -> Any:
        try:
            return self.links[number].recv()
        except (EOFError, ConnectionError):
            self.processes[number].join(1)
            raise FencepostError(
                expected="an answer",
                seen=f"it ended with exit code {self.processes[number].exitcode}",
                where=f"worker {number} of the exploration",
                hint="fewer workers or a memory limit, if the machine ran out of memory",
            ) from None

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()


def explore_by_workers(
    system: SlottedSystem[State],
    start: tuple[State, ...],
    limits: Limits,
    workers: int,
    *,
    symmetry: bool,
    on_progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Visit all states with this many processes. The system must support pickling. Raises FencepostError if a
    process dies."""
    with Crew() as crew:
        crew.hire(workers, system, start, symmetry)
        return _Search(system, start, limits, system.symmetries if symmetry else (), crew).run(on_progress)


@define
class _Search(Generic[State]):
    """The parent's state."""

    # The system.
    system: SlottedSystem[State]
    # The initial states.
    start: tuple[State, ...]
    # Where to stop.
    limits: Limits
    # The renamings.
    symmetries: tuple[Symmetry, ...]
    # The processes.
    crew: Crew
    # The last report of each worker.
    reports: list[Report] = field(factory=list)
    # The current depth in steps.
    depth: int = 0

    def run(self, on_progress: Callable[[int, int], None] | None) -> Result:
        """Level by level, round by round."""
        self.reports = self.crew.call("begin")
        while self._broken() is None:
            if not any(report.new for report in self.reports) and self.depth > 0:
                return self._result(ExplorationOutcome.HOLDS)
            if self.limits.depth is not None and self.depth >= self.limits.depth:
                return self._result(ExplorationOutcome.BOUNDED)
            self.crew.call("next_level")
            done = False
            while not done and self._broken() is None:
                if on_progress is not None:
                    on_progress(self._states(), self.depth)
                if self._is_full():
                    return self._result(ExplorationOutcome.BOUNDED)
                parcels = self.crew.call("expand")
                self.reports = self.crew.call("take", [list(own) for own in zip(*parcels, strict=True)])
                done = all(report.done for report in self.reports)
            if self._broken() is not None or any(report.new for report in self.reports):
                self.depth += 1
            else:
                return self._result(ExplorationOutcome.HOLDS)
        return self._result(ExplorationOutcome.VIOLATED)

    def _states(self) -> int:
        return sum(report.states for report in self.reports)

    def _is_full(self) -> bool:
        limits = self.limits
        if limits.states is not None and self._states() > limits.states:
            return True
        used = resident_bytes() + sum(report.memory for report in self.reports)
        return limits.memory_mib is not None and used > limits.memory_mib << 20

    def _broken(self) -> tuple[int, Broken] | None:
        """The first worker that found a violation."""
        return next(
            ((at, report.broken) for at, report in enumerate(self.reports) if report.broken is not None), None
        )

    def _result(self, outcome: ExplorationOutcome) -> Result:
        broken = self._broken()
        names = dict.fromkeys(name for rule in self.system.rules for name in rule.names)
        totals = [sum(many) for many in zip(*(report.taken for report in self.reports), strict=True)]
        return result_of(
            self.system,
            outcome,
            distinct=self._states(),
            depth=self.depth,
            taken=dict(zip(names, totals, strict=True)),
            unreached=frozenset.intersection(*(report.unreached for report in self.reports)),
            invariant=None if broken is None else broken[1].invariant,
            path=() if broken is None else self._path(*broken),
        )

    def _path(self, owner: int, broken: Broken) -> tuple[Step, ...]:
        states, number = [], broken.state
        while number != NO_STATE:
            state, owner, number = self.crew.ask(owner, "state", number)
            states.append(state)
        last = None if broken.by == NO_STATE else broken.invariant
        return path_through(self.system, self.start, states[::-1], self.symmetries, last)

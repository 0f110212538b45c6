"""Breadth-first exploration by several processes, each of which owns the states whose content hashes to it.

Owns: who expands what and when. Must not know any system.

    round   1. each worker expands some of its states of this level, and hands over the successors that others own
            2. each takes in what is its own, from all workers in their order, and judges what is new
    level   rounds until every worker is through; then the next one

Each worker numbers values by itself; with its rows it sends the values that it numbered since the last time. Rounds are synchronous and everything is
taken in a fixed order, so that a number of workers always gives the same answer. Counts and depth are those of one process; a counterexample is as
short, though it may be another one. Messages go through the parent, which holds one round of them.
"""

import signal
from collections.abc import Callable
from hashlib import blake2b
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic

import numpy as np
from attrs import define, field, frozen
from msgspec.msgpack import Encoder
from numba import njit
from numpy.typing import NDArray

from fencepost.model.explore.compiled import CHUNK, Broken, Exploration
from fencepost.model.explore.expansion import NOTHING_BROKEN
from fencepost.model.explore.memo import Numbers, grown
from fencepost.model.explore.paths import path_through
from fencepost.model.explore.process import resident_bytes
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.store import NO_STATE
from fencepost.model.explore.system import Limits, Outcome, Result, State, Step, Symmetry, Value, result_of
from fencepost.traces.errors import FencepostError

CHUNKS_IN_ROUND = 8
"""What a worker expands before it hands over: long enough to hide the waiting, short enough for the parent's memory."""


_encode = Encoder().encode


@njit(cache=True)
def _hashes(rows: Any, of_value: Any, places: Any, renamed: Any, found: Any) -> None:
    """A hash of each row that depends neither on how a process numbers values nor on the names of what may be renamed."""
    hashes = np.empty(rows.shape[1], np.uint64)
    for at in range(rows.shape[0]):
        least = ~np.uint64(0)
        for renaming in range(-1, places.shape[0]):
            for slot in range(rows.shape[1]):
                if renaming < 0:
                    hashes[slot] = of_value[rows[at, slot]]
                else:
                    hashes[places[renaming, slot]] = of_value[renamed[renaming, rows[at, slot]]]
            mixed = np.uint64(0)
            for slot in range(rows.shape[1]):
                mixed = (mixed ^ hashes[slot]) * np.uint64(0x9E3779B97F4A7C15)
                mixed ^= mixed >> np.uint64(29)
            least = min(least, mixed)
        found[at] = least


@frozen
class Parcel:
    """Successors that another worker owns. kinds, values: numbered by the sender since its last parcel to anybody, in order. rows: in the sender's
    numbers; parents: its states that they come from."""

    values: tuple[tuple[int, Value], ...]
    rows: Numbers
    parents: Numbers


@frozen(kw_only=True)
class Report:
    """After a round. done: nothing of this level is left to expand. new: states of the next level so far. broken: the first invariant seen to fall."""

    states: int
    new: int
    done: bool
    broken: Broken | None
    taken: tuple[int, ...]
    unreached: frozenset[str]
    memory: int


@define
class Worker(Generic[State]):
    """One process's share. behind: of its states, those below are expanded or of the level in hand; next: the first that is not yet expanded.
    translations: of each sender, its numbers of values -> ours; known: how many of them. hash_of: by number of a value; hashed: how many. told: how many
    values the others know."""

    number: int
    workers: int
    exploration: Exploration[State]
    behind: int = 0
    next: int = 0
    translations: list[Numbers] = field(factory=list)
    known: list[int] = field(factory=list)
    hash_of: NDArray[np.uint64] = field(factory=lambda: np.zeros(1 << 10, np.uint64))
    hashed: int = 0
    told: int = 0
    broken_step: Broken | None = None

    def begin(self) -> Report:
        """Take in the initial states that are its own."""
        self.translations = [np.zeros(1 << 10, np.int32) for _ in range(self.workers)]
        self.known = [0] * self.workers
        rows = np.array(
            [self.exploration.expander.row_of(state) for state in self.exploration.start], np.int32
        )
        self.exploration.store.add_initial(rows[self._owners(rows) == self.number])
        return self._report(self.exploration.judge(0, len(self.exploration.store)))

    def next_level(self) -> None:
        """All that is not expanded yet is the next level."""
        self.behind = len(self.exploration.store)

    def expand(self) -> list[Parcel]:
        """Expand some of its states: one parcel for each worker, this one too."""
        exploration = self.exploration
        rows = [np.empty((0, len(exploration.system.kinds)), np.int32)]
        parents = [np.empty(0, np.int32)]
        for _ in range(CHUNKS_IN_ROUND):
            if self.next >= self.behind or self.broken_step is not None:
                break
            first, self.next = self.next, min(self.next + CHUNK, self.behind)
            after = exploration.expander.successors(exploration.store.rows(first, self.next))
            exploration.count(after.by)
            rows.append(after.rows)
            parents.append(after.origin + np.int32(first))
            if after.broken != NOTHING_BROKEN:
                invariant = tuple(exploration.system.step_invariants)[after.broken]
                self.broken_step = Broken(invariant, int(parents[-1][-1]), int(after.by[-1]))
        return self._parcels(np.concatenate(rows), np.concatenate(parents))

    def _parcels(self, rows: Numbers, parents: Numbers) -> list[Parcel]:
        owners = self._owners(rows)
        values = self.exploration.expander.values
        news = tuple(zip(values.kind_of[self.told :], values.of[self.told :], strict=True))
        self.told = len(values.of)
        return [
            Parcel(news, rows[owners == owner], parents[owners == owner]) for owner in range(self.workers)
        ]

    def take(self, parcels: list[Parcel]) -> Report:
        """Take in what is its own, judge what is new."""
        store, before = self.exploration.store, len(self.exploration.store)
        for sender, parcel in enumerate(parcels):
            rows = parcel.rows
            if sender != self.number:
                self._learn(sender, parcel.values)
                rows = self.exploration.expander.least(self.translations[sender][rows])
            store.add(rows, parcel.parents, np.full(len(rows), sender, np.int32))
        return self._report(self.exploration.judge(before, len(store)))

    def _learn(self, sender: int, values: tuple[tuple[int, Value], ...]) -> None:
        """Number another worker's values."""
        ours, kinds = self.exploration.expander.values, self.exploration.system.kinds
        self.translations[sender] = grown(self.translations[sender], self.known[sender] + len(values))
        for at, (kind, value) in enumerate(values, self.known[sender]):
            self.translations[sender][at] = ours.number(kinds.index(kind), value)
        self.known[sender] += len(values)

    def _owners(self, rows: Numbers) -> Numbers:
        """Who owns the states that have these rows: renamed states have one owner."""
        values = self.exploration.expander.values
        self.hash_of = grown(self.hash_of, len(values.of))
        for number in range(self.hashed, len(values.of)):
            content = _encode((values.kind_of[number], values.of[number]))
            self.hash_of[number] = int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
        self.hashed = len(values.of)
        hashes = np.empty(len(rows), np.uint64)
        _hashes(rows, self.hash_of, self.exploration.expander.places, values.renamed, hashes)
        return (hashes % np.uint64(self.workers)).astype(np.int32)

    def state(self, number: int) -> tuple[State, int, int]:
        """A state, the worker that owns the one before, and that one's number there."""
        store = self.exploration.store
        row = store.rows(number, number + 1)[0].tolist()
        return self.exploration.expander.state_of(row), int(store.hint[number]), int(store.parent[number])

    def _report(self, broken: Broken | None) -> Report:
        states = len(self.exploration.store)
        return Report(
            states=states,
            new=states - self.behind,
            done=self.next >= self.behind,
            broken=broken or self.broken_step,
            taken=tuple(self.exploration.taken.tolist()),
            unreached=frozenset(self.exploration.unreached),
            memory=resident_bytes(),
        )


def _serve(
    link: Connection,
    number: int,
    workers: int,
    system: SlottedSystem[Any],
    start: tuple[Any, ...],
    symmetry: bool,
) -> None:
    """A worker's process: does what the parent says, one call after the other, until it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends us
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
    """The processes. Used as a context, so that none is left behind."""

    links: list[Connection] = field(factory=list)
    processes: list[BaseProcess] = field(factory=list)

    def hire(self, workers: int, *arguments: Any) -> None:
        """Start them."""
        context = get_context("spawn")  # a fork would share the locks of whatever threads there are
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
        """Call a method of every worker, all at once; of_each: one list of arguments after the other, by worker. The answers, by worker."""
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
    """Visit all states with so many processes. The system has to be one that can be pickled. Raises FencepostError if a process dies."""
    with Crew() as crew:
        crew.hire(workers, system, start, symmetry)
        return _Search(system, start, limits, system.symmetries if symmetry else (), crew).run(on_progress)


@define
class _Search(Generic[State]):
    """The parent's view. reports: the last of each worker."""

    system: SlottedSystem[State]
    start: tuple[State, ...]
    limits: Limits
    symmetries: tuple[Symmetry, ...]
    crew: Crew
    reports: list[Report] = field(factory=list)
    depth: int = 0

    def run(self, on_progress: Callable[[int, int], None] | None) -> Result:
        """Level by level, round by round."""
        self.reports = self.crew.call("begin")
        while self._broken() is None:
            if not any(report.new for report in self.reports) and self.depth > 0:
                return self._result(Outcome.HOLDS)
            if self.limits.depth is not None and self.depth >= self.limits.depth:
                return self._result(Outcome.BOUNDED)
            self.crew.call("next_level")
            done = False
            while not done and self._broken() is None:
                if on_progress is not None:
                    on_progress(self._states(), self.depth)
                if self._is_full():
                    return self._result(Outcome.BOUNDED)
                parcels = self.crew.call("expand")
                self.reports = self.crew.call("take", [list(own) for own in zip(*parcels, strict=True)])
                done = all(report.done for report in self.reports)
            if self._broken() is not None or any(report.new for report in self.reports):
                self.depth += 1
            else:
                return self._result(Outcome.HOLDS)
        return self._result(Outcome.VIOLATED)

    def _states(self) -> int:
        return sum(report.states for report in self.reports)

    def _is_full(self) -> bool:
        limits = self.limits
        if limits.states is not None and self._states() > limits.states:
            return True
        used = resident_bytes() + sum(report.memory for report in self.reports)
        return limits.memory_mib is not None and used > limits.memory_mib << 20

    def _broken(self) -> tuple[int, Broken] | None:
        """The first worker that saw an invariant fall."""
        return next(
            ((at, report.broken) for at, report in enumerate(self.reports) if report.broken is not None), None
        )

    def _result(self, outcome: Outcome) -> Result:
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

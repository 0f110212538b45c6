"""Breadth-first exploration of a system in slots, compiled except for values that were not seen before.

Owns the order of the work and the answer. Must not know any system. It answers exactly as breadth_first.py
does: the same counts, the same counterexample; tests compare the two.

A level is expanded in chunks:

1. read the rows of a chunk
2. look up the result of each rule for them, and call Python for unknown ones
3. combine: write the outcomes into the rows, number them
4. check the new ones by the parts of the invariants, in the same way.
"""

from collections.abc import Callable
from typing import Generic

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from fencepost.model.explore.expansion import NOTHING_BROKEN, Expander
from fencepost.model.explore.paths import path_through
from fencepost.model.explore.process import resident_bytes
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.statements import Judge
from fencepost.model.explore.store import NO_STATE, Store
from fencepost.model.explore.transition_system import (
    ExplorationOutcome,
    Limits,
    Result,
    State,
    Step,
    Symmetry,
    result_of,
)

CHUNK = 4_096
"""States expanded between two checks of the limits. Reason: rows, answers and successors of a chunk fit into
the processor's cache."""


@frozen
class Broken:
    """An invariant that fails in a state; or on the step `by` from there, an outcome."""

    invariant: str
    state: int
    by: int = NO_STATE


@define
class Exploration(Generic[State]):
    """One exploration, in this process."""

    # The system.
    system: SlottedSystem[State]
    # The initial states of this exploration.
    start: tuple[State, ...]
    # Where to stop.
    limits: Limits
    # The renamings under which states count as one.
    symmetries: tuple[Symmetry, ...] = ()
    # Computes successors.
    expander: Expander[State] = field(init=False)
    # The visited states.
    store: Store = field(init=False)
    # The invariants of states.
    invariants: Judge = field(init=False)
    # The goals.
    goals: Judge = field(init=False)
    # Goals that were not reached yet.
    unreached: set[str] = field(init=False)
    # Steps examined, by number of the action name.
    taken: NDArray[np.int64] = field(init=False)
    # The current depth in steps.
    depth: int = 0

    def __attrs_post_init__(self) -> None:
        self.expander = Expander(self.system, self.symmetries)
        self.store = Store.of(len(self.system.kinds))
        self.invariants = Judge.of(self.system.parts, self.expander.values)
        self.goals = Judge.of(self.system.goals, self.expander.values)
        self.unreached = set(self.system.goals)
        self.taken = np.zeros(len(self.expander.names), np.int64)

    def run(self, on_progress: Callable[[int, int], None] | None = None) -> Result:
        """Explore level by level. on_progress: called with the number of distinct states and the depth,
        before each chunk."""
        initial = [self.expander.row_of(state) for state in self.start]
        self.store.add_initial(np.array(initial, np.int32))
        level, end = 0, len(self.store)
        broken = self.judge(level, end)
        while broken is None and level < end:
            if self.limits.depth is not None and self.depth >= self.limits.depth:
                return self._result(ExplorationOutcome.BOUNDED)
            for first in range(level, end, CHUNK):
                if on_progress is not None:
                    on_progress(len(self.store), self.depth)
                if self._is_full():
                    return self._result(ExplorationOutcome.BOUNDED)
                broken = self._expand(first, min(first + CHUNK, end))
                if broken is not None:
                    break
            level, end = end, len(self.store)
            if level < end or broken is not None:
                self.depth += 1
        return (
            self._result(ExplorationOutcome.HOLDS, broken)
            if broken is None
            else self._result(ExplorationOutcome.VIOLATED, broken)
        )

    def _is_full(self) -> bool:
        limits = self.limits
        if limits.states is not None and len(self.store) > limits.states:
            return True
        if limits.memory_mib is None:
            return False
        return resident_bytes() + self.store.growth(self._next_successors()) > limits.memory_mib << 20

    def _next_successors(self) -> int:
        """An estimate of the successors of the next chunk, from those so far."""
        return 2 * CHUNK * (1 + int(self.taken.sum()) // max(1, len(self.store)))

    def _expand(self, first: int, end: int) -> Broken | None:
        """Number the successors of these states, and check the new ones."""
        after = self.expander.successors(self.store.rows(first, end))
        self.count(after.by)
        before = len(self.store)
        steps = len(after.by)
        judged = steps if after.broken == NOTHING_BROKEN else steps - 1
        origin = after.origin + np.int32(first)
        self.store.add(after.rows[:judged], origin[:judged], after.by[:judged])
        broken = self.judge(before, len(self.store))
        if broken is not None or judged == steps:
            return broken
        self.store.add(after.rows[judged:], origin[judged:], after.by[judged:])
        invariant = tuple(self.system.step_invariants)[after.broken]
        return Broken(invariant, int(origin[-1]), int(after.by[-1]))

    def count(self, by: NDArray[np.int32]) -> None:
        """Count these outcomes as examined."""
        self.taken += np.bincount(self.expander.outcomes.name[by], minlength=len(self.taken))

    def judge(self, first: int, end: int) -> Broken | None:
        """The first of these states that violates an invariant; notes the goals that they reach."""
        for start in range(first, end, CHUNK):
            rows = self.store.rows(start, min(start + CHUNK, end))
            if self.unreached:
                self.unreached -= self.goals.reached(rows)
            broken = self.invariants.first_false(rows)
            if broken is not None:
                return Broken(broken[1], start + broken[0])
        return None

    def _result(self, outcome: ExplorationOutcome, broken: Broken | None = None) -> Result:
        distinct = len(self.store)
        if broken is not None and broken.by == NO_STATE:
            distinct = broken.state + 1
        return result_of(
            self.system,
            outcome,
            distinct=distinct,
            depth=self.depth,
            taken={name: int(self.taken[at]) for name, at in self.expander.names.items()},
            unreached=self.unreached,
            invariant=None if broken is None else broken.invariant,
            path=() if broken is None else self.path(broken),
        )

    def path(self, broken: Broken) -> tuple[Step, ...]:
        """A shortest path to the state in which an invariant fails."""
        chain = [broken.state]
        while (before := int(self.store.parent[chain[-1]])) != NO_STATE:
            chain.append(before)
        states = [
            self.expander.state_of(self.store.rows(number, number + 1)[0].tolist())
            for number in reversed(chain)
        ]
        last = None if broken.by == NO_STATE else broken.invariant
        return path_through(self.system, self.start, states, self.symmetries, last)

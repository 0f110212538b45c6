"""The successors of many states at once.

Owns the calls of each rule, once for each combination of the values that it reads, and the combination of the
answers. Must not know which states were visited.
"""

from typing import Any, Generic

import numpy as np
from attrs import define, field, frozen
from numba import njit

from fencepost.model.explore.memo import Chains, Numbers, Outcomes, Values, grown
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.statements import Statements
from fencepost.model.explore.transition_system import Rule, State, Symmetry

NOTHING_BROKEN = -1


@njit(cache=True)
def _canonical(row: Any, best: Any, other: Any, places: Any, renamed: Any) -> None:
    """Write the least of the row's renamings, by numbers, into `best`."""
    best[:] = row
    for at in range(places.shape[0]):
        for slot in range(row.size):
            other[places[at, slot]] = renamed[at, row[slot]]
        for slot in range(row.size):
            if other[slot] != best[slot]:
                if other[slot] < best[slot]:
                    best[:] = other
                break


@njit(cache=True)
def _least_of_each(rows: Any, places: Any, renamed: Any) -> None:
    best, other = np.empty(rows.shape[1], np.int32), np.empty(rows.shape[1], np.int32)
    for at in range(rows.shape[0]):
        _canonical(rows[at], best, other, places, renamed)
        rows[at] = best


@njit(cache=True)
def _combine(
    rows: Any,
    found: Any,
    answer: Any,
    first: Any,
    written: Any,
    writes: Any,
    places: Any,
    renamed: Any,
    after: Any,
    origin: Any,
    by: Any,
) -> None:
    """The successors of `rows` in the order of rows and rules: their rows, their origins, their outcomes."""
    best, other = np.empty(rows.shape[1], np.int32), np.empty(rows.shape[1], np.int32)
    number = 0
    for at in range(rows.shape[0]):
        for rule in range(found.shape[1]):
            combination = found[at, rule]
            for outcome in range(first[combination], first[combination] + answer[combination]):
                row = after[number]
                row[:] = rows[at]
                for place in range(writes.shape[1]):
                    if writes[rule, place] >= 0:
                        row[writes[rule, place]] = written[outcome, place]
                if places.shape[0] > 0:
                    _canonical(row, best, other, places, renamed)
                    row[:] = best
                origin[number] = at
                by[number] = outcome
                number += 1


@frozen
class Successors:
    """The successors of some rows.

    Attributes:
        rows: one for each step, in order.
        origin: for each step the expanded row that it starts from.
        by: for each step its outcome.
        broken: the step invariant that the last step here violates; NOTHING_BROKEN if there is none.
    """

    rows: Numbers
    origin: Numbers
    by: Numbers
    broken: int


@define
class Expander(Generic[State]):
    """What is known about a system's local steps."""

    # The system.
    system: SlottedSystem[State]
    # The renamings under which states count as one.
    symmetries: tuple[Symmetry, ...]
    # The numbers of values.
    values: Values = field(init=False)
    # The rules of the system.
    rules: tuple[Rule, ...] = field(init=False)
    # The combinations of values for which rules were called.
    chains: Chains = field(init=False)
    # The answers of rules.
    outcomes: Outcomes = field(init=False)
    # The rules that have a guard (`when`).
    guarded: list[int] = field(init=False)
    # The guards of rules.
    guards: Statements = field(init=False)
    # For each rule the slots that it writes.
    writes: Numbers = field(init=False)
    # For each renaming the slot that each slot's value moves to.
    places: Numbers = field(init=False)
    # The number of each action name.
    names: dict[str, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rules, slots = self.system.rules, len(self.system.kinds)
        self.values = Values(self.system.kinds, self.symmetries)
        self.chains = Chains.of([rule.reads for rule in self.rules])
        widest = max(len(rule.writes) for rule in self.rules)
        self.outcomes = Outcomes.empty(widest)
        self.guarded = [at for at, rule in enumerate(self.rules) if rule.when is not None]
        self.guards = Statements(
            tuple(rule.when for rule in self.rules if rule.when is not None), self.values
        )
        self.writes = np.full((len(self.rules), widest), -1, np.int32)
        for at, rule in enumerate(self.rules):
            self.writes[at, : len(rule.writes)] = rule.writes
        self.places = np.array([one.places for one in self.symmetries], np.int32).reshape(-1, slots)
        names = dict.fromkeys(name for rule in self.rules for name in rule.names)
        self.names = {name: at for at, name in enumerate(names)}

    def row_of(self, state: State) -> Numbers:
        """The row that represents a state: its own, or the least of its renamings."""
        slots = self.system.slots_of(state)
        row = np.array([self.values.number(slot, value) for slot, value in enumerate(slots)], np.int32)
        best = np.empty_like(row)
        _canonical(row, best, np.empty_like(row), self.places, self.values.renamed)
        return best

    def least(self, rows: Numbers) -> Numbers:
        """The rows that represent the states of these rows."""
        if self.symmetries:
            _least_of_each(rows, self.places, self.values.renamed)
        return rows

    def state_of(self, row: list[int]) -> State:
        """The state with this row."""
        return self.system.state_of([self.values.of[number] for number in row])

    def successors(self, rows: Numbers) -> Successors:
        """All steps from these states."""
        found = self._ask(rows)
        answer, outcomes = self.chains.answer, self.outcomes
        many = int(answer[found].sum())
        after = np.empty((many, rows.shape[1]), np.int32)
        origin, by = np.empty(many, np.int32), np.empty(many, np.int32)
        _combine(
            rows,
            found,
            answer,
            outcomes.first,
            outcomes.written,
            self.writes,
            self.places,
            self.values.renamed,
            after,
            origin,
            by,
        )
        broken = np.flatnonzero(outcomes.broken[by] >= 0)
        if not broken.size:
            return Successors(after, origin, by, NOTHING_BROKEN)
        count = int(broken[0]) + 1
        return Successors(after[:count], origin[:count], by[:count], int(outcomes.broken[by[count - 1]]))

    def _ask(self, rows: Numbers) -> Numbers:
        """The answer of each rule for each row, as numbers of combinations that all have answers."""
        wanted = np.ones((len(rows), len(self.rules)), np.bool_)
        if self.guarded:
            guards = self.guards.look(rows)
            wanted[:, self.guarded] = self.guards.chains.answer[guards] > 0
        found, asked = self.chains.look(rows, wanted)
        self.outcomes.first = grown(self.outcomes.first, self.chains.answer.size)
        for combination, at, question in asked:
            self._answer(combination, rows[at].tolist(), self.rules[question])
        return found

    def _answer(self, combination: int, row: list[int], rule: Rule) -> None:
        values, outcomes = self.values, self.outcomes
        outcomes.first[combination] = len(outcomes.actions)
        steps = list(rule.step(*[values.of[row[slot]] for slot in rule.reads]))
        self.chains.answer[combination] = len(steps)
        for action, written in steps:
            numbers = [values.number(slot, value) for slot, value in zip(rule.writes, written, strict=True)]
            after = list(row)
            for slot, number in zip(rule.writes, numbers, strict=True):
                after[slot] = number
            outcomes.add(action, numbers, self.names[str(action[0])], self._broken(row, action, after))

    def _broken(self, row: list[int], action: Any, after: list[int]) -> int:
        """The first step invariant that a step violates."""
        invariants = self.system.step_invariants
        if not invariants:
            return NOTHING_BROKEN
        old, new = self.state_of(row), self.state_of(after)
        broken = (at for at, holds in enumerate(invariants.values()) if not holds(old, action, new))
        return next(broken, NOTHING_BROKEN)

"""Invariants and goals over rows of numbers, by their parts.

Owns which columns a part reads, through which view, and one call of Python for each combination. Must not
know how rows are made.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import define, field
from numba import njit

from fencepost.model.explore.memo import UNKNOWN, Chains, Flags, Numbers, Values, grown
from fencepost.model.explore.transition_system import Part, Value


@define
class Statements:
    """Parts, and what is known about them."""

    # The parts.
    parts: tuple[Part, ...]
    # The numbers of values.
    values: Values
    # (view, slot) of each column.
    columns: list[tuple[int, int]] = field(init=False)
    # The distinct views.
    views: list[Any] = field(init=False)
    # For each view: the number of the viewed content, by number of the value.
    viewed: list[Numbers] = field(init=False)
    # The viewed content of each number.
    contents: list[Value] = field(factory=list)
    # (view, content) -> number.
    numbers: dict[tuple[int, Value], int] = field(factory=dict)
    # The combinations and their answers.
    chains: Chains = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.views = list(dict.fromkeys(part.view for part in self.parts))
        self.viewed = [np.full(1 << 10, UNKNOWN, np.int32) for _ in self.views]
        place = {view: at for at, view in enumerate(self.views)}
        self.columns = list(
            dict.fromkeys((place[part.view], slot) for part in self.parts for slot in part.reads)
        )
        column = {pair: at for at, pair in enumerate(self.columns)}
        self.chains = Chains.of(
            [tuple(column[place[part.view], slot] for slot in part.reads) for part in self.parts]
        )

    def look(self, rows: Numbers, wanted: Flags | None = None) -> Numbers:
        """The combination of each row for each part. All of them have an answer in `chains.answer`: 1 if the
        part holds, otherwise 0.

        Args:
            rows: numbers of values, one row per state.
            wanted: which (row, part) to look up; None: all.

        Returns:
            one combination per row and part.
        """
        if wanted is None:
            wanted = np.ones((len(rows), len(self.parts)), np.bool_)
        seen = self._view(rows)
        found, asked = self.chains.look(seen, wanted)
        for combination, at, question in asked:
            part = self.parts[question]
            reads = self.chains.reads[question, : self.chains.arity[question]]
            self.chains.answer[combination] = bool(
                part.holds(*(self._content(column, seen[at, column]) for column in reads.tolist()))
            )
        return found

    def _content(self, column: int, number: int) -> Value:
        unseen = self.views[self.columns[column][0]] is None
        return self.values.of[number] if unseen else self.contents[number]

    def _view(self, rows: Numbers) -> Numbers:
        """A column for each (view, slot) that some part reads."""
        seen = np.empty((len(rows), len(self.columns)), np.int32)
        for at, (view, slot) in enumerate(self.columns):
            if self.views[view] is None:
                seen[:, at] = rows[:, slot]
                continue
            self.viewed[view] = grown(self.viewed[view], len(self.values.of), UNKNOWN)
            seen[:, at] = self.viewed[view][rows[:, slot]]
            unknown = seen[:, at] == UNKNOWN
            if unknown.any():
                for number in np.unique(rows[unknown, slot]).tolist():
                    self.viewed[view][number] = self._number(view, self.views[view](self.values.of[number]))
                seen[:, at] = self.viewed[view][rows[:, slot]]
        return seen

    def _number(self, view: int, content: Value) -> int:
        number = self.numbers.setdefault((view, content), len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        return number


@njit(cache=True)
def _first_false(found: Any, answer: Any) -> Any:
    """The first row with a part that does not hold, and that part; (-1, -1) if there is none."""
    for at in range(found.shape[0]):
        for part in range(found.shape[1]):
            if answer[found[at, part]] == 0:
                return at, part
    return -1, -1


@define
class Judge:
    """Statements of several parts each."""

    names: tuple[str, ...]
    # The statement of each part.
    owner: tuple[int, ...]
    statements: Statements

    @classmethod
    def of(cls, named: Mapping[str, tuple[Part, ...]], values: Values) -> "Judge":
        """The statements with these names, in order.

        Args:
            named: the parts of each statement.
            values: the numbers of values.

        Returns:
            the judge.
        """
        owner = tuple(at for at, parts in enumerate(named.values()) for _ in parts)
        return cls(
            tuple(named), owner, Statements(tuple(part for parts in named.values() for part in parts), values)
        )

    def first_false(self, rows: Numbers) -> tuple[int, str] | None:
        """The first row that violates a statement, and the statement."""
        if not self.owner:
            return None
        found = self.statements.look(rows)
        at, part = _first_false(found, self.statements.chains.answer)
        return None if at < 0 else (int(at), self.names[self.owner[part]])

    def reached(self, rows: Numbers) -> set[str]:
        """The statements with a part that holds in some row."""
        found = self.statements.look(rows)
        some = (self.statements.chains.answer[found] > 0).any(axis=0)
        return {self.names[self.owner[part]] for part in np.nonzero(some)[0]}

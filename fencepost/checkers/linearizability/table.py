"""States and calls as small integers, and the table of steps between them.

Owns interning, and the only calls of a model's `step`. Must not know histories or searches.

A step is asked of the model once. States that are == (or that the model's own `equal` holds for alike) are
one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from fencepost.checkers.linearizability.kernel.arrays import IMPOSSIBLE as NO_STATE
from fencepost.checkers.linearizability.kernel.arrays import StepTable
from fencepost.checkers.linearizability.kernel.steps import put_steps
from fencepost.checkers.models.base import IMPOSSIBLE, Call, Model, shown
from fencepost.checkers.operation_columns import Array
from fencepost.traces.errors import FencepostError


class ModelError(FencepostError):
    """A model that raised, or whose states cannot be told apart: its author's mistake, not the history's."""


SMALLEST = 1 << 10
"""Entries of a new table."""


def _empty(size: int) -> StepTable:
    return StepTable(np.full(size, -1, np.int64), np.empty(size, np.int32))


def _exact(value: Any) -> tuple[str | None, str | None]:
    """A key for values that are == and of the same type."""
    return (value, None) if type(value) is str else (None, shown(value))


@define(eq=False)
class Table:
    """What is known of a model so far. states, calls: by number; steps: the compiled form; filled: how many
    of its entries are taken; lens: through which states are seen, for the part at hand (`Model.lens`)."""

    model: Model
    states: list[Any] = field(factory=list)
    calls: list[Call] = field(factory=list)
    steps: StepTable = field(factory=lambda: _empty(SMALLEST))
    filled: int = 0
    lens: Callable[[Any], Any] | None = None
    _numbers: dict[Any, int] = field(factory=dict)
    _call_numbers: dict[tuple[Any, ...], int] = field(factory=dict)
    _questions: set[int] = field(factory=set)
    _own_equal: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._own_equal = type(self.model).equal is not Model.equal

    @property
    def bytes(self) -> int:
        """Of the compiled form. What states themselves take is seen in the process's memory only."""
        return self.steps.keys.nbytes + self.steps.values.nbytes

    def state(self, state: Any) -> int:
        """The number of a state. Raises FencepostError for one that cannot be hashed while `equal` is not the
        model's own."""
        try:
            number = self._numbers.get(state)
        except TypeError:
            if not self._own_equal:
                raise ModelError(
                    expected="states that can be hashed, or an `equal` of the model's own",
                    seen=type(state).__name__,
                    where=f"the model {type(self.model).__name__}",
                ) from None
            number, hashable = None, False
        else:
            hashable = True
        if number is None and self._own_equal:
            alike = (n for n, known in enumerate(self.states) if self.model.equal(known, state))
            number = next(alike, None)
        if number is None:
            number = len(self.states)
            self.states.append(state)
        if hashable:
            self._numbers[state] = number
        return number

    def call(self, call: Call) -> int:
        """The number of a call. Values that are == but of different types (1 and true) are different
        calls."""
        key = (call.function, call.key, *_exact(call.argument), *_exact(call.result))
        number = self._call_numbers.setdefault(key, len(self.calls))
        if number == len(self.calls):
            self.calls.append(call)
        return number

    def reach(self, call: Call) -> int:
        """The number of the question whether a state can still lead to an observer: a step that goes nowhere,
        or is impossible."""
        key = ("reach", call.function, call.key, *_exact(call.argument), *_exact(call.result))
        number = self._call_numbers.setdefault(key, len(self.calls))
        if number == len(self.calls):
            self.calls.append(call)
            self._questions.add(number)
        return number

    def fill(self, state: int, calls: Array) -> None:
        """Ask the model for the steps of one state by several calls, none of which is in the table."""
        entries: dict[int, int] = {}
        for call in calls.tolist():
            if call not in entries:
                entries[call] = self.step(state, call)
        self._reserve(len(entries))
        keys = np.array([(state << 32) | call for call in entries], np.int64)
        put_steps(self.steps, keys, np.array(list(entries.values()), np.int32))
        self.filled += len(entries)

    def _reserve(self, more: int) -> None:
        size = len(self.steps.keys)
        while (self.filled + more) * 2 > size:
            size *= 2
        if size > len(self.steps.keys):
            old, self.steps = self.steps, _empty(size)
            put_steps(self.steps, old.keys, old.values)

    def step(self, state: int, call: int) -> int:
        """One step by numbers, asked of the model each time. Raises ModelError."""
        try:
            if call in self._questions:
                return state if self.model.reaches(self.states[state], self.calls[call]) else NO_STATE
            after = self.model.step(self.states[state], self.calls[call])
        except (FencepostError, MemoryError):
            raise
        except Exception as error:
            raise ModelError(
                expected="a state or IMPOSSIBLE from `step`",
                seen=f"{type(error).__name__}: {error}",
                where=f"the model {type(self.model).__name__}, {self.model.describe(self.calls[call])}",
            ) from error
        if after is IMPOSSIBLE:
            return NO_STATE
        return self.state(after if self.lens is None else self.lens(after))

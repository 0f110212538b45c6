"""States and calls as small integers, and the table of steps between them.

Owns interning, and all calls of a model's `step`. Must not know histories or searches.

The model computes each step once. States that are == (or equal by the model's own `equal`) share a number.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any

import numpy as np
from attrs import define, field

from fencepost.checkers.linearizability.kernel.arrays import IMPOSSIBLE as NO_STATE
from fencepost.checkers.linearizability.kernel.arrays import StepTable
from fencepost.checkers.linearizability.kernel.step_table import put_steps
from fencepost.checkers.models.base import IMPOSSIBLE, Call, Model, shown
from fencepost.checkers.models.returns import forgets_return
from fencepost.checkers.operation_columns import Array
from fencepost.traces.errors import FencepostError


class ModelError(FencepostError):
    """A model that raised, or states that cannot be compared: an error of the model, not of the history."""


def mistake_of(model: Model, error: BaseException) -> ModelError | None:
    """Whose mistake an exception is.

    Args:
        model: the model that was asked.
        error: an exception that the judge does not expect.

    Returns:
        a ModelError if it came through a function of a caller's model; otherwise None.
    """
    theirs = {
        cls.__module__ for cls in type(model).__mro__[:-1] if not cls.__module__.startswith("fencepost.")
    }
    through, traceback = "", error.__traceback__
    while traceback is not None and not through:
        frame = traceback.tb_frame
        if frame.f_globals.get("__name__") in theirs:
            through = frame.f_code.co_name
        traceback = traceback.tb_next
    if not through:
        return None
    return ModelError(
        expected=f"an answer of `{through}`",
        seen=f"{type(error).__name__}: {error}",
        where=f"the model {type(model).__name__}",
    )


SMALLEST = 1 << 10
"""Entries of a new table."""


def _empty(size: int) -> StepTable:
    return StepTable(np.full(size, -1, np.int64), np.empty(size, np.int32))


def _exact(value: Any) -> tuple[str | None, str | None]:
    """A key for values that are == and have the same type."""
    return (value, None) if type(value) is str else (None, shown(value))


@define(eq=False)
class Table:
    """What is known about a model so far."""

    # The sequential model.
    model: Model
    # The states by number.
    states: list[Any] = field(factory=list)
    # The calls by number.
    calls: list[Call] = field(factory=list)
    # The known steps in compiled form.
    steps: StepTable = field(factory=lambda: _empty(SMALLEST))
    # Used entries of `steps`; at most its capacity.
    filled: int = 0
    # Maps a state to its representative for the current part (`Model.lens`); None if all states differ.
    lens: Callable[[Any], Any] | None = None
    # The number of each state, by the state or by its key.
    _numbers: dict[Any, int] = field(factory=dict)
    # The number of each call.
    _call_numbers: dict[tuple[Any, ...], int] = field(factory=dict)
    # The questions of rule 3 that were asked (`reach`), by number.
    _questions: set[int] = field(factory=set)
    # Whether the model overrides `equal`.
    _own_equal: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._own_equal = type(self.model).equal is not Model.equal

    @property
    def bytes(self) -> int:
        """Bytes of the compiled form. The memory of the states themselves shows only in the memory of the
        process."""
        return self.steps.keys.nbytes + self.steps.values.nbytes

    def state(self, state: Any) -> int:
        """The number of a state.

        Raises ModelError if a state cannot be hashed while `equal` is not overridden, or if it is a generator
        or a coroutine.
        """
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
            if isinstance(
                state, Generator | Coroutine
            ):  # its identity differs each time: all would be allowed
                state.close()
                raise ModelError(
                    expected="a state or IMPOSSIBLE, from functions without `yield` and `async`",
                    seen=type(state).__name__,
                    where=f"the model {type(self.model).__name__}",
                )
            number = len(self.states)
            self.states.append(state)
        if hashable:
            self._numbers[state] = number
        return number

    def call(self, call: Call) -> int:
        """The number of a call. Values that are == but have different types (1 and true) are different
        calls."""
        key = (call.function, call.key, *_exact(call.argument), *_exact(call.result))
        number = self._call_numbers.setdefault(key, len(self.calls))
        if number == len(self.calls):
            self.calls.append(call)
        return number

    def reach(self, call: Call) -> int:
        """The number of the question whether a state can still lead to an observer. The answer is a step to
        the same state, or an impossible one."""
        key = ("reach", call.function, call.key, *_exact(call.argument), *_exact(call.result))
        number = self._call_numbers.setdefault(key, len(self.calls))
        if number == len(self.calls):
            self.calls.append(call)
            self._questions.add(number)
        return number

    def fill(self, state: int, calls: Array) -> None:
        """Ask the model for the steps of one state by several calls. None of them may be in the table yet."""
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
        """Ask the model for one step, without the table.

        Args:
            state: the number of the state.
            call: the number of the call.

        Returns:
            the number of the next state; NO_STATE if the call is impossible there.

        Raises:
            ModelError: if the model raises.
        """
        try:
            if call in self._questions:
                return state if self.model.reaches(self.states[state], self.calls[call]) else NO_STATE
            after = self.model.step(self.states[state], self.calls[call])
        except (FencepostError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            raise ModelError(
                expected="a state or IMPOSSIBLE from `step`",
                seen=f"{type(error).__name__}: {error}",
                where=f"the model {type(self.model).__name__}, {self.model.describe(self.calls[call])}",
            ) from error
        if after is IMPOSSIBLE:
            return NO_STATE
        if after is None and forgets_return(self.model.step, self.states[state], self.calls[call]):
            raise ModelError(
                expected="a state or IMPOSSIBLE from `step`",
                seen="its end without a `return` (a state of None needs `return None`)",
                where=f"the model {type(self.model).__name__}, {self.model.describe(self.calls[call])}",
            )
        return self.state(after if self.lens is None else self.lens(after))

# ruff: noqa: F841, RET503 (functions that forget a `return` are the subject)
"""A model that forgets a `return` is refused; a state of None is a state."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from fencepost.checkers.linearizability import judge_trace
from fencepost.checkers.linearizability.interned_steps import ModelError
from fencepost.checkers.models import IMPOSSIBLE, Call, Model
from fencepost.checkers.models.returns import forgets_return
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace
from tests.checkers import lab


def nothing(state: Any, call: Any) -> Any:
    state = call


def branch(state: Any, call: Any) -> Any:
    if state:
        return call


def bare(state: Any, call: Any) -> Any:
    if state:
        return
    state = 4


def either(state: Any, call: Any) -> Any:
    return call if state else None


def cases(state: Any, call: Any) -> Any:
    match call:
        case 1:
            return state
        case 2:
            state = 3


def guarded(state: Any, call: Any) -> Any:
    try:
        return state
    finally:
        call = 2


def within(state: Any, call: Any) -> Any:
    with open("/dev/null"):
        return state


def loop(state: Any, call: Any) -> Any:
    for item in (1, 2):
        if item == call:
            return state


def lines(state: Any, call: Any) -> Any:
    return {
        1: None,
        2: 4,
    }.get(call)  # fmt: skip


@functools.cache
def kept(state: Any, call: Any) -> Any:
    return nothing(state, call)


@functools.wraps(nothing)
def wrapped(*arguments: Any) -> Any:
    return nothing(*arguments)


@pytest.mark.parametrize(
    ("function", "state", "call", "forgotten"),
    [
        (nothing, 1, 1, True), (branch, 0, 1, True), (branch, 1, None, False), (bare, 1, 1, False),
        (bare, 0, 1, True), (either, 0, 1, False), (cases, None, 1, False), (cases, 3, 2, True),
        (cases, 3, 9, True), (guarded, None, 1, False), (within, None, 1, False), (loop, None, 2, False),
        (loop, 1, 7, True), (lines, 1, 1, False), (wrapped, 1, 1, True), (kept, 1, 1, False),
        (lambda state, call: None, 1, 1, False), (print, 1, 1, False),
    ],
)  # fmt: skip
def test_only_the_end_of_a_function_is_a_mistake(function: Callable, state, call, forgotten: bool) -> None:
    """`return None`, bare `return` and an expression that is None are meant."""
    assert function(state, call) is None
    assert forgets_return(function, state, call) is forgotten


class Forgets(Model):
    """A register; `write` has no `return`."""

    functions = ("write", "read")
    reads = ("read",)
    effects = ("write",)

    def step(self, state: Any, call: Call) -> Any:
        if call.function == "write":
            state = call.argument
        elif state == call.result:
            return state
        else:
            return IMPOSSIBLE


class Deletes(Forgets):
    """The state None is meant here."""

    def step(self, state: Any, call: Call) -> Any:
        if call.function == "write":
            return None
        return state if call.result == state else IMPOSSIBLE


def one_write_and_a_read() -> Trace:
    """write(1), then read() -> null."""
    return lab.trace((
            Operation(op_id=1, process=1, function=Function.WRITE, argument="1", invoke_time=0,
                      completion_time=1, outcome=Outcome.OK),
            Operation(op_id=2, process=1, function=Function.READ, result="null", invoke_time=2,
                      completion_time=3, outcome=Outcome.OK),
        ), trace_id=1)  # fmt: skip


def test_the_error_names_the_model_and_the_call() -> None:
    """Without it the state is None from then on, and a lost write is ok."""
    with pytest.raises(ModelError) as error:
        judge_trace(one_write_and_a_read(), Forgets())
    said = str(error.value)
    assert "without a `return`" in said
    assert "the model Forgets, write(1)" in said


def test_a_state_of_none_is_allowed() -> None:
    """A model says so with `return None`."""
    assert judge_trace(one_write_and_a_read(), Deletes()).decision.value == "ok"

"""What the recorder and the assertion refuse: one sentence of expected, seen and where, in Python's words,
before anything is recorded."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.history import History, assert_linearizable
from fencepost.traces.errors import FencepostError

LOOP: list[Any] = []
LOOP.append(LOOP)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def history() -> History:
    recorded = History()
    with recorded.operation("write", argument=1):
        pass
    with recorded.operation("read") as read:
        read.result = 1
    return recorded


@pytest.mark.parametrize(
    "value",
    [
        math.nan, math.inf, [1, {"x": -math.inf}], {1, 2}, frozenset("ab"), {1: 2}, {(1, 2): 3}, 2**70,
        -(2**64), 10**5_000, deep(65), deep(100_000), LOOP, object(), "\ud800",
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_json_would_change_is_refused(value: Any) -> None:
    """Rule: a NaN became a null, a set came in any order, 2**70 was read back as a float: each may convict
    the innocent, or let two values that differ be one."""
    recorded = History()
    with pytest.raises(FencepostError, match="expected a value that JSON can hold, saw "):
        recorded.operation("write", argument=value)
    with pytest.raises(FencepostError, match="the result of read"), recorded.operation("read") as read:
        read.result = value
    assert recorded.open == {} and recorded.operations == []


def test_what_json_can_hold_is_recorded() -> None:
    """Rule: the bounds themselves are inside."""
    recorded = History()
    for value in (0, -(2**63), 2**64 - 1, 1.5, "x", True, [1, [2.5]], {"a": (1,)}, deep(64)):
        with recorded.operation("write", argument=value):
            pass
    assert len(recorded.trace().operations) == 9


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: assert_linearizable(None, "register"), "expected a History, or a Trace of one, saw None"),
        (lambda: assert_linearizable(Path("h.jsonl"), "register"), "fencepost check FILE"),
        (lambda: assert_linearizable(history(), "register", timeout_s=-1), "number of seconds above 0"),
        (lambda: assert_linearizable(history(), "register", timeout_s=math.nan), "saw nan"),
        (lambda: assert_linearizable(history(), "register", timeout_s="1"), "assert_linearizable: timeout_s"),
        (lambda: assert_linearizable(history(), "register", minimum_overlap=-1), "whole number from 0 on"),
        (
            lambda: assert_linearizable(history(), "register", minimum_overlap="2"),
            "minimum_overlap: expected",
        ),
        (lambda: assert_linearizable(history(), "register", folder=3), "expected a path, saw 3"),
        (lambda: assert_linearizable(history(), "register", folder=Path("/dev/null/x")), "can be made"),
        (lambda: history().save(Path("/dev/null/x/h.jsonl")), "can be made"),
        (lambda: History(fail="TimeoutError"), "tuple of exception classes"),
        (lambda: History(fail=(ValueError("x"),)), "tuple of exception classes"),
        (lambda: History(clock=3), "History: clock: expected a function"),
        (lambda: History(clock=lambda: 1.5).operation("read").__enter__(), "whole nanoseconds"),
        (lambda: History().operation(None), "the function of a recorded operation"),
        (lambda: History().operation("read", fail=ValueError), "the operation read: fail"),
        (lambda: History().operation("read", process=[1]), "a number or a text, saw [1]"),
        (lambda: History().operation("read").fail(object()), "an error: its name, or an exception"),
        (lambda: History().recorded("read")(3), "a function or a coroutine function"),
        (lambda: History().recorded("read", key=3)(lambda x: x), "the name of a parameter"),
        (lambda: History().recorded("read", fail="x"), "the recorded function read: fail"),
        (lambda: History().clients(2, None), "clients: function: expected a function"),
        (lambda: History().clients(2, print, timeout_s=-1), "clients: timeout_s: expected a number"),
        (lambda: History().clients(2, print, timeout_s=None), "saw None"),
        (lambda: History().clients(10**5_000, print), "saw a value of type int"),
    ],
)
def test_mistakes_of_the_caller_are_one_sentence(call: Callable[[], Any], says: str) -> None:
    """Rule: the Python API speaks of its own arguments, and before it does anything; these were
    AttributeError, TypeError, BrokenBarrierError, or silently taken."""
    with pytest.raises(FencepostError) as caught:
        call()
    assert says in str(caught.value), str(caught.value)


def test_an_exception_is_an_error_by_its_name(tmp_path: Path) -> None:
    """Rule: `op.fail(error)` takes what was caught, and a path may be a text."""
    recorded = History()
    with recorded.operation("write", argument=1) as write:
        write.fail(ConnectionRefusedError("no"))
    recorded.save(str(tmp_path / "inner" / "h.jsonl"))
    assert recorded.operations[0].error == "ConnectionRefusedError" and any(tmp_path.rglob("h.jsonl"))

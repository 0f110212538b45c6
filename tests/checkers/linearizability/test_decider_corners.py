"""Corners of the deciders that random histories do not reach often: ties, and rows that stand in the trace in another order than they happened."""

import pytest

from fencepost.checkers.linearizability.deciders import decide
from fencepost.checkers.linearizability.history import split
from fencepost.checkers.models import model_named
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace


def op(
    op_id: int, function: str, invoke: int, complete: int, argument=None, result=None, key=None
) -> Operation:
    return Operation(
        op_id=op_id, process=op_id, function=Function(function), invoke_time=invoke, completion_time=complete, outcome=Outcome.OK,
        argument=argument, result=result, key=key,
    )  # fmt: skip


APPENDED = tuple(op(n, "append", 0, 10, f'"{text}"', key="k") for n, text in enumerate("abc"))
SENT = (op(0, "enqueue", 0, 1, "1"), op(1, "enqueue", 2, 3, "2"))
# what it is about, model, the operations, positions that convict
CASES = [
    ("dequeued at the same moment", "queue", (*SENT, op(2, "dequeue", 5, 10, None, "2"), op(3, "dequeue", 10, 12, None, "1")), set()),
    ("dequeued later, though enqueued before", "queue",
     (*SENT, op(2, "dequeue", 5, 10, None, "2"), op(3, "dequeue", 11, 12, None, "1")), {0, 1, 2, 3}),
    ("enqueued at the same moment", "queue",
     (op(0, "enqueue", 0, 2, "1"), SENT[1], op(2, "dequeue", 5, 10, None, "2"), op(3, "dequeue", 11, 12, None, "1")), set()),
    ("a text continued in two ways, shown by the get that shows most", "key-value",
     (*APPENDED, *(op(n, "get", 10 * n, 10 * n + 5, None, f'"{text}"', key="k") for n, text in ((3, "a"), (4, "ab"), (5, "ac")))), {4, 5}),
    ("a release that stands first in the trace", "mutex",
     (op(0, "release", 10, 11, '"p"'), op(1, "acquire", 0, 1, '"p"'), op(2, "acquire", 3, 4, '"q"'), op(3, "release", 5, 6, '"q"')), {0, 1, 2, 3}),
    ("and one that was over", "mutex",
     (op(0, "release", 2, 2, '"p"'), op(1, "acquire", 0, 1, '"p"'), op(2, "acquire", 3, 4, '"q"'), op(3, "release", 5, 6, '"q"')), set()),
]  # fmt: skip


@pytest.mark.parametrize(("_", "name", "operations", "convicting"), CASES)
def test_corners(_: str, name: str, operations: tuple[Operation, ...], convicting: set[int]) -> None:
    """Rule: what ends when another begins is concurrent with it, and the order of rows means nothing."""
    model = model_named(name)
    made = Trace(trace_id=0, plan="", seed=0, software_version="", operations=operations)
    (part,) = split(model, made).values()
    answer = decide(model, part)
    assert answer is not None and set(answer.convicting) == convicting


@pytest.mark.parametrize("function", ["add", "remove"])
def test_an_element_that_goes_twice_is_left_to_the_search(function: str) -> None:
    """Rule: of two adds, or two removes, of one element nobody knows which changed it, wherever they stand in the trace."""
    made = Trace(trace_id=0, plan="", seed=0, software_version="", operations=(op(0, function, 0, 1, "1"), op(1, function, 2, 3, "1")))  # fmt: skip
    model = model_named("set")
    assert [decide(model, part) for part in split(model, made).values()] == [None]

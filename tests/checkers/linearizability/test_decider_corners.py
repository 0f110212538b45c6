"""Corners of the deciders that random histories do not reach often: ties, and rows that stand in the trace in
another order than they happened."""

import pytest
from lin_histories import model_of

from fencepost.checkers.linearizability.deciders import decide
from fencepost.checkers.linearizability.history import split
from fencepost.checkers.models import model_named
from fencepost.traces.operations import Function, Operation
from tests.checkers import lab


def op(
    op_id: int, function: str, invoke: int, complete: int, argument=None, result=None, key=None
) -> Operation:
    return lab.operation(
        op_id, Function(function), invoke, complete, argument=argument, result=result, key=key
    )


APPENDED = tuple(op(n, "append", 0, 10, f'"{text}"', key="k") for n, text in enumerate("abc"))
SENT = (op(0, "enqueue", 0, 1, "1"), op(1, "enqueue", 2, 3, "2"))
# what it is about, model, the operations, positions that convict
CASES = [
    (
        "dequeued at the same moment",
        "queue",
        (*SENT, op(2, "dequeue", 5, 10, None, "2"), op(3, "dequeue", 10, 12, None, "1")),
        set(),
    ),
    (
        "dequeued later, though enqueued before",
        "queue",
        (*SENT, op(2, "dequeue", 5, 10, None, "2"), op(3, "dequeue", 11, 12, None, "1")),
        {0, 1, 2, 3},
    ),
    (
        "enqueued at the same moment",
        "queue",
        (
            op(0, "enqueue", 0, 2, "1"),
            SENT[1],
            op(2, "dequeue", 5, 10, None, "2"),
            op(3, "dequeue", 11, 12, None, "1"),
        ),
        set(),
    ),
    (
        "a text continued in two ways, shown by the get that shows most",
        "key-value",
        (
            *APPENDED,
            *(
                op(n, "get", 10 * n, 10 * n + 5, None, f'"{text}"', key="k")
                for n, text in ((3, "a"), (4, "ab"), (5, "ac"))
            ),
        ),
        {4, 5},
    ),
    (
        "a release that stands first in the trace",
        "mutex",
        (
            op(0, "release", 10, 11, '"p"'),
            op(1, "acquire", 0, 1, '"p"'),
            op(2, "acquire", 3, 4, '"q"'),
            op(3, "release", 5, 6, '"q"'),
        ),
        {0, 1, 2, 3},
    ),
    (
        "two dequeues of one value, the later one invoked first",
        "at-least-once-queue",
        (
            SENT[0],
            op(1, "dequeue", 9, 10, None, "1"),
            op(2, "dequeue", 3, 12, None, "1"),
            op(3, "dequeue", 4, 5, None, "null"),
        ),
        set(),
    ),
    (
        "nothing found while a value was never delivered",
        "at-least-once-queue",
        (
            SENT[0],
            op(1, "dequeue", 9, 10, None, "1"),
            op(2, "dequeue", 7, 12, None, "1"),
            op(3, "dequeue", 4, 5, None, "null"),
        ),
        {0, 2, 3},
    ),
    (
        "a value of which a later delivery was over too early",
        "at-least-once-queue",
        (op(0, "enqueue", 4, 9, "1"), op(1, "dequeue", 5, 6, None, "1"), op(2, "dequeue", 1, 3, None, "1")),
        {0, 2},
    ),
    (
        "any order",
        "unordered-queue",
        (*SENT, op(2, "dequeue", 5, 6, None, "2"), op(3, "dequeue", 7, 8, None, "1")),
        set(),
    ),
    (
        "a third holder when another releases",
        "semaphore",
        (
            op(0, "acquire", 0, 1, '"p"'),
            op(1, "acquire", 0, 1, '"q"'),
            op(2, "release", 5, 6, '"p"'),
            op(3, "acquire", 4, 5, '"r"'),
        ),
        set(),
    ),
    (
        "and a moment before",
        "semaphore",
        (
            op(0, "acquire", 0, 1, '"p"'),
            op(1, "acquire", 0, 1, '"q"'),
            op(2, "release", 5, 6, '"p"'),
            op(3, "acquire", 3, 4, '"r"'),
        ),
        {0, 1, 2, 3},
    ),
    (
        "a read that ends with an append which begins then",
        "append-only-list",
        (op(0, "append", 3, 4, "1"), op(1, "read", 2, 3, None, "[1]"), op(2, "read", 1, 3, None, "[]")),
        set(),
    ),
    (
        "and a moment later",
        "append-only-list",
        (op(0, "append", 3, 4, "1"), op(1, "read", 2, 3, None, "[1]"), op(2, "read", 5, 6, None, "[]")),
        {0, 1, 2},
    ),
    (
        "and one that was over",
        "mutex",
        (
            op(0, "release", 2, 2, '"p"'),
            op(1, "acquire", 0, 1, '"p"'),
            op(2, "acquire", 3, 4, '"q"'),
            op(3, "release", 5, 6, '"q"'),
        ),
        set(),
    ),
]


@pytest.mark.parametrize(("_", "name", "operations", "convicting"), CASES)
def test_corners(_: str, name: str, operations: tuple[Operation, ...], convicting: set[int]) -> None:
    """Rule: what ends when another begins is concurrent with it, and the order of rows means nothing."""
    model = model_of(name)
    made = lab.trace(operations)
    (part,) = split(model, made).values()
    answer = decide(model, part)
    assert answer is not None and set(answer.convicting) == convicting


@pytest.mark.parametrize("function", ["add", "remove"])
def test_an_element_that_goes_twice_is_left_to_the_search(function: str) -> None:
    """Rule: of two adds, or two removes, of one element nobody knows which changed it, wherever they stand in
    the trace."""
    made = lab.trace((op(0, function, 0, 1, "1"), op(1, function, 2, 3, "1")))
    model = model_named("set")
    assert [decide(model, part) for part in split(model, made).values()] == [None]

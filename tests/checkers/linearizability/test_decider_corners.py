"""Corners of the deciders that random histories do not reach often: ties, and rows that stand in the trace in
another order than they happened."""

import pytest
from lin_histories import model_of

from fencepost.checkers.linearizability.deciders import decide
from fencepost.checkers.linearizability.history import split
from fencepost.checkers.models import model_named
from tests.checkers import lab
from tests.checkers.models.models_lab import history

# what it is about, model, the operations, positions that convict
CASES = [
    (
        "dequeued at the same moment",
        "queue",
        "0-1 enqueue 1; 2-3 enqueue 2; 5-10 dequeue = 2; 10-12 dequeue = 1",
        set(),
    ),
    (
        "dequeued later, though enqueued before",
        "queue",
        "0-1 enqueue 1; 2-3 enqueue 2; 5-10 dequeue = 2; 11-12 dequeue = 1",
        {0, 1, 2, 3},
    ),
    (
        "enqueued at the same moment",
        "queue",
        "0-2 enqueue 1; 2-3 enqueue 2; 5-10 dequeue = 2; 11-12 dequeue = 1",
        set(),
    ),
    (
        "a text continued in two ways, shown by the get that shows most",
        "key-value",
        '0-10 append/k "a"; 0-10 append/k "b"; 0-10 append/k "c"; '
        '30-35 get/k = "a"; 40-45 get/k = "ab"; 50-55 get/k = "ac"',
        {4, 5},
    ),
    (
        "a release that stands first in the trace",
        "mutex",
        '10-11 release "p"; 0-1 acquire "p"; 3-4 acquire "q"; 5-6 release "q"',
        {0, 1, 2, 3},
    ),
    (
        "two dequeues of one value, the later one invoked first",
        "at-least-once-queue",
        "0-1 enqueue 1; 9-10 dequeue = 1; 3-12 dequeue = 1; 4-5 dequeue = null",
        set(),
    ),
    (
        "nothing found while a value was never delivered",
        "at-least-once-queue",
        "0-1 enqueue 1; 9-10 dequeue = 1; 7-12 dequeue = 1; 4-5 dequeue = null",
        {0, 2, 3},
    ),
    (
        "a value of which a later delivery was over too early",
        "at-least-once-queue",
        "4-9 enqueue 1; 5-6 dequeue = 1; 1-3 dequeue = 1",
        {0, 2},
    ),
    ("any order", "unordered-queue", "0-1 enqueue 1; 2-3 enqueue 2; 5-6 dequeue = 2; 7-8 dequeue = 1", set()),
    (
        "a third holder when another releases",
        "semaphore",
        '0-1 acquire "p"; 0-1 acquire "q"; 5-6 release "p"; 4-5 acquire "r"',
        set(),
    ),
    (
        "and a moment before",
        "semaphore",
        '0-1 acquire "p"; 0-1 acquire "q"; 5-6 release "p"; 3-4 acquire "r"',
        {0, 1, 2, 3},
    ),
    (
        "a read that ends with an append which begins then",
        "append-only-list",
        "3-4 append 1; 2-3 read = [1]; 1-3 read = []",
        set(),
    ),
    ("and a moment later", "append-only-list", "3-4 append 1; 2-3 read = [1]; 5-6 read = []", {0, 1, 2}),
    (
        "and one that was over",
        "mutex",
        '2-2 release "p"; 0-1 acquire "p"; 3-4 acquire "q"; 5-6 release "q"',
        set(),
    ),
]


@pytest.mark.parametrize(("_", "name", "words", "convicting"), CASES)
def test_corners(_: str, name: str, words: str, convicting: set[int]) -> None:
    """Rule: what ends when another begins is concurrent with it, and the order of rows means nothing."""
    model = model_of(name)
    made = lab.trace(history(words))
    (part,) = split(model, made).values()
    answer = decide(model, part)
    assert answer is not None and set(answer.convicting) == convicting


@pytest.mark.parametrize("function", ["add", "remove"])
def test_an_element_that_goes_twice_is_left_to_the_search(function: str) -> None:
    """Rule: of two adds, or two removes, of one element nobody knows which changed it, wherever they stand in
    the trace."""
    made = lab.trace(history(f"0-1 {function} 1; 2-3 {function} 1"))
    model = model_named("set")
    assert [decide(model, part) for part in split(model, made).values()] == [None]

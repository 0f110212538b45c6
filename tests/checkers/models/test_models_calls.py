"""How models read operations, foresee what cannot come, and speak of calls and states."""

import pytest
from attrs import evolve
from models_lab import operation

from fencepost.checkers.models import IMPOSSIBLE, UNHEARD, Call, model_named
from fencepost.checkers.models.base import shown
from fencepost.checkers.models.registers import UNSEEN
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation, Position, Record


def records(*rows: tuple[int, int], topic: str = "t", partition: int = 0) -> tuple[Record, ...]:
    return tuple(Record(topic=topic, partition=partition, offset=o, value=v) for o, v in rows)


T0 = {"topic": "t", "partition": 3}
TWO = (*records((0, 1)), *records((0, 2), partition=1))
# model, operation, its call
CALLS = [
    ("register", operation("read = 3"), Call(function="read", result=3)),
    (
        "register",
        operation('lost write [1, {"b": [2], "a": 1}]'),
        Call(function="write", argument=(1, (("a", 1), ("b", (2,))))),
    ),
    ("register", operation("write 1 = 1"), Call(function="write", argument=1)),
    ("register", operation("lost read"), None),
    ("cas-register", operation("cas [1, 2] = [1, 2]"), Call(function="cas", argument=(1, 2), result=True)),
    ("cas-register", operation("cas [1, 2] = false"), Call(function="cas", argument=(1, 2), result=False)),
    ("cas-register", operation("lost cas [1, 2]"), Call(function="cas", argument=(1, 2), result=UNHEARD)),
    ("key-value", operation('lost append/k "x"'), Call(function="append", key="k", argument="x")),
    ("key-value", operation("get/k = null"), Call(function="get", key="k")),
    ("set", operation('add 1 = "yes"'), Call(function="add", argument=1)),
    ("set", operation("remove 1 = false"), Call(function="remove", argument=1, result=False)),
    ("set", operation("lost add 1"), Call(function="add", argument=1)),
    ("set", operation("read = [2, 1]"), Call(function="read", result=frozenset({1, 2}))),
    ("set", operation("read = [1, 1]"), Call(function="read", result=(1, 1))),
    ("queue", operation("lost dequeue"), Call(function="dequeue", result=UNHEARD)),
    ("mutex", operation("acquire#4"), Call(function="acquire", argument=4)),
    ("mutex", operation('acquire#4 "p"'), Call(function="acquire", argument="p")),
    ("fenced-lock", operation("acquire#4 = 5"), Call(function="acquire", argument=4, result=5)),
    ("fenced-lock", operation("lost acquire#4"), Call(function="acquire", argument=4, result=UNHEARD)),
    ("counter", operation("add 1"), Call(function="add", argument=1)),
    (
        "log",
        operation("append", offset=2, records=records((-1, 7), (-1, 8)), **T0),
        Call(function="append", key="t-3", argument=(7, 8), result=2),
    ),
    ("log", operation("append 7 = 2"), Call(function="append", key="-0", argument=(7,), result=2)),
    (
        "log",
        operation("lost append", offset=2, records=records((-1, 7)), **T0),
        Call(function="append", key="t-3", argument=(7,), result=UNHEARD),
    ),
    (
        "log",
        operation("append", records=records((-1, 7)), **T0),
        Call(function="append", key="t-3", argument=(7,), result=UNHEARD),
    ),
    (
        "log",
        operation("poll", offset=4, end_offset=9, strong=True, records=records((4, 1), (5, 2)), **T0),
        Call(function="poll", key="t-3", argument=4, result=(9, (4, 1), (5, 2))),
    ),
    (
        "log",
        operation("poll", offset=4, end_offset=9, records=records((4, 1)), **T0),
        Call(function="poll", key="t-3", argument=4, result=(None, (4, 1))),
    ),
    ("log", operation("lost poll", **T0), None),
    (
        "log",
        operation("list_offsets", offset=4, strong=True, **T0),
        Call(function="list_offsets", key="t-3", result=4),
    ),
    (
        "log",
        operation("list_offsets", end_offset=5, strong=True, **T0),
        Call(function="list_offsets", key="t-3", result=5),
    ),
    ("log", operation("list_offsets", offset=4, **T0), None),
]


@pytest.mark.parametrize(("name", "operation", "call"), CALLS)
def test_what_an_operation_is_to_a_model(name: str, operation: Operation, call: Call | None) -> None:
    """Rule: what was recorded becomes this call; nothing heard of a read says nothing, and of anything else
    leaves its result open."""
    assert model_named(name).call(operation) == call


# model, operation, what the error must say
REFUSED = [
    ("register", operation("write 1 = 2"), "no result of write for the model register"),
    ("cas-register", operation("cas [1, 2, 3] = true"), r"\[old, new\] as argument of cas"),
    ("cas-register", operation('cas [1, 2] = "yes"'), "true or false as result of cas"),
    ("key-value", operation('get = "x"'), "a key of get"),
    ("key-value", operation("put/a 4"), "a text as argument of put"),
    ("key-value", operation("lost append/a 4"), "a text as argument of append"),
    ("key-value", operation("get/a = 4"), "a text as result of get"),
    ("set", operation("read = 4"), "a list as result of read"),
    ("set", operation("contains 4"), "true or false as result of contains"),
    ("queue", operation("enqueue null"), "other than null"),
    ("counter", operation('add "1"'), "argument of add"),
    ("counter", operation("read = true"), "result of read"),
    ("fenced-lock", operation('acquire "p"'), "token"),
    ("log", operation('append 7 = "zero"'), "base offset"),
    ("log", operation("list_offsets", strong=True), "end"),
    ("log", operation("poll", records=TWO), "one partition"),
    ("log", operation("poll", positions=(Position(topic="t", partition=0, offset=0),)), "one partition"),
    ("cas-register", operation("cas 3 = true"), r"\[old, new\] as argument of cas"),
    ("map", operation("get = 1"), "a key of get"),
    ("map", operation("cas/k 3 = true"), r"\[old, new\] as argument of cas"),
    ("map", operation('cas/k [1, 2] = "yes"'), "true or false as result of cas"),
    ("append-only-list", operation('read = {"a": 1}'), "a list as result of read"),
    ("append-only-list", operation("read"), "a list as result of read"),
    ("unordered-queue", operation("enqueue null"), "other than null"),
    ("at-least-once-queue", operation("remove null"), "other than null"),
]


@pytest.mark.parametrize(("name", "operation", "words"), REFUSED)
def test_what_is_refused_is_told(name: str, operation: Operation, words: str) -> None:
    """Rule: an operation that makes no sense is refused by its number and the name of what is wrong with it,
    never a wrong verdict."""
    with pytest.raises(TraceError, match=f"operation 0: .*{words}"):
        model_named(name).call(operation)


def test_an_argument_that_is_no_json_is_told() -> None:
    """Rule: the column that cannot be read is named."""
    for column in ("argument", "result"):
        with pytest.raises(TraceError, match=f"{column} of operation 0"):
            model_named("register").call(evolve(operation("write"), **{column: "{"}))


def log_call(function: str, argument=None, result=None) -> Call:
    return Call(function=function, key="t-0", argument=argument, result=result)


LOG = (10, 20, 30)
# call, the log after it
STEPS = [
    (log_call("append", (40,), 3), (10, 20, 30, 40)),
    (log_call("append", (40, 50), UNHEARD), (10, 20, 30, 40, 50)),
    (log_call("append", (40,), 2), IMPOSSIBLE),
    (log_call("append", (40,), 4), IMPOSSIBLE),
    (log_call("list_offsets", None, 3), LOG),
    (log_call("list_offsets", None, 2), IMPOSSIBLE),
    (log_call("poll", 0, (None,)), LOG),
    (log_call("poll", 3, (3,)), LOG),
    (log_call("poll", 3, (4,)), IMPOSSIBLE),
    (log_call("poll", 0, (3, (0, 10), (1, 20))), LOG),
    (log_call("poll", 1, (None, (1, 20), (2, 30))), LOG),
    (log_call("poll", None, (None, (2, 30))), LOG),
    (log_call("poll", 0, (None, (1, 20))), IMPOSSIBLE),
    (log_call("poll", None, (None, (0, 10), (2, 30))), IMPOSSIBLE),
    (log_call("poll", 1, (None, (1, 30))), IMPOSSIBLE),
    (log_call("poll", 3, (None, (3, 40))), IMPOSSIBLE),
    (log_call("poll", -1, (None, (-1, 30))), IMPOSSIBLE),
]


@pytest.mark.parametrize(("call", "after"), STEPS)
def test_what_a_log_does(call: Call, after) -> None:
    """Rule: appends stand at the end, reads show what stands there without a gap."""
    assert model_named("log").step(LOG, call) == after


# model, state, observer, whether calls that reset nothing may lead there
REACHES = [
    ("log", LOG, log_call("list_offsets", None, 3), True),
    ("log", LOG, log_call("list_offsets", None, 4), True),
    ("log", LOG, log_call("list_offsets", None, 2), False),
    ("log", LOG, log_call("poll", 0, (3, (0, 10))), True),
    ("log", LOG, log_call("poll", 0, (2, (0, 10))), False),
    ("log", LOG, log_call("poll", 0, (None, (0, 20))), False),
    ("log", LOG, log_call("poll", 2, (None, (2, 30), (3, 40))), True),
    ("counter", 3, Call(function="read", result=3), True),
    ("counter", 3, Call(function="read", result=2), False),
    ("set", frozenset({1}), Call(function="read", result=frozenset({1, 2})), True),
    ("set", frozenset({1}), Call(function="read", result=frozenset({2})), False),
    ("set", frozenset({1}), Call(function="read", result=(1, 1)), False),
    ("set", frozenset({1}), Call(function="contains", argument=1, result=True), True),
    ("set", frozenset({1}), Call(function="contains", argument=1, result=False), False),
    ("set", frozenset({1}), Call(function="contains", argument=2, result=False), True),
    ("key-value", "xy", Call(function="get", result="xyz"), True),
    ("key-value", "xy", Call(function="get", result="x"), False),
    ("key-value", "xy", Call(function="get", result=None), False),
    ("key-value", None, Call(function="get", result="x"), True),
    ("key-value", UNSEEN, Call(function="get", result="x"), False),
    ("register", 1, Call(function="read", result=2), True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "state", "call", "possible"), REACHES)
def test_what_may_still_come(name: str, state, call: Call, possible: bool) -> None:
    """Rule: an observer is given up exactly where nothing but a reset could bring its state."""
    assert model_named(name).reaches(state, call) is possible


# model, call, observes, resets, overwrites
KINDS = [
    ("register", Call(function="read", result=1), (True, True, False)),
    ("register", Call(function="write", argument=1), (False, True, False)),
    ("cas-register", Call(function="cas", argument=(1, 2), result=False), (True, True, False)),
    ("cas-register", Call(function="cas", argument=(1, 2), result=True), (False, True, False)),
    ("key-value", Call(function="get", result=""), (True, False, False)),
    ("key-value", Call(function="append", argument="x"), (False, False, False)),
    ("key-value", Call(function="put", argument="x"), (False, True, True)),
    ("set", Call(function="add", argument=1), (False, False, False)),
    ("set", Call(function="remove", argument=1), (False, True, False)),
    ("set", Call(function="contains", argument=1, result=True), (True, False, False)),
    ("queue", Call(function="dequeue", result=None), (True, True, False)),
    ("queue", Call(function="dequeue", result=1), (False, True, False)),
    ("queue", Call(function="enqueue", argument=1), (False, True, False)),
    ("mutex", Call(function="acquire", argument=1), (False, True, False)),
    ("counter", Call(function="add", argument=-1), (False, True, False)),
    ("counter", Call(function="add", argument=0), (False, False, False)),
    ("counter", Call(function="add", argument=-2), (False, True, False)),
    ("counter", Call(function="add", argument=1), (False, False, False)),
    ("log", log_call("append", (1,), 0), (False, False, False)),
    ("log", log_call("poll", 0, (None,)), (True, False, False)),
    ("log", log_call("list_offsets", None, 0), (True, False, False)),
]


@pytest.mark.parametrize(("name", "call", "kind"), KINDS)
def test_what_kind_a_call_is(name: str, call: Call, kind: tuple[bool, bool, bool]) -> None:
    """Rule: the search relies on what observes, what may undo, and what leads to one state from
    everywhere."""
    model = model_named(name)
    assert (model.observes(call), model.resets(call), model.overwrites(call)) == kind


def test_what_calls_cannot_tell_apart() -> None:
    """Rule: a text with which no shown text begins is like any other such; behind a value that nobody
    dequeues nothing moves."""
    gets = [Call(function="get", result=text) for text in ("abc", "b", None)]
    seen = model_named("key-value").lens([*gets, Call(function="put", argument="zz")])
    assert [seen(text) for text in ("", "a", "ab", "abc", "abcd", "b", "c", None, UNSEEN)] == [
        *("", "a", "ab", "abc", UNSEEN, "b", UNSEEN, None, UNSEEN)
    ]
    queue = model_named("queue")
    told = [
        Call(function="dequeue", result=1),
        Call(function="dequeue", result=2),
        Call(function="enqueue", argument=9),
    ]
    moved = queue.lens(told)
    assert [moved(state) for state in ((), (1, 2), (1, 9, 2), (9, 9, 1), (2, 1, 9, 9))] == [
        *((), (1, 2), (1, 9), (9,), (2, 1, 9))
    ]
    assert queue.lens([*told, Call(function="dequeue", result=UNHEARD)]) is None
    assert model_named("register").lens(gets) is None


def test_texts_under_keys() -> None:
    """Rule: a get shows the whole text; behind a text that no get shows only a put helps."""
    model = model_named("key-value")
    calls = [
        Call(function=function, argument=argument, result=result)
        for function, argument, result in (
            ("get", None, "x"),
            ("get", None, ""),
            ("put", "p", None),
            ("append", "a", None),
        )
    ]
    for state, after in (
        ("x", ["x", IMPOSSIBLE, "p", "xa"]),
        (UNSEEN, [IMPOSSIBLE, IMPOSSIBLE, "p", UNSEEN]),
        (None, [IMPOSSIBLE, IMPOSSIBLE, "p", "a"]),
    ):
        assert [model.step(state, call) for call in calls] == after
    assert model.step(None, Call(function="get")) is None
    assert model.init() == "" and model_named("counter").init() == 0


def test_parts() -> None:
    """Rule: keys, elements and partitions are parts of their own."""
    for name, call, part in (
        ("register", Call(function="read"), ""),
        ("register", Call(function="read", key="k"), "k"),
        ("set", Call(function="add", argument=1), "1"),
        ("set", Call(function="add", argument="1", key="k"), "k '1'"),
        ("set", Call(function="read", result=()), None),
        ("log", Call(function="append", key="t-0"), "t-0"),
    ):
        assert model_named(name).partition(call) == part


# model, call, in words
WORDS = [
    ("register", Call(function="write", argument=1), "write(1)"),
    ("register", Call(function="read"), "read() -> null"),
    ("register", Call(function="read", result=(1, (2,))), "read() -> [1 [2]]"),
    ("key-value", Call(function="put", key="k", argument="x"), 'put(k, "x")'),
    ("key-value", Call(function="get", key="k", result="x"), 'get(k) -> "x"'),
    ("set", Call(function="read", result=frozenset({2, 1})), "read() -> {1 2}"),
    ("queue", Call(function="dequeue", result=UNHEARD), "dequeue() -> ?"),
    ("fenced-lock", Call(function="release", argument="p", result=4), 'release("p") -> 4'),
]


@pytest.mark.parametrize(("name", "call", "words"), WORDS)
def test_calls_in_words(name: str, call: Call, words: str) -> None:
    """Rule: a call reads as it was made, its answer only where it has one."""
    assert model_named(name).describe(call) == words


def test_values_in_words() -> None:
    """Rule: states are shown as people write them, foreign ones as they show themselves."""
    assert model_named("key-value").describe_state(UNSEEN) == "a text that no get shows"
    assert model_named("key-value").describe_state("x") == '"x"'
    assert shown(object) == str(object)
    assert [shown(value) for value in ([1], {1}, None, True)] == ["[1]", "{1}", "null", "true"]


def test_states_are_alike_when_they_are_equal() -> None:
    """Rule: a model that says nothing else compares states by ==."""
    model = model_named("register")
    assert model.equal((1,), (1,)) and not model.equal(1, 2)

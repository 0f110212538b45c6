"""What each sequential model allows, step by step, and how it reads operations."""

import json
import math
from typing import Any

import pytest
from attrs import evolve

from fencepost.checkers.models import IMPOSSIBLE, MODELS, Model, model_named
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.operations import Function, Operation, Outcome

UNSAID = object()
LISTS = ("set", "queue", "unordered-queue", "at-least-once-queue", "append-only-list", "log")


def asked(
    function: str, argument=UNSAID, result=UNSAID, *, process=0, outcome=Outcome.OK, key=None
) -> Operation:
    told = {} if result is UNSAID else {"result": json.dumps(result)}
    said = {} if argument is UNSAID else {"argument": json.dumps(argument)}
    return Operation(
        op_id=0,
        process=process,
        function=Function(function),
        invoke_time=0,
        completion_time=1,
        outcome=outcome,
        key=key,
        **told,
        **said,
    )


def allowed(model: Model, *operations: Operation) -> bool:
    """Whether the model allows these, one after another."""
    state = model.init()
    for operation in operations:
        call = model.call(operation)
        if call is not None:
            state = model.step(state, call)
            if state is IMPOSSIBLE:
                return False
    return True


def lost(function: str, argument=UNSAID, **more) -> Operation:
    return asked(function, argument, outcome=Outcome.UNKNOWN, **more)


PARAMETERS = {"semaphore": {"permits": 2}, "lease": {"duration_ms": 10e-6}}
"""Of the models that need some. A lease lasts 10 ns."""


def made(name: str) -> Model:
    return model_named(name, PARAMETERS.get(name))


def at(begin: int, end: int, function: str, client: str, *, lost: bool = False) -> Operation:
    """Of a client, at a time in ns."""
    outcome = Outcome.UNKNOWN if lost else Outcome.OK
    return evolve(asked(function, client, outcome=outcome), invoke_time=begin, completion_time=end)


LEGAL = {
    "register": [[asked("read", result=None), asked("write", 1), asked("read", result=1)], [lost("read")]],
    "cas-register": [
        [asked("write", 1), asked("cas", [1, 2], True), asked("read", result=2), asked("cas", [1, 3], False)],
        [asked("write", 1), asked("cas", [1, 2]), lost("cas", [2, 3]), asked("read", result=3)],
    ],
    "key-value": [
        [asked("get", result="", key="a"), asked("append", "x", key="a"), asked("get", result="x", key="a")],
        [asked("put", "y", key="a"), asked("append", "x", key="a"), asked("get", result="yx", key="a")],
    ],
    "set": [
        [
            asked("add", 1, True),
            asked("add", 1, False),
            asked("contains", 1, True),
            asked("read", result=[1]),
        ],
        [
            asked("add", 2),
            asked("remove", 2, True),
            asked("read", result=[]),
            lost("add", 3),
            asked("read", result=[3]),
        ],
    ],
    "queue": [
        [asked("dequeue", result=None), asked("enqueue", 1), asked("enqueue", 2), asked("dequeue", result=1)],
        [asked("enqueue", 1), asked("enqueue", 2), lost("dequeue"), asked("dequeue", result=2)],
    ],
    "mutex": [
        [asked("acquire", process=1), asked("release", process=1), asked("acquire", process=2)],
        [asked("acquire", "p"), lost("release", "p"), asked("acquire", "q")],
    ],
    "fenced-lock": [
        [asked("acquire", "p", 3), asked("release", "p"), asked("acquire", "q", 9)],
        [lost("acquire", "p"), lost("release", "p"), asked("acquire", "q", 2)],
    ],
    "counter": [
        [asked("add", 2), asked("add", -1), asked("read", result=1), lost("add", 4), asked("read", result=5)]
    ],
    "log": [
        [asked("append", 7, 0), asked("append", 8, 1), lost("append", 9), asked("append", 7, 3)],
        [asked("append", 7)],
    ],
    "map": [
        [
            asked("get", result=None, key="k"),
            asked("put", {"a": [1.0, None]}, key="k"),
            asked("get", result={"a": [1, None]}, key="k"),
        ],
        [
            asked("delete", result=False, key="k"),
            asked("put", 3, key="k"),
            asked("delete", result=True, key="k"),
            asked("get", result=None, key="k"),
        ],
        [
            asked("cas", [None, 1], True, key="k"),
            asked("cas", [2, 3], False, key="k"),
            asked("cas", [1, None], True, key="k"),
            asked("get", key="k"),
        ],
        [asked("put", 1, key="k"), lost("delete", key="k"), asked("get", result=None, key="k")],
        [
            asked("put", True, key="k"),
            asked("cas", [1, 2], False, key="k"),
            asked("delete", result="OK", key="k"),
        ],
        [
            asked("put", {"b": 1, "a": 2}, key="k"),
            asked("get", result={"a": 2, "b": 1}, key="k"),
            lost("get", key="k"),
        ],
    ],
    "append-only-list": [
        [asked("read", result=[]), asked("append", 1), asked("append", [2]), asked("read", result=[1, [2]])],
        [lost("append", 1), asked("append", 1), asked("read", result=[1, 1]), lost("read")],
    ],
    "unordered-queue": [
        [
            asked("dequeue", result=None),
            asked("enqueue", 1),
            asked("enqueue", 2),
            asked("dequeue", result=2),
            asked("dequeue", result=1),
        ],
        [
            asked("enqueue", 1),
            asked("enqueue", 1),
            asked("dequeue", result=1),
            asked("dequeue", result=1),
            asked("dequeue", result=None),
        ],
        [
            asked("enqueue", 1),
            asked("enqueue", 2),
            lost("dequeue"),
            asked("dequeue", result=1),
            asked("dequeue", result=None),
        ],
    ],
    "at-least-once-queue": [
        [
            asked("enqueue", 1),
            asked("dequeue", result=1),
            asked("dequeue", result=1),
            asked("dequeue", result=None),
        ],
        [
            asked("enqueue", 1),
            asked("dequeue", result=1),
            asked("remove", 1),
            asked("remove", 1),
            asked("dequeue", result=None),
        ],
        [
            asked("enqueue", 1),
            asked("enqueue", 1),
            asked("dequeue", result=1),
            asked("remove", 1),
            asked("dequeue", result=1),
        ],
        [
            asked("enqueue", 1),
            lost("dequeue"),
            asked("dequeue", result=None),
            asked("remove", 1),
            asked("remove", 9),
        ],
        [
            asked("enqueue", 1),
            asked("enqueue", 2),
            lost("dequeue"),
            asked("dequeue", result=2),
            asked("dequeue", result=None),
        ],
    ],
    "semaphore": [
        [asked("acquire", "p"), asked("acquire", "q"), asked("release", "p"), asked("acquire", "r")],
        [
            asked("acquire", process=1),
            asked("acquire", process=1),
            lost("release", process=1),
            asked("acquire", "r"),
        ],
    ],
    "lease": [
        [at(0, 1, "acquire", "p"), at(10, 11, "acquire", "q")],
        [at(0, 1, "acquire", "p"), at(2, 3, "release", "p"), at(4, 5, "acquire", "q")],
        [
            at(0, 1, "acquire", "p"),
            at(3, 4, "acquire", "p"),
            at(5, 6, "renew", "p"),
            at(14, 15, "acquire", "q"),
        ],
        [at(0, 1, "acquire", "p"), at(30, 31, "renew", "p"), at(2, 40, "acquire", "q")],
        [
            at(0, 1, "acquire", "p"),
            at(11, 12, "acquire", "q"),
            at(13, 14, "release", "p"),
            at(15, 16, "renew", "q"),
        ],
        [at(0, 1, "acquire", "p", lost=True), at(2, 9, "acquire", "q", lost=True)],
    ],
}
ILLEGAL = {
    "register": [[asked("read", result=1)], [asked("write", 1), asked("read", result=None)]],
    "cas-register": [
        [asked("write", 1), asked("cas", [2, 3], True)],
        [asked("write", 1), asked("cas", [1, 3], False)],
        [asked("write", 1), lost("cas", [2, 3])],
    ],
    "key-value": [
        [asked("append", "x", key="a"), asked("append", "y", key="a"), asked("get", result="yx", key="a")]
    ],
    "set": [
        [asked("add", 1, False)],
        [asked("remove", 1, True)],
        [asked("contains", 1, True)],
        [asked("add", 1), asked("read", result=[1, 1])],
        [asked("add", 1), asked("read", result=[])],
    ],
    "queue": [
        [asked("enqueue", 1), asked("enqueue", 2), asked("dequeue", result=2)],
        [asked("enqueue", 1), asked("dequeue", result=None)],
        [asked("dequeue", result=1)],
        [lost("dequeue")],
    ],
    "mutex": [
        [asked("acquire", process=1), asked("acquire", process=1)],
        [asked("release", process=1)],
        [asked("acquire", process=1), asked("release", process=2)],
    ],
    "fenced-lock": [
        [asked("acquire", "p", 3), asked("release", "p"), asked("acquire", "q", 3)],
        [asked("acquire", "p", 3), asked("acquire", "q", 4)],
        [lost("acquire", "p"), lost("release", "p"), asked("acquire", "q", 1)],
    ],
    "counter": [[asked("add", 2), asked("read", result=1)]],
    "log": [[asked("append", 7, 1)], [asked("append", 7, 0), asked("append", 8, 0)]],
    "map": [
        [asked("put", True, key="k"), asked("get", result=1, key="k")],
        [asked("put", {"a": 1}, key="k"), asked("get", result=[["a", 1]], key="k")],
        [asked("put", [], key="k"), asked("get", result={}, key="k")],
        [asked("put", 1, key="k"), asked("delete", key="k"), asked("get", result=1, key="k")],
        [asked("delete", result=True, key="k")],
        [asked("put", 1, key="k"), asked("delete", result=False, key="k")],
        [asked("put", 1, key="k"), asked("cas", [None, 2], True, key="k")],
        [asked("put", 1, key="k"), asked("cas", [1, 2], False, key="k")],
        [asked("put", 1, key="k"), lost("cas", [2, 3], key="k")],
    ],
    "append-only-list": [
        [asked("append", 1), asked("append", 2), asked("read", result=[2, 1])],
        [asked("append", 1), asked("read", result=[])],
        [asked("append", 1), asked("read", result=[1, 1])],
    ],
    "unordered-queue": [
        [asked("enqueue", 1), asked("dequeue", result=1), asked("dequeue", result=1)],
        [asked("enqueue", 1), asked("dequeue", result=None)],
        [
            asked("enqueue", 1),
            asked("enqueue", 2),
            lost("dequeue"),
            asked("dequeue", result=1),
            asked("dequeue", result=2),
        ],
        [asked("enqueue", 1), lost("dequeue"), asked("dequeue", result=None), asked("dequeue", result=1)],
        [lost("dequeue")],
    ],
    "at-least-once-queue": [
        [asked("dequeue", result=1), asked("enqueue", 1)],
        [asked("enqueue", 1), asked("dequeue", result=None)],
        [asked("enqueue", 1), asked("remove", 1)],
        [asked("enqueue", 1), asked("dequeue", result=1), asked("remove", 1), asked("dequeue", result=1)],
        [asked("enqueue", 1), asked("enqueue", 1), asked("dequeue", result=1), asked("dequeue", result=None)],
        [asked("enqueue", 1), asked("enqueue", 2), lost("dequeue"), asked("dequeue", result=None)],
    ],
    "semaphore": [
        [asked("acquire", "p"), asked("acquire", "q"), asked("acquire", "r")],
        [asked("acquire", "p"), asked("acquire", "p"), asked("acquire", "p")],
        [asked("acquire", "p"), asked("release", "q")],
        [asked("release", "p")],
    ],
    "lease": [
        [at(0, 1, "acquire", "p"), at(2, 9, "acquire", "q")],
        [at(0, 1, "acquire", "p"), at(5, 6, "renew", "p"), at(8, 14, "acquire", "q")],
        [at(0, 1, "acquire", "p"), at(5, 6, "acquire", "p"), at(8, 14, "acquire", "q")],
        [at(0, 1, "acquire", "p"), at(2, 3, "release", "q"), at(4, 5, "acquire", "q")],
        [at(0, 1, "acquire", "p"), at(11, 12, "acquire", "q"), at(13, 14, "renew", "p")],
        [at(0, 1, "renew", "p")],
        [at(9, 20, "acquire", "p"), at(0, 18, "acquire", "q")],
    ],
}


def _cases(table):
    return [(name, sequence) for name, sequences in table.items() for sequence in sequences]


@pytest.mark.parametrize(("name", "sequence"), _cases(LEGAL))
def test_what_a_model_allows(name: str, sequence) -> None:
    """Each sequence is one that a correct system of this kind could show."""
    assert allowed(made(name), *sequence)


@pytest.mark.parametrize(("name", "sequence"), _cases(ILLEGAL))
def test_what_a_model_forbids(name: str, sequence) -> None:
    """Each sequence is one that it could not."""
    assert not allowed(made(name), *sequence)


def test_every_model_is_tested() -> None:
    """No model is without both kinds of examples."""
    assert set(LEGAL) == set(ILLEGAL) == set(MODELS)


@pytest.mark.parametrize(("name", "sequence"), [case for table in (LEGAL, ILLEGAL) for case in _cases(table)])
def test_observers_change_nothing(name: str, sequence) -> None:
    """What a model calls an observer leaves every state as it is (the engine relies on it)."""
    model = made(name)
    calls = [call for operation in sequence if (call := model.call(operation)) is not None]
    states = [model.init()]
    for call in calls:
        after = model.step(states[-1], call)
        if after is not IMPOSSIBLE:
            states.append(after)
    for call in calls:
        if model.observes(call):
            assert all(model.step(state, call) in (state, IMPOSSIBLE) for state in states)


REFUSED = [
    ("cas-register", asked("cas", 3, True)),
    ("cas-register", asked("cas", [1, 2], "yes")),
    ("register", asked("write", 1, 2)),
    ("key-value", asked("get", result="x")),
    ("key-value", asked("put", 4, key="a")),
    ("set", asked("read", result=4)),
    ("set", asked("contains", 4)),
    ("queue", asked("enqueue", None)),
    ("counter", asked("add", "1")),
    ("counter", asked("read", result=True)),
    ("fenced-lock", asked("acquire", "p")),
    ("log", asked("append", 7, "zero")),
    ("map", asked("get", result=1)),
    ("map", asked("cas", 3, True, key="k")),
    ("map", asked("cas", [1, 2], "yes", key="k")),
    ("append-only-list", asked("read", result={"a": 1})),
    ("append-only-list", asked("read")),
    ("unordered-queue", asked("enqueue", None)),
    ("at-least-once-queue", asked("remove", None)),
]


@pytest.mark.parametrize(("name", "operation"), REFUSED)
def test_what_makes_no_sense_is_refused(name: str, operation: Operation) -> None:
    """An argument or result of the wrong kind is a TraceError that names the operation, never a wrong
    verdict."""
    with pytest.raises(TraceError, match="operation 0"):
        model_named(name).call(operation)


def test_initial_values() -> None:
    """A model starts from the value that it is given."""
    assert allowed(model_named("register", {"initial": 4}), asked("read", result=4))
    assert allowed(model_named("set", {"initial": [1, 2]}), asked("read", result=[2, 1]))
    assert allowed(model_named("queue", {"initial": [5]}), asked("dequeue", result=5))
    assert allowed(model_named("fenced-lock", {"initial": 7}), asked("acquire", "p", 8))
    assert not allowed(model_named("fenced-lock", {"initial": 7}), asked("acquire", "p", 7))


def test_a_set_is_split_only_without_reads() -> None:
    """Elements are independent until a read looks at all of them."""
    model = model_named("set")
    parts = [
        model.partition(model.call(operation))
        for operation in (asked("add", 1), asked("add", 2), asked("read", result=[]))
    ]
    assert parts[0] != parts[1] and parts[2] is None


class Mine(Model):
    """A model outside the package."""

    functions = frozenset({"read"})

    def step(self, state, call):
        return state


@pytest.mark.parametrize("name", ["nope", "no.such.module:Model", "json:JSONDecoder", "json:Nothing"])
def test_unknown_models_are_told(name: str) -> None:
    """A name that is no model is one sentence, which speaks as whoever asked does."""
    with pytest.raises(FencepostError, match=r"^the model"):
        model_named(name)
    with pytest.raises(FencepostError, match=r"^--model"):
        model_named(name, where="--model")


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("semaphore", {}, r"the model semaphore: expected its parameters \(permits\), saw .*missing"),
        ("semaphore", {"permits": 0}, "expected a number of permits from 1, saw 0"),
        ("semaphore", {"permits": True}, "expected a number of permits from 1, saw True"),
        ("lease", {"duration_ms": 0}, "expected a duration above 0"),
        ("lease", {"duration_ms": "5"}, "expected a duration above 0"),
        ("register", {"inital": 1}, r"expected its parameters \(initial\), saw .*inital"),
    ],
)
def test_parameters_that_do_not_fit_are_told(name: str, parameters: dict[str, object], says: str) -> None:
    """A parameter that is missing, unknown or out of range is one sentence that names the model."""
    with pytest.raises(FencepostError, match=says):
        model_named(name, parameters)


def test_a_model_of_yours(monkeypatch) -> None:
    """module:Class finds a class derived from Model."""
    import sys
    import types

    module = types.ModuleType("models_of_mine")
    module.Mine = Mine
    monkeypatch.setitem(sys.modules, "models_of_mine", module)
    assert isinstance(model_named("models_of_mine:Mine"), Mine)


@pytest.mark.parametrize(
    ("name", "initial", "expected"),
    [
        *((name, odd, "a list of values") for name in LISTS for odd in (1, 1.5, True, "ab")),
        *(
            (name, odd, "an integer")
            for name in ("counter", "fenced-lock")
            for odd in (None, "x", True, 1.5, [])
        ),
        *(("key-value", odd, "a text") for odd in (3, True, [], {})),
    ],
)
def test_a_model_starts_from_what_it_can_hold(name: str, initial: Any, expected: str) -> None:
    """Rule: another value is refused when the model is made, by one sentence; a number made the judge of a
    queue fail, and "ab" was taken for two values."""
    with pytest.raises(FencepostError, match=f"the model {name}: expected {expected} as initial, saw "):
        model_named(name, {"initial": initial})


@pytest.mark.parametrize("duration_ms", [math.inf, math.nan, 0, -1, True, "1"])
def test_a_lease_lasts_some_time(duration_ms: Any) -> None:
    """Rule: a duration is a number above zero; without an end it overflowed."""
    with pytest.raises(FencepostError, match="a duration above 0"):
        model_named("lease", {"duration_ms": duration_ms})

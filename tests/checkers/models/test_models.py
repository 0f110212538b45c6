"""What each sequential model allows, step by step, and how it reads operations."""

import math
from typing import Any

import pytest
from models_lab import sequence

from fencepost.checkers.models import IMPOSSIBLE, MODELS, Model, model_named
from fencepost.traces.errors import FencepostError

LISTS = ("set", "queue", "unordered-queue", "at-least-once-queue", "append-only-list", "log")


def allowed(model: Model, words: str) -> bool:
    """Whether the model allows these operations, one after another."""
    state = model.init()
    for operation in sequence(words):
        call = model.call(operation)
        if call is not None:
            state = model.step(state, call)
            if state is IMPOSSIBLE:
                return False
    return True


PARAMETERS = {"semaphore": {"permits": 2}, "lease": {"duration_ms": 10e-6}}
"""Of the models that need some. A lease lasts 10 ns."""


def made(name: str) -> Model:
    return model_named(name, PARAMETERS.get(name))


LEGAL = {
    "register": ["read = null; write 1; read = 1", "lost read"],
    "cas-register": [
        "write 1; cas [1, 2] = true; read = 2; cas [1, 3] = false",
        "write 1; cas [1, 2]; lost cas [2, 3]; read = 3",
    ],
    "key-value": ['get/a = ""; append/a "x"; get/a = "x"', 'put/a "y"; append/a "x"; get/a = "yx"'],
    "set": [
        "add 1 = true; add 1 = false; contains 1 = true; read = [1]",
        "add 2; remove 2 = true; read = []; lost add 3; read = [3]",
    ],
    "queue": [
        "dequeue = null; enqueue 1; enqueue 2; dequeue = 1",
        "enqueue 1; enqueue 2; lost dequeue; dequeue = 2",
    ],
    "mutex": ["acquire#1; release#1; acquire#2", 'acquire "p"; lost release "p"; acquire "q"'],
    "fenced-lock": [
        'acquire "p" = 3; release "p"; acquire "q" = 9',
        'lost acquire "p"; lost release "p"; acquire "q" = 2',
    ],
    "counter": ["add 2; add -1; read = 1; lost add 4; read = 5"],
    "log": ["append 7 = 0; append 8 = 1; lost append 9; append 7 = 3", "append 7"],
    "map": [
        'get/k = null; put/k {"a": [1.0, null]}; get/k = {"a": [1, null]}',
        "delete/k = false; put/k 3; delete/k = true; get/k = null",
        "cas/k [null, 1] = true; cas/k [2, 3] = false; cas/k [1, null] = true; get/k",
        "put/k 1; lost delete/k; get/k = null",
        'put/k true; cas/k [1, 2] = false; delete/k = "OK"',
        'put/k {"b": 1, "a": 2}; get/k = {"a": 2, "b": 1}; lost get/k',
    ],
    "append-only-list": [
        "read = []; append 1; append [2]; read = [1, [2]]",
        "lost append 1; append 1; read = [1, 1]; lost read",
    ],
    "unordered-queue": [
        "dequeue = null; enqueue 1; enqueue 2; dequeue = 2; dequeue = 1",
        "enqueue 1; enqueue 1; dequeue = 1; dequeue = 1; dequeue = null",
        "enqueue 1; enqueue 2; lost dequeue; dequeue = 1; dequeue = null",
    ],
    "at-least-once-queue": [
        "enqueue 1; dequeue = 1; dequeue = 1; dequeue = null",
        "enqueue 1; dequeue = 1; remove 1; remove 1; dequeue = null",
        "enqueue 1; enqueue 1; dequeue = 1; remove 1; dequeue = 1",
        "enqueue 1; lost dequeue; dequeue = null; remove 1; remove 9",
        "enqueue 1; enqueue 2; lost dequeue; dequeue = 2; dequeue = null",
    ],
    "semaphore": [
        'acquire "p"; acquire "q"; release "p"; acquire "r"',
        'acquire#1; acquire#1; lost release#1; acquire "r"',
    ],
    "lease": [
        '0-1 acquire "p"; 10-11 acquire "q"',
        '0-1 acquire "p"; 2-3 release "p"; 4-5 acquire "q"',
        '0-1 acquire "p"; 3-4 acquire "p"; 5-6 renew "p"; 14-15 acquire "q"',
        '0-1 acquire "p"; 30-31 renew "p"; 2-40 acquire "q"',
        '0-1 acquire "p"; 11-12 acquire "q"; 13-14 release "p"; 15-16 renew "q"',
        '0-1 lost acquire "p"; 2-9 lost acquire "q"',
    ],
}
ILLEGAL = {
    "register": ["read = 1", "write 1; read = null"],
    "cas-register": ["write 1; cas [2, 3] = true", "write 1; cas [1, 3] = false", "write 1; lost cas [2, 3]"],
    "key-value": ['append/a "x"; append/a "y"; get/a = "yx"'],
    "set": [
        "add 1 = false",
        "remove 1 = true",
        "contains 1 = true",
        "add 1; read = [1, 1]",
        "add 1; read = []",
    ],
    "queue": [
        "enqueue 1; enqueue 2; dequeue = 2",
        "enqueue 1; dequeue = null",
        "dequeue = 1",
        "lost dequeue",
    ],
    "mutex": ["acquire#1; acquire#1", "release#1", "acquire#1; release#2"],
    "fenced-lock": [
        'acquire "p" = 3; release "p"; acquire "q" = 3',
        'acquire "p" = 3; acquire "q" = 4',
        'lost acquire "p"; lost release "p"; acquire "q" = 1',
    ],
    "counter": ["add 2; read = 1"],
    "log": ["append 7 = 1", "append 7 = 0; append 8 = 0"],
    "map": [
        "put/k true; get/k = 1",
        'put/k {"a": 1}; get/k = [["a", 1]]',
        "put/k []; get/k = {}",
        "put/k 1; delete/k; get/k = 1",
        "delete/k = true",
        "put/k 1; delete/k = false",
        "put/k 1; cas/k [null, 2] = true",
        "put/k 1; cas/k [1, 2] = false",
        "put/k 1; lost cas/k [2, 3]",
    ],
    "append-only-list": [
        "append 1; append 2; read = [2, 1]",
        "append 1; read = []",
        "append 1; read = [1, 1]",
    ],
    "unordered-queue": [
        "enqueue 1; dequeue = 1; dequeue = 1",
        "enqueue 1; dequeue = null",
        "enqueue 1; enqueue 2; lost dequeue; dequeue = 1; dequeue = 2",
        "enqueue 1; lost dequeue; dequeue = null; dequeue = 1",
        "lost dequeue",
    ],
    "at-least-once-queue": [
        "dequeue = 1; enqueue 1",
        "enqueue 1; dequeue = null",
        "enqueue 1; remove 1",
        "enqueue 1; dequeue = 1; remove 1; dequeue = 1",
        "enqueue 1; enqueue 1; dequeue = 1; dequeue = null",
        "enqueue 1; enqueue 2; lost dequeue; dequeue = null",
    ],
    "semaphore": [
        'acquire "p"; acquire "q"; acquire "r"',
        'acquire "p"; acquire "p"; acquire "p"',
        'acquire "p"; release "q"',
        'release "p"',
    ],
    "lease": [
        '0-1 acquire "p"; 2-9 acquire "q"',
        '0-1 acquire "p"; 5-6 renew "p"; 8-14 acquire "q"',
        '0-1 acquire "p"; 5-6 acquire "p"; 8-14 acquire "q"',
        '0-1 acquire "p"; 2-3 release "q"; 4-5 acquire "q"',
        '0-1 acquire "p"; 11-12 acquire "q"; 13-14 renew "p"',
        '0-1 renew "p"',
        '9-20 acquire "p"; 0-18 acquire "q"',
    ],
}


def _cases(table):
    return [(name, words) for name, cases in table.items() for words in cases]


@pytest.mark.parametrize(("name", "words"), _cases(LEGAL))
def test_what_a_model_allows(name: str, words: str) -> None:
    """Each sequence is one that a correct system of this kind could show."""
    assert allowed(made(name), words)


@pytest.mark.parametrize(("name", "words"), _cases(ILLEGAL))
def test_what_a_model_forbids(name: str, words: str) -> None:
    """Each sequence is one that it could not."""
    assert not allowed(made(name), words)


def test_every_model_is_tested() -> None:
    """No model is without both kinds of examples."""
    assert set(LEGAL) == set(ILLEGAL) == set(MODELS)


@pytest.mark.parametrize(("name", "words"), [case for table in (LEGAL, ILLEGAL) for case in _cases(table)])
def test_observers_change_nothing(name: str, words: str) -> None:
    """What a model calls an observer leaves every state as it is (the engine relies on it)."""
    model = made(name)
    calls = [call for operation in sequence(words) if (call := model.call(operation)) is not None]
    states = [model.init()]
    for call in calls:
        after = model.step(states[-1], call)
        if after is not IMPOSSIBLE:
            states.append(after)
    for call in calls:
        if model.observes(call):
            assert all(model.step(state, call) in (state, IMPOSSIBLE) for state in states)


def test_initial_values() -> None:
    """A model starts from the value that it is given."""
    assert allowed(model_named("register", {"initial": 4}), "read = 4")
    assert allowed(model_named("set", {"initial": [1, 2]}), "read = [2, 1]")
    assert allowed(model_named("queue", {"initial": [5]}), "dequeue = 5")
    assert allowed(model_named("fenced-lock", {"initial": 7}), 'acquire "p" = 8')
    assert not allowed(model_named("fenced-lock", {"initial": 7}), 'acquire "p" = 7')


def test_a_set_is_split_only_without_reads() -> None:
    """Elements are independent until a read looks at all of them."""
    model = model_named("set")
    parts = [model.partition(model.call(one)) for one in sequence("add 1; add 2; read = []")]
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

"""What each sequential model allows, step by step, and how it reads operations."""

import json

import pytest

from fencepost.checkers.models import IMPOSSIBLE, MODELS, Model, model_named
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.operations import Function, Operation, Outcome

UNSAID = object()


def asked(
    function: str, argument=UNSAID, result=UNSAID, *, process=0, outcome=Outcome.OK, key=None
) -> Operation:
    told = {} if result is UNSAID else {"result": json.dumps(result)}
    said = {} if argument is UNSAID else {"argument": json.dumps(argument)}
    return Operation(
        op_id=0, process=process, function=Function(function), invoke_time=0, completion_time=1, outcome=outcome, key=key, **told, **said
    )  # fmt: skip


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
        [asked("add", 1, True), asked("add", 1, False), asked("contains", 1, True), asked("read", result=[1])],
        [asked("add", 2), asked("remove", 2, True), asked("read", result=[]), lost("add", 3), asked("read", result=[3])],
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
    "counter": [[asked("add", 2), asked("add", -1), asked("read", result=1), lost("add", 4), asked("read", result=5)]],
    "log": [
        [asked("append", 7, 0), asked("append", 8, 1), lost("append", 9), asked("append", 7, 3)],
        [asked("append", 7)],
    ],
}  # fmt: skip
ILLEGAL = {
    "register": [[asked("read", result=1)], [asked("write", 1), asked("read", result=None)]],
    "cas-register": [
        [asked("write", 1), asked("cas", [2, 3], True)],
        [asked("write", 1), asked("cas", [1, 3], False)],
        [asked("write", 1), lost("cas", [2, 3])],
    ],
    "key-value": [[asked("append", "x", key="a"), asked("append", "y", key="a"), asked("get", result="yx", key="a")]],
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
}  # fmt: skip


def _cases(table):
    return [(name, sequence) for name, sequences in table.items() for sequence in sequences]


@pytest.mark.parametrize(("name", "sequence"), _cases(LEGAL))
def test_what_a_model_allows(name: str, sequence) -> None:
    """Each sequence is one that a correct system of this kind could show."""
    assert allowed(model_named(name), *sequence)


@pytest.mark.parametrize(("name", "sequence"), _cases(ILLEGAL))
def test_what_a_model_forbids(name: str, sequence) -> None:
    """Each sequence is one that it could not."""
    assert not allowed(model_named(name), *sequence)


def test_every_model_is_tested() -> None:
    """No model is without both kinds of examples."""
    assert set(LEGAL) == set(ILLEGAL) == set(MODELS)


@pytest.mark.parametrize(("name", "sequence"), [case for table in (LEGAL, ILLEGAL) for case in _cases(table)])
def test_observers_change_nothing(name: str, sequence) -> None:
    """What a model calls an observer leaves every state as it is (the engine relies on it)."""
    model = model_named(name)
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
]


@pytest.mark.parametrize(("name", "operation"), REFUSED)
def test_what_makes_no_sense_is_refused(name: str, operation: Operation) -> None:
    """An argument or result of the wrong kind is a TraceError that names the operation, never a wrong verdict."""
    with pytest.raises(TraceError, match="operation 0"):
        model_named(name).call(operation)


def test_initial_values() -> None:
    """A model starts from the value that it is given."""
    assert allowed(model_named("register", 4), asked("read", result=4))
    assert allowed(model_named("set", [1, 2]), asked("read", result=[2, 1]))
    assert allowed(model_named("queue", [5]), asked("dequeue", result=5))
    assert allowed(model_named("fenced-lock", 7), asked("acquire", "p", 8))
    assert not allowed(model_named("fenced-lock", 7), asked("acquire", "p", 7))


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


@pytest.mark.parametrize("name", ["nope", "no.such.module:Model", "json:JSONDecoder", "json:Nothing"])
def test_unknown_models_are_told(name: str) -> None:
    """A name that is no model is one sentence."""
    with pytest.raises(FencepostError, match="--model"):
        model_named(name)


def test_a_model_of_yours(monkeypatch) -> None:
    """module:Class finds a class derived from Model."""
    import sys
    import types

    module = types.ModuleType("models_of_mine")
    module.Mine = Mine
    monkeypatch.setitem(sys.modules, "models_of_mine", module)
    assert isinstance(model_named("models_of_mine:Mine"), Mine)

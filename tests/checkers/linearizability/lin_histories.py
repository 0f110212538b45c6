"""Random small histories of every model: mostly what a correct system could have answered, sometimes one
answer is changed."""

import json
from collections.abc import Callable
from itertools import combinations
from random import Random
from typing import Any

from attrs import evolve

from fencepost.checkers.models import IMPOSSIBLE, Model, model_named
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Trace
from tests.checkers import lab

VALUES = (1, 2, 3)
Drawn = tuple[Function, dict[str, Any], list[dict[str, Any]]]
"""A function, the columns of what it asks, and the columns of each answer that it could get."""


def _told(*values: Any) -> list[dict[str, Any]]:
    return [{"result": json.dumps(value)} for value in values]


def _asked(value: Any) -> dict[str, Any]:
    return {"argument": json.dumps(value)}


def _subsets(values: tuple[int, ...]) -> list[list[int]]:
    return [list(some) for size in range(len(values) + 1) for some in combinations(values, size)]


def _register(random: Random) -> Drawn:
    if random.random() < 0.5:
        return Function.READ, {}, _told(None, *VALUES)
    return Function.WRITE, _asked(random.choice(VALUES)), [{}]


def _cas(random: Random) -> Drawn:
    if random.random() < 0.6:
        return _register(random)
    return Function.CAS, _asked([random.choice(VALUES), random.choice(VALUES)]), _told(True, False)


def _key_value(random: Random) -> Drawn:
    key = {"key": random.choice("ab")}
    if random.random() < 0.5:
        return Function.GET, key, _told("", "x", "y", "xy", "yx", "xx", "xxy")
    return random.choice((Function.PUT, Function.APPEND)), key | _asked(random.choice("xy")), [{}]


def _set(random: Random) -> Drawn:
    if random.random() < 0.35:
        return Function.READ, {}, _told(*_subsets(VALUES))
    function = random.choice((Function.ADD, Function.REMOVE, Function.CONTAINS))
    answers = _told(True, False)
    return function, _asked(random.choice(VALUES)), answers if function == "contains" else [*answers, {}]


def _queue(random: Random) -> Drawn:
    if random.random() < 0.5:
        return Function.DEQUEUE, {}, _told(None, *VALUES)
    return Function.ENQUEUE, _asked(random.choice(VALUES)), [{}]


def _mutex(random: Random) -> Drawn:
    return random.choice((Function.ACQUIRE, Function.RELEASE)), _asked(random.choice("pq")), [{}]


def _fenced(random: Random) -> Drawn:
    if random.random() < 0.5:
        return Function.RELEASE, _asked(random.choice("pq")), [{}]
    return Function.ACQUIRE, _asked(random.choice("pq")), _told(1, 2, 3, 4)


def _counter(random: Random) -> Drawn:
    if random.random() < 0.5:
        return Function.READ, {}, _told(*range(-2, 6))
    return Function.ADD, _asked(random.choice((-1, 1, 2))), [{}]


def _log(random: Random) -> Drawn:
    place = {"topic": "t", "partition": 0}
    drawn = random.random()
    if drawn < 0.2:
        return Function.LIST_OFFSETS, place | {"strong": True}, [{"offset": end} for end in range(5)]
    if drawn < 0.5:
        start = random.randrange(3)
        answers = [
            {
                "records": tuple(Record(**place, offset=start + i, value=v) for i, v in enumerate(values)),
                "end_offset": end,
            }
            for values in ((), *((v,) for v in VALUES), *((v, w) for v in VALUES for w in VALUES))
            for end in range(start + len(values), 5)
        ]
        return Function.POLL, place | {"offset": start, "strong": random.random() < 0.7}, answers
    count = random.choice((1, 1, 2))
    records = tuple(Record(**place, offset=-1, value=random.choice(VALUES)) for _ in range(count))
    return Function.APPEND, place | {"records": records}, [{"offset": base} for base in range(5)]


def _map(random: Random) -> Drawn:
    key, some = {"key": random.choice("ab")}, (1, True, {"x": 1}, [])
    drawn = random.random()
    if drawn < 0.4:
        return Function.GET, key, _told(None, *some)
    if drawn < 0.6:
        return Function.DELETE, key, [*_told(True, False), {}]
    if drawn < 0.75:
        values = [random.choice((None, *some)), random.choice((None, *some))]
        return Function.CAS, key | _asked(values), _told(True, False)
    return Function.PUT, key | _asked(random.choice(some)), [{}]


def _list(random: Random) -> Drawn:
    if random.random() < 0.5:
        lists = [[], *([v] for v in VALUES), *([v, w] for v in VALUES for w in VALUES)]
        lists += [[v, w, x] for v in VALUES for w in VALUES for x in VALUES]
        return Function.READ, {}, _told(*lists)
    return Function.APPEND, _asked(random.choice(VALUES)), [{}]


def _at_least_once(random: Random) -> Drawn:
    return (Function.REMOVE, _asked(random.choice(VALUES)), [{}]) if random.random() < 0.2 else _queue(random)


def _semaphore(random: Random) -> Drawn:
    return (
        random.choice((Function.ACQUIRE, Function.ACQUIRE, Function.RELEASE)),
        _asked(random.choice("pqr")),
        [{}],
    )


def _lease(random: Random) -> Drawn:
    function = random.choice((*(Function.ACQUIRE,) * 4, Function.RENEW, Function.RELEASE))
    return function, _asked(random.choice("pqr")), [{}]


DRAW: dict[str, Callable[[Random], Drawn]] = {
    "register": _register,
    "cas-register": _cas,
    "key-value": _key_value,
    "set": _set,
    "queue": _queue,
    "mutex": _mutex,
    "fenced-lock": _fenced,
    "counter": _counter,
    "log": _log,
    "map": _map,
    "append-only-list": _list,
    "unordered-queue": _queue,
    "at-least-once-queue": _at_least_once,
    "semaphore": _semaphore,
    "lease": _lease,
}
PARAMETERS = {"semaphore": {"permits": 2}, "lease": {"duration_ms": 10e-6}}
"""Of the models that need some; times of these histories are a few ns."""


def model_of(name: str) -> Model:
    """The model as these histories mean it."""
    return model_named(name, PARAMETERS.get(name))


def history(name: str, random: Random, *, most: int = 7) -> Trace:
    """A history of at most `most` operations, with ties, unknown outcomes and failures."""
    model = model_of(name)
    count, span = random.randint(1, most), random.choice((8, 16, 40))
    unknown = random.choice((0.0, 0.2, 0.5))
    operations = []
    for op_id in range(count):
        function, asked, _ = drawn = DRAW[name](random)
        invoke, complete = sorted((random.randrange(span), random.randrange(span)))
        operation = lab.operation(op_id, function, invoke, complete, **asked)
        operations.append((random.uniform(invoke, complete), operation, drawn[2]))
    return _finished(model, operations, random, unknown)


def _finished(
    model: Model, drawn: list[tuple[float, Operation, list[Any]]], random: Random, unknown: float
) -> Trace:
    answered = _answered(model, drawn, random)
    return _trace(tuple(_lost(operation, random, unknown) for operation in answered))


def _answered(
    model: Model, drawn: list[tuple[float, Operation, list[Any]]], random: Random
) -> list[Operation]:
    """Answers as a system gives them that does each operation at its moment; now and then any answer at
    all."""
    states: dict[str | None, Any] = {}
    answered = []
    wrong = random.choice((0.0, 0.15, 0.4))
    for _, operation, answers in sorted(drawn, key=lambda item: item[0]):
        random.shuffle(answers)
        chosen = evolve(operation, **answers[0])
        if random.random() >= wrong:
            for answer in answers:
                told = evolve(operation, **answer)
                call = model.call(told)
                part = operation.key
                state = states.get(part, model.init())
                after = state if call is None else model.step(state, call)
                if after is not IMPOSSIBLE:
                    states[part] = after
                    chosen = told
                    break
            else:
                chosen = evolve(operation, outcome=Outcome.FAIL)
        answered.append(chosen)
    return sorted(answered, key=lambda operation: operation.op_id)


def _lost(operation: Operation, random: Random, unknown: float) -> Operation:
    if operation.outcome is Outcome.FAIL or random.random() >= unknown:
        return operation
    return opened(operation)


def opened(operation: Operation) -> Operation:
    """The operation as if nothing had been heard of it."""
    offset = operation.offset if operation.function == "poll" else None
    return evolve(operation, outcome=Outcome.UNKNOWN, completion_time=None, result=None, offset=offset)


def _trace(operations: tuple[Operation, ...]) -> Trace:
    return lab.trace(operations, concurrent_processes=True)

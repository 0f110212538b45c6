"""Random small histories whose values say what belongs together, for the deciders; a few are ambiguous all
the same."""

from collections.abc import Callable
from random import Random
from typing import Any

from lin_histories import Drawn, _asked, _finished, _told, model_of

from fencepost.traces.operations import Function
from fencepost.traces.trace import Trace
from tests.checkers import lab

Interval = tuple[int, int, int]
"""A process, and when one operation of it begins and ends."""


def _register(random: Random, number: int) -> Drawn:
    if random.random() < 0.6:
        return Function.READ, {}, _told(None, *range(8))
    return Function.WRITE, _asked(number), [{}]


def _cas(random: Random, number: int) -> Drawn:
    if random.random() < 0.5:
        return _register(random, number)
    old = random.choice((None, *range(8)))
    return Function.CAS, _asked([old, number]), _told(True, *([False] if random.random() < 0.2 else []))


PIECES = ("a", "b", "ca", "cb", "da", "dbb", "dc", "e")
"""None begins with another one."""


def _key_value(random: Random, number: int) -> Drawn:
    if random.random() < 0.45:
        shown = ["", *PIECES[:7], *(one + other for one in PIECES[:4] for other in PIECES[:5])]
        return (
            Function.GET,
            {"key": "k"},
            _told(*shown, *("".join(random.sample(PIECES[:7], 3)) for _ in range(20))),
        )
    function = Function.PUT if random.random() < 0.3 else Function.APPEND
    return function, {"key": "k"} | _asked(PIECES[number] if number < len(PIECES) else f"f{number:02}"), [{}]


def _set(random: Random, number: int) -> Drawn:
    if number < 2 and random.random() < 0.8:
        answers = random.choice(([{}], _told(True, False)))
        return (Function.ADD, Function.REMOVE)[number], _asked(1), answers
    return Function.CONTAINS, _asked(1), _told(True, False)


def _queue(random: Random, number: int) -> Drawn:
    if random.random() < 0.5:
        return Function.DEQUEUE, {}, _told(None, *range(8))
    return Function.ENQUEUE, _asked(number), [{}]


def _map(random: Random, number: int) -> Drawn:
    function, asked, answers = _cas(random, number)
    names = {Function.READ: Function.GET, Function.WRITE: Function.PUT}
    return names.get(function, function), asked | {"key": "k"}, answers


def _list(random: Random, number: int) -> Drawn:
    if random.random() < 0.5:
        lists = [random.sample(range(7), size) for size in (0, 1, 1, 2, 2, 2, 3, 3, 4) for _ in range(6)]
        return Function.READ, {}, _told([], *([v] for v in range(7)), *lists)
    return Function.APPEND, _asked(number), [{}]


def _anywhere(random: Random, count: int, span: int) -> list[Interval]:
    """Each operation by a process of its own."""
    drawn = [sorted((random.randrange(span), random.randrange(span))) for _ in range(count)]
    return [(op, begin, end) for op, (begin, end) in enumerate(drawn)]


def _locks(
    random: Random, count: int, span: int, answers: list[dict[str, Any]], clients: int
) -> list[tuple[Interval, Drawn]]:
    """Clients that take and release in turn, mostly."""
    made = []
    now, steps = [random.randrange(4) for _ in range(clients)], [0] * clients
    for _ in range(count):
        client = random.randrange(clients)
        begin = now[client] + random.randrange(3)
        end = begin + random.randrange(max(1, span // 6))
        now[client] = end + random.choice((1, 1, 1, 1, 1, 0))
        release = steps[client] % 2 if random.random() < 0.97 else random.randrange(2)
        steps[client] += 1
        function = (Function.ACQUIRE, Function.RELEASE)[release]
        made.append(((client, begin, end), (function, _asked("pqrst"[client]), [{}] if release else answers)))
    return made


DRAW: dict[str, Callable[[Random, int], Drawn]] = {
    "register": _register,
    "cas-register": _cas,
    "key-value": _key_value,
    "set": _set,
    "queue": _queue,
    "unordered-queue": _queue,
    "at-least-once-queue": _queue,
    "map": _map,
    "append-only-list": _list,
}
NAMES = (*DRAW, "mutex", "fenced-lock", "semaphore")


def unambiguous(name: str, random: Random, *, most: int = 7) -> Trace:
    """A history of at most `most` operations, with ties, unknown outcomes and failures."""
    model = model_of(name)
    count, span = random.randint(1, most), random.choice((8, 16, 40))
    if name in DRAW:
        places = _anywhere(random, count, span)
        drawn = [(place, DRAW[name](random, number)) for number, place in enumerate(places)]
    else:
        drawn = _locks(
            random,
            count,
            span,
            _told(*range(1, 6)) if name == "fenced-lock" else [{}],
            5 if name == "semaphore" else 3,
        )
    operations = []
    for op_id, ((process, begin, end), (function, asked, answers)) in enumerate(drawn):
        operation = lab.operation(op_id, function, begin, end, process=process, **asked)
        operations.append((random.uniform(begin, end), operation, answers))
    return _finished(model, operations, random, random.choice((0.0, 0.1, 0.4)))

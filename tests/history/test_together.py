"""Clients that run together: they overlap, a race is found, and what they do to the process is undone."""

import asyncio
import sys
import threading

import pytest

from fencepost.history import History, NotLinearizableError, VacuousHistoryWarning, assert_linearizable
from fencepost.history import together as module
from fencepost.traces.errors import FencepostError, TraceError

RUNS, NEEDED = 10, 9
"""Of runs with a race, how many have to find it. 100 of 100 did, of 20 operations each; 98 of 100 of 5."""


class Values:
    """A fast service in memory."""

    def __init__(self):
        self.values = {}

    def get(self, key):
        return self.values.get(key, 0)

    def set(self, key, value):
        self.values[key] = value


def counted(seed: int, lock=None, clients: int = 4, each: int = 20) -> History:
    """A counter that is GET and then SET, with or without a lock around both."""
    history, service = History(), Values()

    def client(number: int) -> None:
        for _ in range(each):
            with history.operation("add", argument=1):
                if lock is None:
                    service.set("x", service.get("x") + 1)
                else:
                    with lock:
                        service.set("x", service.get("x") + 1)

    history.clients(clients, client, seed=seed)
    with history.operation("read") as read:
        read.result = service.get("x")
    return history


def lost_an_update(history: History) -> bool:
    try:
        assert_linearizable(history, "counter")
    except NotLinearizableError:
        return True
    return False


def test_a_lost_update_is_found_in_nine_of_ten_runs() -> None:
    """Rule: a lost update of GET and SET on a fast service is found in at least nine of ten runs; with a lock
    around both there is none."""
    assert sum(lost_an_update(counted(seed)) for seed in range(RUNS)) >= NEEDED
    locked = [counted(seed, threading.Lock()) for seed in range(3)]
    assert not any(map(lost_an_update, locked))
    assert all(history.overlapping_pairs for history in locked)


def test_without_pauses_it_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: it is the pauses that find it (planted: none); as for threads of a pool, whole runs then have no
    overlap."""
    monkeypatch.setattr(module.Client, "pause", lambda self: None)
    monkeypatch.setattr(module.Client, "watch_lines", lambda self: None)
    found = 0
    for seed in range(RUNS):
        history = counted(seed, each=5)
        found += history.overlapping_pairs > 0 and lost_an_update(history)
    assert found < NEEDED


def test_tasks_take_turns_too() -> None:
    """Rule: a coroutine function runs in tasks; an update that is lost where it awaits is found."""

    async def run(seed: int) -> History:
        history, service = History(), Values()

        async def client(number: int) -> int:
            for _ in range(5):
                async with history.operation("add", argument=1):
                    value = service.get("x")
                    await asyncio.sleep(0)
                    service.set("x", value + 1)
            return number

        assert await history.clients(3, client, seed=seed) == [0, 1, 2]
        with history.operation("read") as read:
            read.result = service.get("x")
        return history

    assert sum(lost_an_update(asyncio.run(run(seed))) for seed in range(RUNS)) >= NEEDED


def test_what_clients_do_to_the_process_is_undone() -> None:
    """Rule: the switch interval is short while clients run, also two sets of them, and afterwards as it was;
    no line is watched any more."""
    history, before, inside = History(), sys.getswitchinterval(), []

    def client(number: int) -> float:
        inside.append(sys.getswitchinterval())
        return sys.getswitchinterval()

    def nested(number: int) -> list[float]:
        return history.clients(2, client)

    assert history.clients(3, client) == inside[:3]
    history.clients(2, nested)
    assert all(0 < interval < 10 * module.SWITCH_S for interval in inside) and len(inside) == 7
    assert sys.getswitchinterval() == before
    with pytest.raises(ZeroDivisionError):
        history.clients(2, lambda number: 1 // 0)
    assert sys.getswitchinterval() == before


def test_all_clients_begin_together() -> None:
    """Rule: no client begins before all are there."""
    history, ready = History(), threading.Barrier(8, timeout=600)
    assert history.clients(8, lambda number: ready.wait() >= 0) == [True] * 8


def test_what_a_client_raises_is_raised() -> None:
    """Rule: the first client's exception reaches the caller, with how many others there were; of threads and
    of tasks."""

    def client(number: int) -> None:
        if number:
            raise KeyError(number)

    async def task(number: int) -> None:
        client(number)

    for run in (lambda: History().clients(3, client), lambda: asyncio.run(awaited(History(), 3, task))):
        with pytest.raises(KeyError) as failed:
            run()
        assert failed.value.args == (1,)
        assert failed.value.__notes__ == ["client 1 raised this; so did 1 other clients"]


async def awaited(history: History, count: int, function, **more):
    return await history.clients(count, function, **more)


def test_a_client_that_does_not_end_is_named() -> None:
    """Rule: the wait for clients has a bound; which one still runs, and where, is said."""
    end = threading.Event()
    try:
        with pytest.raises(
            FencepostError,
            match=r"that client 0 still runs in threading\.py:\d+ \(wait\) < .*test_together\.py:\d+ "
            r"\(<lambda>\)",
        ):
            History().clients(2, lambda number: number or end.wait(60), timeout_s=0.5)
    finally:
        end.set()

    async def late(number: int) -> None:
        await asyncio.sleep(60 if number else 0)

    with pytest.raises(FencepostError, match=r"each client ends within 0\.5 s, saw that client 1 still runs"):
        asyncio.run(awaited(History(), 2, late, timeout_s=0.5))


@pytest.mark.parametrize("count", [0, -1, True, 2.0, 1_001])
def test_a_count_that_is_none(count) -> None:
    """Rule: a number of clients that makes no sense is one sentence."""
    with pytest.raises(FencepostError, match="expected a number of clients from 1 to 1000"):
        History().clients(count, print)


def test_the_same_seed_draws_the_same_pauses() -> None:
    """Rule: when a client pauses follows from the seed and its number, not from the others."""

    def drawn(seed: int) -> list[tuple[int, int]]:
        client = module.Client(module.Random(f"{seed} 0"))
        lefts = []
        for _ in range(3):
            client.begin()
            frame = sys._getframe()
            for _ in range(30):
                client.trace(frame, "line", None)
                lefts.append((client.left, client.reach))
            client.end()
            assert client.left == 0
        return lefts

    assert drawn(1) == drawn(1) != drawn(2)


def forgetful(function: str, **asked) -> tuple[History, TraceError]:
    """An operation whose block sets no result."""
    history = History()
    with pytest.raises(TraceError) as failed, history.operation(function, **asked):
        pass
    return history, failed.value


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        ("read", {}),
        ("get", {"key": "k"}),
        ("contains", {"argument": 1}),
        ("dequeue", {}),
        ("cas", {"argument": [1, 2]}),
    ],
)
def test_a_forgotten_result_is_an_error(function: str, asked: dict) -> None:
    """Rule: an operation that succeeded without its result names itself and its line; it claims nothing, and
    no history with it passes."""
    history, error = forgetful(function, **asked)
    for text in (
        f"operation 1 ({function}) at {__file__}:",
        f"expected a result of {function}, saw that none was set",
    ):
        assert text in str(error)
    assert history.operations[0].outcome == "unknown"
    with history.operation("write", argument=1):
        pass
    for model in ("register", "cas-register", "queue", "set", "key-value"):
        with pytest.raises(TraceError, match="operation 1"):
            assert_linearizable(history, model)


def test_a_null_that_was_said_is_an_answer(history) -> None:
    """Rule: a result of None is a null, what failed or is unknown needs none, and neither does what answers
    nothing."""
    with history.operation("read") as read:
        read.result = None
    with history.operation("read") as read:
        read.unknown()
    with history.operation("read") as read:
        read.fail()
    with history.operation("write", argument=1):
        pass
    with pytest.warns(VacuousHistoryWarning):
        assert_linearizable(history, "register")
    assert [one.outcome for one in history.operations] == ["ok", "unknown", "fail", "ok"]


def test_a_model_says_what_has_to_be_answered() -> None:
    """Rule: a function that a model of somebody's own calls a read needs its result, too."""
    from fencepost.checkers.models import Model

    class Mine(Model):
        functions = frozenset({"txn"})
        reads = functions

        def step(self, state, call):
            return state

    history = History()
    with history.operation("txn"):
        pass
    with pytest.raises(TraceError, match=r"operation 1 \(txn\) at "):
        assert_linearizable(history, Mine)


def test_overlap_is_counted() -> None:
    """Rule: pairs of successful operations of different processes on one key; what only touches counts, one
    process with itself does not."""
    clock = iter(range(100))
    history = History(clock=lambda: next(clock))
    with (
        history.operation("write", argument=1, process="a"),
        history.operation("write", argument=2, process="b"),
    ):
        with history.operation("write", argument=3, process="b"):
            pass
        with history.operation("write", argument=4, key="k", process="c"):
            pass
        with pytest.raises(OSError), history.operation("write", argument=5, process="d"):
            raise OSError
    assert history.overlapping_pairs == 2  # a with each of b's
    with history.operation("write", argument=6, process="e"):
        pass
    assert history.overlapping_pairs == 2
    with pytest.raises(NotLinearizableError, match="2 pairs of operations overlapped, where at least 3 were"):
        assert_linearizable(history, "register", minimum_overlap=3)
    assert assert_linearizable(history, "register", minimum_overlap=2).decision == "ok"


async def _write(history: History, number: int) -> int:
    with history.operation("write", argument=number):
        await asyncio.sleep(0)
    return number


def test_an_object_that_is_called_like_a_coroutine_function_is_one() -> None:
    """Rule: its calls are awaited as tasks, not dropped."""

    class Clients:
        def __init__(self) -> None:
            self.history = History()

        async def __call__(self, number: int) -> int:
            return await _write(self.history, number)

    async def together() -> list[int]:
        return await clients.history.clients(3, clients)

    clients = Clients()
    assert asyncio.run(together()) == [0, 1, 2]
    assert len(clients.history.operations) == 3


def _later(number: int):
    yield number


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda number: _write(History(), number), "client 0 got a coroutine"),
        (_later, "client 0 got a generator"),
    ],
)
def test_work_that_nobody_runs_is_an_error(function, kind: str) -> None:
    """Rule: a function that only answers a coroutine or a generator has done nothing; without the error the
    history is empty."""
    with pytest.raises(FencepostError, match=kind):
        History().clients(2, function)

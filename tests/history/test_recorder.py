"""The recorder: intervals that are never too short, outcomes that claim no more than is known, and who did
what."""

import asyncio
import threading
import time

import pytest

from fencepost.history import History
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.operations import Function, Outcome


class Ticks:
    """A clock that ticks at each look."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


def test_the_clock_is_read_outside_of_the_call():
    """Rule: nothing of the call lies outside of the recorded interval, and nothing of the recorder inside;
    the clock never goes back."""
    assert History().clock is time.monotonic_ns
    clock = Ticks()
    history = History(clock=clock)
    with history.operation("write", argument=1) as write:
        inside = clock()
    assert write.invoke_time == inside - 1
    operation = history.operations[0]
    assert (operation.invoke_time, operation.completion_time) == (inside - 1, inside + 1)


def test_an_exception_leaves_the_outcome_unknown(history):
    """Rule: after an exception, whatever its kind, the operation may have happened at any later time; and the
    exception goes on."""
    for error in (TimeoutError, KeyboardInterrupt, asyncio.CancelledError, ValueError):
        with pytest.raises(error), history.operation("write", argument=1):
            raise error
    assert {(one.outcome, one.completion_time) for one in history.operations} == {(Outcome.UNKNOWN, None)}
    assert [one.error for one in history.operations][:2] == ["TimeoutError", "KeyboardInterrupt"]


def test_only_the_caller_says_that_it_failed():
    """Rule: an operation failed if its exception was named so (for the history or the call), or if the block
    says so."""
    history = History(fail=(ConnectionRefusedError,))
    for error in (ConnectionRefusedError, KeyError, OSError):
        with pytest.raises(error), history.operation("write", argument=1, fail=(KeyError,)):
            raise error
    with history.operation("cas", argument=[1, 2]) as refused:
        refused.fail("precondition")
    with history.operation("cas", argument=[1, 2]) as vague:
        vague.unknown("502")
    outcomes = [Outcome.FAIL, Outcome.FAIL, Outcome.UNKNOWN, Outcome.FAIL, Outcome.UNKNOWN]
    assert [one.outcome for one in history.operations] == outcomes
    assert [one.error for one in history.operations[3:]] == ["precondition", "502"]


def test_arguments_and_results_are_json(history):
    """Rule: what was asked and answered is in the trace as JSON text; what JSON cannot hold is refused in a
    sentence."""
    with history.operation("cas", key=7, argument=(1, None)) as cas:
        cas.result = True
    operation = history.operations[0]
    assert (operation.function, operation.key, operation.argument, operation.result) == (
        Function.CAS, "7", "[1,null]", "true",
    )  # fmt: skip
    with pytest.raises(TraceError, match="the argument of write: expected a value that JSON can hold"):
        history.operation("write", argument=object())
    with pytest.raises(TraceError, match="the result of read"), history.operation("read") as read:
        read.result = object()
    with pytest.raises(FencepostError, match="the name of a function"):
        history.operation("")
    with history.operation("publish", argument="x"):
        pass
    assert str(history.operations.pop().function) == "publish"
    assert len(history.operations) == 1 and not history.open


def test_threads_and_tasks_are_processes(history):
    """Rule: each thread and each asyncio task is a process of its own, a label is one whoever uses it."""

    def one() -> None:
        with history.operation("write"), history.operation("write", process="worker"):
            pass

    async def two() -> None:
        async with history.operation("write"):
            await asyncio.sleep(0)
        with history.operation("write"):
            pass

    async def tasks() -> None:
        await asyncio.gather(two(), two())

    one()
    one()
    for _ in range(2):
        thread = threading.Thread(target=one)
        thread.start()
        thread.join()
    asyncio.run(tasks())
    processes = [operation.process for operation in history.trace().operations]
    assert processes == [0, 1, 0, 1, 2, 1, 3, 1, 4, 5, 4, 5]
    assert not history.trace().concurrent_processes


def test_a_process_that_does_two_things_at_once_is_told(history):
    """Rule: a trace says whether a process had several operations in flight."""
    with history.operation("write"), history.operation("write"):
        pass
    assert history.trace().concurrent_processes


def test_a_recording_is_used_once(history):
    """Rule: one recording is one operation."""
    write = history.operation("write")
    with write:
        pass
    with pytest.raises(FencepostError, match="expected a recording that is used once"), write:
        pass


def test_decorated_functions_are_operations(history):
    """Rule: a decorated function or coroutine function records each call, with the parameters that were
    named, and answers as before."""
    store: dict[str, int] = {}

    @history.recorded("put", key="name", argument="value")
    def put(name: str, value: int = 3) -> str:
        store[name] = value
        return "stored"

    @history.recorded("cas", key="name", argument=("old", "new"), fail=(KeyError,))
    async def swap(name: str, old: int, new: int) -> bool:
        await asyncio.sleep(0)
        swapped = store[name] == old
        store[name] = new
        return swapped

    async def work() -> None:
        assert await swap("a", 3, new=4) is True
        with pytest.raises(KeyError):
            await swap("b", 1, 2)

    assert put("a") == "stored" and put.__name__ == "put"
    asyncio.run(work())
    rows = [(one.function, one.key, one.argument, one.result, one.outcome) for one in history.operations]
    assert rows == [
        ("put", "a", "3", '"stored"', Outcome.OK),
        ("cas", "a", "[3,4]", "true", Outcome.OK),
        ("cas", "b", "[1,2]", None, Outcome.FAIL),
    ]
    with pytest.raises(FencepostError, match="expected one of the parameters name, value, saw 'nmae'"):
        history.recorded("put", key="nmae")(lambda name, value: None)


def test_an_operation_under_way_is_unknown():
    """Rule: a trace that is taken while a call hangs has the call, with an unknown outcome; taking it does
    not disturb the call."""
    history = History(clock=Ticks())
    with history.operation("write", argument=1):
        taken = history.trace()
    assert [(one.outcome, one.completion_time) for one in taken.operations] == [(Outcome.UNKNOWN, None)]
    assert [one.outcome for one in history.trace().operations] == [Outcome.OK]


def test_many_threads_lose_nothing(tmp_path, history):
    """Rule: threads that record at once get numbers of their own, and every operation is in the saved trace,
    in the order of its invocation."""
    barrier = threading.Barrier(8)

    def work(name: int) -> None:
        barrier.wait()
        for number in range(100):
            with history.operation("put", key=name, argument=number):
                pass

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace = history.save(tmp_path / "deep" / "history.jsonl")
    assert sorted(one.op_id for one in trace.operations) == list(range(1, 801))
    assert len({one.process for one in trace.operations}) == 8
    starts = [one.invoke_time for one in trace.operations]
    assert starts == sorted(starts) and starts[0] > 0
    assert list(read_traces(tmp_path / "deep" / "history.jsonl")) == [trace]

"""assert_linearizable: only what was shown to be linearizable passes, and a failure can be checked by
hand."""

import threading

import pytest
from attrs import evolve

from fencepost.checkers.models import IMPOSSIBLE, Model, model_named
from fencepost.checkers.verdict import Decision
from fencepost.cli import run
from fencepost.history import History, NotLinearizableError, VacuousHistoryWarning, assert_linearizable
from fencepost.traces.errors import FencepostError
from tests.history.test_recorder import Ticks


class Last(Model):
    """A store that answers the last value, and begins with 0."""

    functions = frozenset({"write", "read"})
    reads = frozenset({"read"})

    def init(self):
        return 0

    def step(self, state, call):
        if call.function == "write":
            return call.argument
        return state if call.result == state else IMPOSSIBLE


def stale(history: History) -> None:
    """A read that misses the last write before it."""
    for value in (1, 2):
        with history.operation("write", argument=value) as write:
            write.result = "a status that says nothing"
    with history.operation("read") as read:
        read.result = 1


def test_a_stale_read_is_found_and_told(tmp_path, capsys):
    """Rule: a history that is not linearizable (planted: a stale read) fails with its proof; its trace was
    saved, and the command finds it again."""
    history = History(folder=tmp_path)
    stale(history)
    with pytest.raises(NotLinearizableError) as failed:
        assert_linearizable(history, "register")
    text = str(failed.value)
    for words in ("not_linearizable: no order", "expected:", "seen:", "read() -> 1", "write(2)", ">>>"):
        assert words in text, words
    assert failed.value.verdict.decision is Decision.ILLEGAL
    path = tmp_path / "history.jsonl"
    assert f"judge it again: fencepost check {path} --model register" in text
    assert f"\nwatch it: {path.with_suffix('.html')} (open it in a browser)\n" in text
    page = path.with_suffix(".html").read_text()
    assert "not_linearizable" in page and '"sequential":{' in page
    assert run(["check", str(path), "--model", "register"]) == 1
    assert "not_linearizable" in capsys.readouterr().out
    with pytest.raises(NotLinearizableError, match=r"(?s)history-2\.html.*history-2\.jsonl"):
        assert_linearizable(history, "register")


def test_an_interval_that_is_too_short_convicts_the_innocent():
    """Rule: reading the clock outside of the call is what keeps a correct store out of trouble (planted:
    stamps that come late)."""

    clock = Ticks()
    history = History(clock=clock)
    with history.operation("write", argument=1):
        written = clock()  # from now on the store has it
    with history.operation("read", process="other") as read:
        read.result = 1
    with pytest.warns(VacuousHistoryWarning):
        assert_linearizable(history, "register")
    late = [
        evolve(one, invoke_time=written + 10) if one.function == "write" else one
        for one in history.operations
    ]
    late = [evolve(one, completion_time=written + 20) if one.function == "write" else one for one in late]
    history.operations = late  # as if the clock had been read after the call
    with pytest.raises(NotLinearizableError):
        assert_linearizable(history, "register")


@pytest.mark.parametrize("broken", [False, True])
def test_threads_around_a_store(broken):
    """Rule: threads over a store with a lock are linearizable, and over one whose reads come from a copy
    (planted) they are not."""
    history, lock, store, copies = History(), threading.Lock(), {}, threading.local()

    @history.recorded("put", key="key", argument="value")
    def put(key: str, value: str) -> None:
        with lock:
            store[key] = value

    @history.recorded("get", key="key")
    def get(key: str) -> str:
        with lock:
            seen = copies.__dict__ if broken else store
            return seen.setdefault(key, store.get(key, "")) if broken else store.get(key, "")

    def work(name: int) -> None:
        for number in range(30):
            put(f"k{number % 2}", f"{name}-{number}")
            get(f"k{number % 2}")

    history.clients(4, work, timeout_s=600)
    if broken:
        with pytest.raises(NotLinearizableError):
            assert_linearizable(history, "key-value")
    else:
        assert_linearizable(history, "key-value")


def test_what_proves_nothing_does_not_pass(history):
    """Rule: no operation, none that succeeded, or a judge that ran out of time, is not Ok."""
    with pytest.raises(NotLinearizableError, match="none of the 0 recorded operations succeeded"):
        assert_linearizable(history, "register")
    with pytest.raises(OSError), history.operation("write", argument=1):
        raise OSError
    with pytest.raises(NotLinearizableError, match="assumption_broken: none of the 1 recorded"):
        assert_linearizable(history, "register")
    with history.operation("enqueue", argument=1):
        pass
    with pytest.raises(NotLinearizableError, match="expected functions of the model register"):
        assert_linearizable(history, "register")


def test_models_by_name_class_and_instance(tmp_path):
    """Rule: a model may be a name, a class of one's own, or an instance that begins elsewhere; the command
    names it if it can be imported."""
    history = History(folder=tmp_path)
    with history.operation("read") as read:
        read.result = 0
    with pytest.warns(VacuousHistoryWarning, match="none of the 1 operations overlapped"):
        assert_linearizable(history, Last)
    with pytest.warns(VacuousHistoryWarning):
        assert_linearizable(history, Last())
    with pytest.warns(VacuousHistoryWarning):
        assert_linearizable(history, model_named("register", {"initial": 0}))
    with pytest.raises(NotLinearizableError):
        assert_linearizable(history, "register")
    stale(history)
    with pytest.raises(NotLinearizableError, match=f"--model {Last.__module__}:Last"):
        assert_linearizable(history, Last)
    with pytest.raises(FencepostError, match=r"^the model: expected a model out of register, "):
        assert_linearizable(history, "regster")
    with pytest.raises(FencepostError, match="expected a model: its name"):
        assert_linearizable(history, 7)

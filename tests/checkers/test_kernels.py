"""Kernels have two engines: both answer alike, and a small input never waits for a compiler."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kafka_random import random_history
from lin_histories import DRAW, history, model_of
from log_histories import judge_traces, random_trace, with_claims
from log_special_histories import special_trace

from fencepost.checkers import compiled
from fencepost.checkers.compiled import AUTO, COMPILED, PLAIN, Kernels, engine
from fencepost.checkers.kafka import judge_trace as judge_kafka
from fencepost.checkers.linearizability import judge_counted
from fencepost.checkers.linearizability.limits import Guard, LimitReached, SearchLimits
from fencepost.checkers.linearizability.screen import screened
from fencepost.checkers.log import bounds
from fencepost.traces.trace import Trace
from tests.selfcheck.amounts import amount

PROFILES = ("default", "session", "strong", "content")
TEN = """{:type :invoke, :f :write, :value 1, :process 0, :time 1}
{:type :ok, :f :write, :value 1, :process 0, :time 2}
{:type :invoke, :f :read, :value nil, :process 1, :time 3}
{:type :ok, :f :read, :value 1, :process 1, :time 4}
"""
SENDS = """{:type :invoke, :f :send, :value [[:send 0 1]], :process 0, :time 1}
{:type :ok, :f :send, :value [[:send 0 [0 1]]], :process 0, :time 2}
"""


def logs(seed: int) -> Iterator[Trace]:
    """Random logs of every kind, most of them bent."""
    random = Random(seed)
    yield with_claims(random, random_trace(random, clocks=2, profiles=PROFILES))
    yield special_trace(random, clocks=2, profiles=PROFILES)


QUESTIONS = {
    "log": lambda seed: judge_traces(list(logs(seed))),
    "kafka": lambda seed: judge_kafka(random_history(seed)),
    "models": lambda seed: [
        judge_counted(history(name, Random(seed)), model_of(name), deciders=bool(seed % 2)) for name in DRAW
    ],
    "keys": lambda seed: [
        screened(model_of("key-value"), history("key-value", Random(seed), most=20), smallest=1)
        for _ in range(1)
    ],
}
"""Each asks kernels about random input of a seed."""
SEEDS = {"log": amount(100, 300), "kafka": amount(100, 300), "models": amount(15, 40), "keys": 300}


def differing(question: str, seeds: int) -> list[int]:
    """Seeds about which the engines disagree."""
    answers = []
    for choice in (PLAIN, COMPILED):
        with engine(choice):
            answers.append([QUESTIONS[question](seed) for seed in range(seeds)])
    return [seed for seed, (one, other) in enumerate(zip(*answers, strict=True)) if one != other]


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_engines_answer_alike(question: str) -> None:
    """Whatever is judged, machine code and plain Python say the same."""
    assert not differing(question, SEEDS[question])


def test_an_engine_that_answers_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is worth something: a plain form that finds no contradiction differs."""
    monkeypatch.setattr(bounds._worst, "_plain", lambda *arguments: (-1, -1, -1, -1))
    assert differing("log", 30)


def test_plain_answers_are_pythons_own_numbers() -> None:
    """Machine code answers bool and int; a numpy.bool would not multiply a list."""
    kernel: Any = compiled.compiled(lambda x: (x[0] > 0, x[0], 1))
    with engine(PLAIN):
        assert [type(one) for one in kernel(np.ones(1, np.int64))] == [bool, int, int]


@pytest.mark.parametrize(
    ("text", "arguments"), [(TEN, ("--model", "register")), (SENDS, ("--checks", "log,kafka,groups"))]
)
def test_a_small_history_is_judged_without_a_compiler(
    text: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    """A first verdict waits for no compiler: numba is not even there."""
    path = tmp_path / "ten.edn"
    path.write_text(text)
    words = ["check", str(path), *arguments]
    program = (
        f"import sys; sys.modules['numba'] = None; from fencepost.cli import run; "
        f"sys.exit(int(run({words!r})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3) and "Traceback" not in done.stderr, done.stderr


def test_a_kernel_that_has_run_long_becomes_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain up to what compiling costs, and never back."""
    kernel: Any = compiled.compiled(lambda x: x[0] + 1)
    one = np.ones(1, np.int64)
    with engine(AUTO):
        assert kernel(one) == 2 and not kernel.ready
        kernel.spent_s = compiled.COMPILE_AFTER_S
        monkeypatch.setattr(kernel, "kept", list)
        assert kernel(one) == 2 and kernel.ready
        kernel.spent_s = 0.0
        assert kernel.native.signatures and kernel(one) == 2 and kernel.ready


def test_what_is_on_disk_is_loaded_sooner_and_a_large_input_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that are to come count as those that were."""
    kernel: Any = compiled.compiled(lambda x: x[0] + 1)
    monkeypatch.setattr(compiled.Kernel, "_first", lambda self, arguments: "machine code")
    large = np.ones(int(compiled.LOAD_AFTER_S / compiled.STEP_S) + 1, np.int64)
    with engine(AUTO):
        monkeypatch.setattr(kernel, "kept", list)
        assert kernel(large) == 2
        monkeypatch.setattr(kernel, "kept", lambda: [Path("kept")])
        assert kernel(large) == "machine code" and kernel(large[:1]) == 2
        kernel.spent_s = compiled.LOAD_AFTER_S
        assert kernel(large[:1]) == "machine code"


def test_one_process_at_a_time_compiles(tmp_path: Path) -> None:
    """Who holds the lock of the folder lets the others wait; then they find it on disk."""
    fcntl = pytest.importorskip("fcntl")
    at = SimpleNamespace(stats=SimpleNamespace(cache_path=str(tmp_path)))
    entered = threading.Event()

    def compile_too() -> None:
        with compiled._alone(at):
            entered.set()

    with (tmp_path / compiled.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=compile_too, daemon=True)
        other.start()
        assert not entered.wait(0.2)
    assert entered.wait(600)
    other.join()


def test_no_limit_interrupts_a_compiler_or_counts_it() -> None:
    """A search that needs machine code in its midst gets it, whatever its time limit says."""
    outer = Guard(SearchLimits(timeout_s=2))
    share = Guard(SearchLimits(timeout_s=2), outer=outer)
    went_on = False

    def body() -> None:
        nonlocal went_on
        with share.stopped():
            deadline = outer.deadline
            threading.Event().wait(2.5)
            went_on = True
        assert outer.deadline - deadline >= 2.5 and share.seconds_left > 0
        while True:
            time.sleep(0.01)

    with pytest.raises(LimitReached):
        outer.watch(lambda: share.watch(body))
    assert went_on


def test_kernels_of_one_piece_of_work_change_together() -> None:
    """Not one by one in the midst of what may be interrupted."""
    one: Any = compiled.compiled(when_asked=True)(lambda x: x[0] + 1)
    two: Any = compiled.compiled(when_asked=True)(lambda x: x[0] + 2)
    array = np.ones(1, np.int64)
    both = Kernels(one, two, call=lambda: (one(array), two(array)))
    with engine(AUTO):
        one.spent_s = 2 * compiled.COMPILE_AFTER_S
        assert one(array) == 2 and not one.ready and both.due() and not both.ready
        both.get_ready()
        assert both.ready and one.ready and two.ready and not both.due()


def test_every_check_is_compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """What set-up compiles are the kernels of each table: log, shown ends, search and screen."""
    from fencepost.checkers import compile_all

    reached = []

    def first(kernel: Any, arguments: tuple[Any, ...]) -> Any:
        reached.append(kernel)
        with np.errstate(over="ignore"):
            return kernel.plain(*arguments)

    monkeypatch.setattr(compiled.Kernel, "_first", first)
    for kernels in (compile_all.SEARCH, compile_all.SCREEN):
        for kernel in kernels._kernels:
            monkeypatch.setattr(kernel, "ready", False)
    monkeypatch.setattr(bounds._worst, "ready", False)
    compile_all.compile_all()
    names = {kernel.py_func.__name__ for kernel in reached}
    assert {"_worst", "search", "begin", "rehash", "put_steps", "legal_keys"} <= names

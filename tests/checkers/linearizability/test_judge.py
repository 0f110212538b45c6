"""Verdicts of the general judge beyond the decision: limits, contradictions, clocks, models that go wrong."""

import time
from contextlib import contextmanager

import pytest
from attrs import evolve

from fencepost.checkers import compiled
from fencepost.checkers.compiled import Kernels
from fencepost.checkers.linearizability import (
    SearchLimits,
    judge_counted,
    judge_trace,
    linearizability_judge,
    search_engine,
)
from fencepost.checkers.linearizability.interned_steps import ModelError
from fencepost.checkers.linearizability.limits import Guard
from fencepost.checkers.models import Model, model_named
from fencepost.checkers.models.containers import Counter
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Claims, Trace
from tests.checkers import lab

SOON = 600
"""Seconds within which even a loaded machine has noticed a limit; no test waits for it unless something is
broken."""


def operation(op_id: int, function: str, invoke: int, complete: int | None, **columns) -> Operation:
    outcome = Outcome.UNKNOWN if complete is None else Outcome.OK
    return lab.operation(op_id, Function(function), invoke, complete, outcome=outcome, **columns)


def trace_of(*operations: Operation, **columns) -> Trace:
    return lab.trace(operations, **columns)


def writes(count: int, *, last: int) -> Trace:
    """So many concurrent adds of powers of two, and a read of what they can only sum up to in one way, or in
    none."""
    adds = [operation(i, "add", 0, 10, argument=str(2**i)) for i in range(count)]
    return trace_of(*adds, operation(count, "read", 0, 5, result=str(last)))


class Endless(Model):
    """A step that never returns, whatever is raised inside that is an ordinary exception."""

    functions = frozenset({"add", "read"})

    def step(self, state, call):
        while True:
            try:
                time.sleep(0.001)
            except Exception:
                continue


class Hungry(Model):
    """A step that takes more and more memory."""

    functions = frozenset({"add", "read"})

    def step(self, state, call):
        kept = []
        while True:
            kept.append(bytearray(1 << 20))


class Blind(Counter):
    """A counter that does not say what a state can still lead to, so that every sum is tried."""

    def reaches(self, state, call):
        return True


class Wrong(Model):
    """A step that raises."""

    functions = frozenset({"add", "read"})

    def step(self, state, call):
        return state[call.argument]


class Listed(Model):
    """States that cannot be hashed."""

    functions = frozenset({"add", "read"})

    def init(self):
        return []

    def step(self, state, call):
        if call.function == "read":
            return state if sum(state) == call.result else "no"
        return [*state, call.argument]


class ListedEqual(Listed):
    """The same, told how to compare: by what matters."""

    def step(self, state, call):
        from fencepost.checkers.models import IMPOSSIBLE

        after = super().step(state, call)
        return IMPOSSIBLE if after == "no" else after

    def equal(self, one, other):
        return sum(one) == sum(other)


@pytest.mark.parametrize(
    ("model", "limits", "says"),
    [
        (Endless(), SearchLimits(timeout_s=0.3), "time limit of 0.3 s"),
        (Hungry(), SearchLimits(timeout_s=SOON, memory_bytes=64 << 20), "memory limit of 64 MiB"),
        (Blind(), SearchLimits(timeout_s=0.5), "time limit of 0.5 s"),
        (Blind(), SearchLimits(timeout_s=SOON, memory_bytes=12 << 20), "memory limit of 12 MiB"),
        (Blind(), SearchLimits(timeout_s=SOON, nodes=1 << 14), "16,384 remembered"),
    ],
)
def test_limits_hold(model: Model, limits: SearchLimits, says: str) -> None:
    """A limit that is met makes the verdict Unknown and says which one: between steps, inside a slow or
    hungry one, and in the search."""
    verdict = judge_trace(writes(26, last=-1), model, limits)
    assert verdict.decision is Decision.UNKNOWN
    assert says in verdict.reason


def test_a_limit_does_not_take_back_a_finding(monkeypatch) -> None:
    """A history found illegal stays so when a limit is met while the proof is shrunk; the finding then names
    all operations."""

    def endless(*arguments):
        while True:
            time.sleep(0.001)

    monkeypatch.setattr(linearizability_judge, "explain", endless)
    verdict = judge_trace(writes(3, last=99), model_named("counter"), SearchLimits(timeout_s=0.3))
    assert verdict.decision is Decision.ILLEGAL
    assert set(verdict.findings[0].operations) == {0, 1, 2, 3}


def test_nothing_is_left_behind_by_a_limit() -> None:
    """After a limit was met the same process judges on as if nothing had been."""
    for _ in range(3):
        assert (
            judge_trace(writes(4, last=-1), Endless(), SearchLimits(timeout_s=0.05)).decision
            is Decision.UNKNOWN
        )
        assert judge_trace(writes(4, last=3), model_named("counter")).decision is Decision.OK


@pytest.mark.parametrize("model", [Wrong(), Listed()])
def test_a_model_that_goes_wrong_is_told(model: Model) -> None:
    """What a model raises, or states that cannot be told apart, is an error that names the model, not a
    verdict."""
    with pytest.raises(ModelError, match=type(model).__name__):
        judge_trace(writes(2, last=3), model)


@pytest.mark.parametrize(("last", "decision"), [(3, Decision.OK), (5, Decision.OK), (8, Decision.ILLEGAL)])
def test_states_compared_by_the_model(last: int, decision: Decision) -> None:
    """A model's own `equal` merges states that cannot be hashed."""
    assert judge_trace(writes(3, last=last), ListedEqual()).decision is decision


def test_contradictions_are_no_verdict() -> None:
    """Broken assumptions, unknown functions, completions before invocations and unreadable values are
    Assumption broken, with the reason."""
    good = operation(0, "add", 0, 1, argument="1")
    bad = [
        (trace_of(good, claims=Claims(assumption_broken="too weak")), "too weak"),
        (trace_of(operation(0, "write", 0, 1)), "functions of the model counter: add, read, saw write"),
        (trace_of(operation(3, "add", 5, 1, argument="1")), "operation 3: expected a completion"),
        (trace_of(operation(3, "add", 5, 6, argument="{")), "argument of operation 3: expected JSON"),
    ]
    for trace, says in bad:
        verdict = judge_trace(trace, model_named("counter"))
        assert verdict.decision is Decision.ASSUMPTION_BROKEN
        assert says in verdict.reason


def test_nothing_to_judge_is_ok() -> None:
    """No operations, or none that says anything, contradict nothing."""
    lost_read = operation(0, "read", 0, None)
    failed = evolve(operation(1, "add", 0, 1, argument="1"), outcome=Outcome.FAIL)
    for trace in (
        trace_of(),
        trace_of(lost_read, failed),
        trace_of(operation(0, "add", 0, None, argument="1")),
    ):
        assert judge_trace(trace, model_named("counter")).decision is Decision.OK


def test_uncertain_clocks_are_not_blamed() -> None:
    """What is illegal only by stamps that may err is Unknown; with exact clocks, or one clock, it is
    Illegal."""
    read = operation(1, "read", 0, 1, result="1")
    add = evolve(operation(0, "add", 5, 6, argument="1"), clock_id=1)
    exact, skewed = Claims(), Claims(clock_uncertainty_ns=3)
    model = model_named("counter")
    assert judge_trace(trace_of(add, read, claims=exact), model).decision is Decision.ILLEGAL
    assert judge_trace(trace_of(add, read, claims=skewed), model).decision is Decision.UNKNOWN
    assert (
        judge_trace(trace_of(evolve(add, clock_id=0), read, claims=skewed), model).decision
        is Decision.ILLEGAL
    )
    far = Claims(clock_uncertainty_ns=1)
    assert judge_trace(trace_of(add, read, claims=far), model).decision is Decision.ILLEGAL


def test_a_finding_says_how_far_an_order_goes() -> None:
    """The finding names the longest prefix, the operation that fits nowhere, and the minimal set, the culprit
    first."""
    trace = trace_of(
        operation(0, "write", 0, 1, argument="1"),
        operation(1, "write", 2, 3, argument="2"),
        operation(2, "read", 4, 5, result="2"),
        operation(3, "read", 6, 7, result="1"),
    )
    (finding,) = judge_trace(trace, model_named("register")).findings
    assert finding.operations[0] == 3 and len(finding.operations) == 3
    assert "the first 3 completions can be ordered" in finding.seen
    assert "read() -> 1 of process 3" in finding.seen


def many_unknown(count: int, *, value: int) -> Trace:
    """Writes of five values by five processes, every tenth with an unknown outcome, between reads; the last
    read answers `value`."""
    operations = []
    for i in range(count):
        lost = i % 10 == 7
        operations.append(operation(2 * i, "write", 4 * i, None if lost else 4 * i + 9, argument=str(i % 5)))
        if i % 10 == 3:
            operations.append(operation(2 * i + 1, "read", 4 * i + 10, 4 * i + 11, result=str(i % 5)))
    return trace_of(
        *operations, operation(2 * count, "read", 4 * count + 99, 4 * count + 100, result=str(value))
    )


def test_unknown_outcomes_do_not_blow_up() -> None:
    """A hundred writes with unknown outcomes among a thousand: symmetric ones are ordered and dominated
    configurations pruned, so both verdicts need a number of steps that is linear in the history."""
    model = model_named("register")
    legal, illegal = (
        judge_counted(many_unknown(1000, value=v), model, SearchLimits(timeout_s=SOON)) for v in (2, 9)
    )
    assert (legal.verdict.decision, illegal.verdict.decision) == (Decision.OK, Decision.ILLEGAL)
    assert legal.steps < 20_000
    assert illegal.steps < 200_000


def test_no_limit_falls_into_the_import_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: the question whether machine code pays may import numba, so limits are suspended while it is
    asked. An import that is interrupted leaves half of numba in the process, and every later search fails."""
    suspended: list[bool] = []
    stopped = Guard.stopped

    @contextmanager
    def noted(guard: Guard):
        with stopped(guard):
            suspended.append(True)
            yield
            suspended.append(False)

    class Asked:
        ready = False

        def near(self) -> bool:
            return True

        def due(self) -> bool:
            assert suspended[-1]
            return False

    monkeypatch.setattr(Guard, "stopped", noted)
    monkeypatch.setattr(search_engine, "KERNELS", Asked())
    assert judge_trace(writes(2, last=3), model_named("counter")).decision is Decision.OK
    assert suspended and not suspended[-1]


def test_a_kernel_that_is_near_is_asked_for() -> None:
    """Rule: `near` never misses a moment at which `due` would say yes, and costs nothing before."""
    kernels = Kernels(call=lambda: None)
    assert kernels.ready and not kernels.near() and not kernels.due()
    slow = compiled.Kernel(lambda: None, when_asked=True)
    kernels = Kernels(slow, call=lambda: None)
    assert not kernels.near()
    slow.spent_s = compiled.COMPILE_AFTER_S + 1
    with compiled.engine(compiled.AUTO):
        assert kernels.near() and kernels.due()
    with compiled.engine(compiled.PLAIN):
        assert not kernels.near() and not kernels.due()
    with compiled.engine(compiled.COMPILED):
        assert kernels.near() and kernels.due()

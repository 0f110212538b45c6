"""Workloads: for each, a history that shows what it must not, and one that does not."""

import json
from typing import Any

import pytest

from fencepost.checkers.linearizability.applicable_models import lacks_model, listed
from fencepost.checkers.models.workloads import WORKLOADS, workload_named
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

Step = tuple[str, Any, Any, str]
"""Function, argument, result, outcome."""


def history(*steps: Step, process: int = 0) -> Trace:
    """Operations one after another, of one process."""
    rows = tuple(
        Operation(
            op_id=number,
            process=process,
            function=Function(function),
            invoke_time=10 * number,
            completion_time=None if outcome == "unknown" else 10 * number + 5,
            outcome=Outcome(outcome),
            argument=None if asked is None else json.dumps(asked),
            result=None if answered is None else json.dumps(answered),
        )
        for number, (function, asked, answered, outcome) in enumerate(steps)
    )
    return Trace(trace_id=0, plan="", seed=0, software_version="", operations=rows)


def put(value: Any, outcome: str = "ok", function: str = "enqueue") -> Step:
    """One element goes in."""
    return function, value, None, outcome


def out(value: Any, function: str = "dequeue") -> Step:
    """What comes out."""
    return function, None, value, "ok"


def read(value: Any) -> Step:
    """What is read."""
    return "read", None, value, "ok"


CASES: dict[str, tuple[str, dict[str, Any], list[Step], str]] = {
    "drained": ("total-queue", {}, [put(1), put(2), out(1), out([2], "drain")], ""),
    "lost": ("total-queue", {}, [put(1), put(2), out(1), out([], "drain")], "element_lost"),
    "published": (
        "total-queue",
        {},
        [put("a", function="publish"), put("b", function="publish"), out(["b"], "fetch")],
        "element_lost",
    ),
    "unknown may come out": ("total-queue", {}, [put(1, "unknown"), out(1)], ""),
    "unknown may not": ("total-queue", {}, [put(1, "unknown"), out([], "drain")], ""),
    "failed comes out": ("total-queue", {}, [put(1, "fail"), out(1)], "element_from_nowhere"),
    "from nowhere": ("total-queue", {}, [out(1)], "element_from_nowhere"),
    "from the future": ("total-queue", {}, [out(1), put(1)], "element_from_nowhere"),
    "twice": ("total-queue", {}, [put(1), out(1), out(1)], ""),
    "twice and once": ("total-queue", {"once": True}, [put(1), out(1), out(1)], "element_repeated"),
    "put twice": ("total-queue", {"once": True}, [put(1), put(1), out(1), out(1)], ""),
    "a map is one element": ("total-queue", {}, [put({"a": 1}), out({"a": 1})], ""),
    "all there": ("final-set", {}, [put(1, function="add"), put(2, function="add"), read([2, 1])], ""),
    "one gone": ("final-set", {}, [put(1, function="add"), read([1]), read([])], "element_lost"),
    "none read": ("final-set", {}, [put(1, function="add")], ""),
    "added after": ("final-set", {}, [read([1]), put(1, function="add")], "element_from_nowhere"),
    "ids": ("unique-ids", {}, [out(1, "generate"), out(2, "generate")], ""),
    "id again": (
        "unique-ids",
        {},
        [out(1, "generate"), out(2, "generate"), out(1, "generate")],
        "id_repeated",
    ),
    "balanced": ("bank", {}, [read({"0": 5, "1": 5}), read({"0": 0, "1": 10})], ""),
    "created": ("bank", {}, [read({"0": 5, "1": 5}), read({"0": 5, "1": 10})], "total_changed"),
    "another total": ("bank", {"total": 20}, [read({"0": 5, "1": 5})], "total_changed"),
    "overdrawn": ("bank", {"negative": False}, [read({"0": -5, "1": 5})], "total_changed"),
    "may be overdrawn": ("bank", {}, [read({"0": -5, "1": 5})], ""),
    "account gone": ("bank", {}, [read({"0": 5, "1": 0}), read({"0": 5})], "total_changed"),
    "grows": ("monotonic", {}, [out(1, "inc"), read(1), out(2, "inc"), read(2)], ""),
    "falls": ("monotonic", {}, [out(2, "inc"), read(1)], "value_regressed"),
    "says nothing": ("monotonic", {}, [put(None, function="inc"), read(0)], ""),
    "one order": (
        "long-fork",
        {},
        [read([["r", "x", 1], ["r", "y", None]]), read([["r", "x", 1], ["r", "y", 1]])],
        "",
    ),
    "two orders": (
        "long-fork",
        {},
        [read([["r", "x", 1], ["r", "y", None]]), read([["r", "x", None], ["r", "y", 1]])],
        "long_fork",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_workload_finds_what_it_must_and_no_more(name: str) -> None:
    """Rule: one verdict for each history, with a proof of operations that are in it."""
    workload, parameters, steps, anomaly = CASES[name]
    verdict = workload_named(workload, parameters).judge(history(*steps))
    assert verdict.anomaly == (anomaly or None)
    assert verdict.decision is (Decision.ILLEGAL if anomaly else Decision.OK)
    assert all(set(finding.operations) <= set(range(len(steps))) for finding in verdict.findings)
    assert all(finding.operations for finding in verdict.findings)


@pytest.mark.parametrize(
    ("steps", "decision", "sentence"),
    [
        (
            [put(1), ("dequeue", None, None, "unknown"), out([], "drain")],
            "assumption_broken",
            "without an answer",
        ),
        ([put(1), ("drain", None, None, "unknown")], "assumption_broken", "nobody looked"),
        (
            [put(1), put(2), ("drain", None, None, "unknown"), out(None)],
            "assumption_broken",
            "without an answer",
        ),
        ([put(1), put(2), ("dequeue", None, None, "unknown"), out(None)], "illegal", ""),
        ([put(1), ("dequeue", None, None, "fail"), out(None)], "illegal", ""),
        ([out(None), put(1)], "assumption_broken", "nobody looked"),
        ([put(1), out(None), put(2)], "illegal", ""),
        ([put(1, "fail"), out(1), put(2)], "illegal", ""),
    ],
)
def test_a_loss_is_proven_or_not_said(steps: list[Step], decision: str, sentence: str) -> None:
    """Rule: an element is lost if somebody looked after it was acknowledged, and more are missing than
    operations without an answer may have taken; otherwise the history does not tell."""
    verdict = workload_named("total-queue").judge(history(*steps))
    assert (verdict.decision.value, sentence in verdict.reason) == (decision, True)


@pytest.mark.parametrize(
    ("workload", "step", "sentence"),
    [
        ("total-queue", put(None), "an element to enqueue"),
        ("bank", read([1]), "balances by account"),
        ("bank", read({"0": "much"}), "a whole number as balance"),
        ("final-set", read(1), "a list of elements"),
        ("monotonic", read("x"), "a number"),
        ("long-fork", read([["q", 1, 1]]), "with f r or w"),
        ("unique-ids", read(1), "a function of unique-ids"),
    ],
)
def test_what_makes_no_sense_is_said(workload: str, step: Step, sentence: str) -> None:
    """Rule: nothing follows from such a history, and the sentence names the operation."""
    verdict = workload_named(workload).judge(history(step))
    assert verdict.decision is Decision.ASSUMPTION_BROKEN
    assert sentence in verdict.reason and "operation 0" in verdict.reason


def test_sessions_of_a_counter() -> None:
    """Rule: with sessions=true only answers of one process are compared."""
    first = history(out(2, "inc"))
    second = history(put(None, function="inc"), read(1), process=1)
    trace = Trace(
        trace_id=0,
        plan="",
        seed=0,
        software_version="",
        operations=(*first.operations, *second.operations[1:]),
    )
    assert workload_named("monotonic").judge(trace).anomaly == "value_regressed"
    assert workload_named("monotonic", {"sessions": True}).judge(trace).anomaly is None


def test_wrong_parameters_are_one_sentence() -> None:
    """Rule: the sentence names those that there are."""
    with pytest.raises(FencepostError, match=r"its parameters \(total, negative\)"):
        workload_named("bank", {"sum": 1})


def test_a_history_without_a_question_is_told_what_fits() -> None:
    """Rule: models and workloads that know all functions; for what nothing knows, a model of one's own."""
    assert "total-queue" in lacks_model(history(put("a", function="publish")).operations)
    assert "MODULE:CLASS" in lacks_model(history(put("a", function="frobnicate")).operations)
    assert "rw-register" in lacks_model(history(("txn", [["w", 1, 1]], None, "ok")).operations)
    assert {row["name"] for row in listed()} > set(WORKLOADS)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_history_in_which_nothing_succeeded_is_not_ok(name):
    """Rule: a history that proves nothing is not called ok, by no workload."""
    function = next(iter(workload_named(name).functions))
    empty = workload_named(name).judge(history())
    failed = workload_named(name).judge(history((function, None, None, "fail")))
    assert empty.decision is failed.decision is Decision.ASSUMPTION_BROKEN
    assert "the history proves nothing" in empty.reason

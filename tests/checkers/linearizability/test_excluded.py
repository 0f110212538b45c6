"""A failed operation that would explain a finding, had it happened, is named; the verdict stays."""

from typing import Any

import pytest

from fencepost.checkers.linearizability import judge_trace
from fencepost.checkers.models import model_named
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.report.processes import excluded_words, process_lanes
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace
from tests.checkers import lab

OK, FAIL = Outcome.OK, Outcome.FAIL
WRITE, READ, CAS = Function.WRITE, Function.READ, Function.CAS


def made(
    op_id: int, function: Function, begin: int, end: int, outcome: Outcome = OK, **more: Any
) -> Operation:
    """An operation of a process of its own."""
    return lab.operation(op_id, function, begin, end, outcome=outcome, **more)


def judged(*operations: Operation, model: str = "register") -> tuple[Trace, Verdict]:
    """The trace, and what is said of it."""
    trace = lab.trace(operations, trace_id=1, seed=0)
    return trace, judge_trace(trace, model_named(model, {}, where="here"))


FIVE = made(0, WRITE, 0, 1, argument="5")


def test_a_time_out_that_was_recorded_as_a_failure_is_named_and_drawn() -> None:
    timed_out = made(1, WRITE, 2, 3, FAIL, argument="638", error="timeout")
    trace, verdict = judged(FIVE, timed_out, made(2, READ, 4, 5, result="638"))
    assert verdict.decision is Decision.ILLEGAL
    (finding,) = verdict.findings
    assert (finding.operations, finding.excluded) == ((2,), (1,))
    assert excluded_words(trace, finding) == (
        "  had it happened, operation 1 would explain this: write(638) failed (timeout); "
        "a time-out is no failure"
    )
    assert "write(638) failed" in process_lanes(trace, (*finding.operations, *finding.excluded))


@pytest.mark.parametrize(
    "failed",
    [
        made(1, WRITE, 6, 7, FAIL, argument="638"),  # it began after the read had ended
        made(1, WRITE, 2, 3, FAIL, argument="637"),
        made(1, READ, 2, 3, FAIL),
    ],
    ids=["later", "another value", "a read"],
)
def test_what_would_explain_nothing_is_not_named(failed: Operation) -> None:
    _, verdict = judged(FIVE, failed, made(2, READ, 4, 5, result="638"))
    assert verdict.decision is Decision.ILLEGAL
    assert verdict.findings[0].excluded == ()


def test_a_failed_write_explains_what_others_then_read() -> None:
    """The latest of several that would do comes first, and each alone resolves the contradiction."""
    writes = [made(n, WRITE, 2 * n, 2 * n + 1, FAIL, argument="7") for n in (1, 2)]
    _, verdict = judged(FIVE, *writes, made(5, READ, 10, 11, result="7"), made(6, READ, 12, 13, result="7"))
    assert verdict.findings[0].excluded == (2, 1)


def test_a_failed_cas_explains_too() -> None:
    failed = made(1, CAS, 2, 3, FAIL, argument="[5,9]", error="timeout")
    _, verdict = judged(FIVE, failed, made(2, READ, 4, 5, result="9"), model="cas-register")
    assert verdict.findings[0].excluded == (1,)


def test_a_legal_history_has_nothing_to_explain() -> None:
    _, verdict = judged(FIVE, made(1, WRITE, 2, 3, FAIL, argument="6"), made(2, READ, 4, 5, result="5"))
    assert verdict.decision is Decision.OK

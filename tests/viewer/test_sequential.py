"""The longest order of a history that no order explains: legal, in real time, and nothing more fits."""

import random

import pytest

from fencepost.checkers.linearizability import judge_trace
from fencepost.checkers.models import model_named
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.viewer.sequential import MOST_DRAWN, sequential_of
from tests.checkers import lab


def history(seed, operations, *, wrong):
    """A register's history of four clients; wrong: one read answers what was overwritten before it began."""
    chance = random.Random(seed)
    rows, time, value = [], 0, 0
    for number in range(operations):
        time += chance.randint(1, 9)
        length = chance.randint(1, 6)
        if number % 3 == 0:
            value = number + 1
            said = {"function": Function.WRITE, "argument": str(value)}
        else:
            said = {"function": Function.READ, "result": str(value)}
        if wrong and number == operations - 5:
            said = {"function": Function.READ, "result": "1"}
        unknown = said["function"] is Function.READ and chance.random() < 0.1
        rows.append(
            Operation(
                op_id=number,
                process=number % 4,
                invoke_time=time,
                completion_time=None if unknown else time + length,
                outcome=Outcome.UNKNOWN if unknown else Outcome.OK,
                **said,
            )
        )
        time += length
    return lab.trace(rows, trace_id=1, seed=0)


def drawn(trace):
    """The one part of the picture, and the findings."""
    model = model_named("register")
    findings = judge_trace(trace, model).findings
    picture = sequential_of(trace, model, findings)
    (part,) = picture["parts"]
    return part, findings


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_one_that_a_register_allows_and_keeps_real_time(seed):
    """A register of a dict's worth of code walks the order; each operation happens inside its interval, none
    before one that happened before it."""
    trace = history(seed, 40, wrong=True)
    part, _ = drawn(trace)
    by_id = {operation.op_id: operation for operation in trace.operations}
    state = None
    for op_id, point, told in zip(part["order"], part["points"], part["states"], strict=True):
        operation = by_id[op_id]
        if operation.function is Function.WRITE:
            state = operation.argument
        elif operation.outcome is Outcome.OK:
            assert operation.result == state
        assert told == (f"{state}" if state is not None else "null")
        assert operation.invoke_time - trace.operations[0].invoke_time <= point
        if operation.completion_time is not None:
            assert point <= operation.completion_time - trace.operations[0].invoke_time
    assert part["points"] == sorted(part["points"])
    culprit = by_id[int(part["culprit"])]
    assert culprit.result != state and culprit.op_id not in part["order"]


def test_the_proof_is_the_findings(shown):
    """What the judge convicts is marked."""
    part, findings = drawn(history(1, 40, wrong=True))
    assert sorted(part["proof"]) == sorted(findings[0].operations)


def test_a_legal_history_has_no_culprit():
    """Every operation that must happen has its place."""
    trace = history(2, 30, wrong=False)
    part, findings = drawn(trace)
    assert findings == () and part["culprit"] is None
    assert {o.op_id for o in trace.operations if o.outcome is Outcome.OK} <= set(part["order"])


def test_a_long_history_is_drawn_by_its_end():
    """The last operations of the order, and the state before them."""
    part, _ = drawn(history(3, 900, wrong=True))
    assert len(part["order"]) == MOST_DRAWN and part["skipped"] > 700
    assert part["initial"] not in ("", "null")
    assert len(part["operations"]) <= 3 * MOST_DRAWN

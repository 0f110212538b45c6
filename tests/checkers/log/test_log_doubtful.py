"""What one operation does not say costs only that operation: a loss next to it is still found."""

from typing import Any

import pytest
from attrs import evolve

from fencepost.checkers.log import judge_trace
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace
from tests.checkers import lab

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


def append(op_id: int, value: int, offset: int | None, outcome: Outcome = OK, **more: Any) -> Operation:
    """An append of one record to t-0 that took 5 ns."""
    columns: dict[str, Any] = {"topic": "t", "partition": 0, "acks": -1}
    columns["records"] = lab.records(value, begin=-1)
    return lab.operation(
        op_id,
        Function.APPEND,
        10 * op_id,
        None if outcome is UNKNOWN else 10 * op_id + 5,
        process=1,
        outcome=outcome,
        offset=offset,
        **columns | more,
    )


def read(op_id: int, *values: int, end: int | None = None, topic: str = "t") -> Operation:
    """A strong read of the log from its beginning."""
    return lab.operation(
        *(op_id, Function.POLL, 10 * op_id, 10 * op_id + 5),
        process=2,
        topic=topic,
        partition=0,
        offset=0,
        end_offset=len(values) if end is None else end,
        strong=True,
        records=lab.records(*values, topic=topic),
    )


def trace(*operations: Operation) -> Trace:
    """A trace of these."""
    return lab.trace(operations, trace_id=1, seed=0)


def said(*operations: Operation) -> Verdict:
    """The verdict on a trace of these."""
    return judge_trace(trace(*operations))


SENT_AGAIN = (append(0, 1, 0), append(1, 2, None, FAIL, error="NOT_ENOUGH_REPLICAS"), append(2, 2, 1))


def test_a_value_that_was_refused_and_sent_again_was_sent_once() -> None:
    verdict = said(*SENT_AGAIN, append(3, 3, 2), read(4, 1, 2, 3))
    assert verdict.decision is Decision.OK, verdict


def test_a_loss_after_a_value_that_was_refused_and_sent_again_is_found() -> None:
    verdict = said(*SENT_AGAIN, append(3, 3, 2), read(4, 1, 2))
    assert verdict.anomaly == "lost_write"


TWICE = (append(0, 1, 0), append(1, 2, None, UNKNOWN), append(2, 2, 1))
"""Value 2 may be in the log twice."""


def test_a_loss_next_to_a_value_that_was_sent_twice_comes_first() -> None:
    verdict = said(*TWICE, append(3, 3, 2), read(4, 1, 2))
    assert verdict.anomaly == "lost_write"
    assert "value 2 was sent twice" in verdict.reason


@pytest.mark.parametrize("values", [(1, 2, 3), (1, 2, 3, 2)])
def test_a_value_that_was_sent_twice_convicts_nobody(values: tuple[int, ...]) -> None:
    """Whether it is there once or twice, nothing follows from it."""
    verdict = said(*TWICE, append(3, 3, 2), read(4, *values))
    assert verdict.decision is Decision.ASSUMPTION_BROKEN, verdict
    assert "value 2 was sent twice" in verdict.reason


def test_an_acknowledgement_without_an_offset_hides_no_loss() -> None:
    """Such an append may be anywhere in the log; the others are judged."""
    silent = append(1, 2, None)
    verdict = said(append(0, 1, 0), silent, append(2, 3, 1), read(4, 1))
    assert verdict.anomaly == "lost_write"
    assert "operation 1 is an append with acks=all and ok but has no offset" in verdict.reason
    verdict = said(append(0, 1, 0), silent, append(2, 3, 2), read(4, 1, 2, 3))
    assert verdict.decision is Decision.ASSUMPTION_BROKEN, verdict
    assert not verdict.findings


def test_a_read_that_names_no_offset_is_left_out() -> None:
    """What another read shows is judged."""
    strange = read(3, 9, 8, 7)
    strange = evolve(strange, records=tuple(evolve(one, offset=-1) for one in strange.records))
    lost = judge_trace(trace(append(0, 1, 0), append(1, 2, 1), strange, read(4, 1)))
    assert [finding.anomaly for finding in lost.findings] == ["lost_write"]
    assert lost.reason == "operation 3 read a record that has no offset"
    well = judge_trace(trace(append(0, 1, 0), append(1, 2, 1), strange, read(4, 1, 2)))
    assert well.decision is Decision.ASSUMPTION_BROKEN


def test_times_that_contradict_themselves_still_convict_nobody() -> None:
    """After such an operation no time of the trace means anything."""
    backwards = evolve(append(5, 5, 3), completion_time=1)
    verdict = judge_trace(trace(append(0, 1, 0), append(1, 2, 1), read(4, 1), backwards))
    assert verdict.decision is Decision.ASSUMPTION_BROKEN
    assert not verdict.findings

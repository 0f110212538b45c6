"""Clients ask for the first record since a time, and what a run records of it is judged."""

import pytest

from fencepost.checkers.liveness import counts_of, judge
from fencepost.impl.log.readable_log import ReadableLog
from fencepost.run.simulated.run import run
from fencepost.traces.operations import BY_TIME, Outcome
from fencepost.traces.plan import Plan, PlannedOperation

APPENDS = tuple(
    PlannedOperation(op_id=number, process=0, at_ms=number * 200, function="append")
    for number in range(1, 21)
)
ASKED = tuple(
    PlannedOperation(
        op_id=100 + number,
        process=1,
        at_ms=4_500 + number * 100,
        function="list_offsets",
        argument=BY_TIME,
        records=10 + number,
    )
    for number in range(1, 6)
)
PLAN = Plan(seed=7, safety_ms=8_000, operations=APPENDS + ASKED)
ROWS = {"record_of_another_time", "record_skipped_by_time"}


def found(plan: Plan) -> set[str]:
    """What is said of the answers by time."""
    return {finding.anomaly for finding in judge(run(plan)).findings} & ROWS


def test_answers_by_time_are_recorded_and_judged() -> None:
    """Each answer is in the trace, and both rows are asked about it."""
    trace = run(PLAN)
    asked = [one for one in trace.operations if one.argument == BY_TIME]
    assert len(asked) == 5 and all(one.result and one.outcome is Outcome.OK for one in asked)
    counts = counts_of(trace)
    assert all(counts[row].judged >= 5 for row in ROWS)
    assert found(PLAN) == set()


@pytest.mark.parametrize(
    ("later", "anomaly"), [(300, "record_skipped_by_time"), (-300, "record_of_another_time")]
)
def test_a_broker_that_looks_up_another_time_is_found(
    monkeypatch: pytest.MonkeyPatch, later: int, anomaly: str
) -> None:
    """Planted: the index of times is read at another place than the one that was asked for."""
    find = ReadableLog.find_timestamp

    def elsewhere(log: ReadableLog, timestamp_ms: int, *, end_offset: int) -> object:
        return find(log, timestamp_ms + later, end_offset=end_offset)

    monkeypatch.setattr(ReadableLog, "find_timestamp", elsewhere)
    assert anomaly in found(PLAN)

"""Leaders are asked where the epochs of their logs end, and what a run records of it is judged."""

import json

import pytest

from fencepost.checkers.liveness import counts_of, judge
from fencepost.impl.log.checkpoint.leader_epoch_cache import LeaderEpochCache
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name, Question
from fencepost.traces.plan import Fault, Plan, PlannedOperation

APPENDS = tuple(
    PlannedOperation(op_id=number, process=0, at_ms=number * 100, function="append")
    for number in range(1, 60)
)
RESTARTS = tuple(
    Fault(
        fault_id=number, at_ms=number * 1_500, kind="clean_restart", target="leader of t-0", duration_ms=300
    )
    for number in (1, 2)
)
PLAN = Plan(seed=7, safety_ms=8_000, operations=APPENDS, faults=RESTARTS)
ROW = "wrong_epoch_end"


def found(plan: Plan) -> set[str]:
    """What is said of epoch ends."""
    return {finding.anomaly for finding in judge(run(plan)).findings} & {ROW}


def test_epoch_ends_are_recorded_and_judged() -> None:
    """Every round asks, also for epochs before the leader's, and the row is asked about each answer."""
    trace = run(PLAN)
    ends = [
        json.loads(event.detail)["ends"]
        for event in trace.events
        if event.name is Name.ASKED and event.cause == Question.EPOCHS and event.topic == "t"
    ]
    assert max(len(one) for one in ends) >= 3
    assert counts_of(trace)[ROW].judged >= sum(len(one) for one in ends)
    assert found(PLAN) == set()


@pytest.mark.parametrize("beyond", [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_broker_that_names_another_epoch_or_end_is_found(
    monkeypatch: pytest.MonkeyPatch, beyond: tuple[int, int]
) -> None:
    """Planted: an epoch before the latest is read one place too far, or its end is."""
    end_offset = LeaderEpochCache.end_offset

    def elsewhere(cache: LeaderEpochCache, epoch: int, log_end_offset: int) -> tuple[int, int]:
        known, end = end_offset(cache, epoch, log_end_offset)
        past = 0 < known < cache.latest_epoch()
        return (known + beyond[0], end + beyond[1]) if past else (known, end)

    monkeypatch.setattr(LeaderEpochCache, "end_offset", elsewhere)
    assert found(PLAN) == {ROW}

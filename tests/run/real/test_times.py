"""Answers by time of real systems are in the trace's time."""

import json

from fencepost.campaign.swarm.real_systems import PROFILES, swarm_for_real
from fencepost.run.real.times import in_trace_time
from fencepost.traces.operations import BY_TIME, Function, Operation, Outcome

DAY = 86_400_000_000_000


def answer(**said) -> Operation:
    """Of a client."""
    return Operation(
        op_id=1,
        process=0,
        function=Function.LIST_OFFSETS,
        invoke_time=0,
        outcome=Outcome.OK,
        argument=BY_TIME,
        result=json.dumps({"from_ms": 86_402_000, **said}),
    )


def test_the_clock_of_the_client_is_taken_off() -> None:
    """And how far apart the clocks of clients are, one of which stamped the record, is said."""
    row = in_trace_time(
        answer(offset=5, timestamp_ms=86_402_500, leader_epoch=0),
        DAY + 300,
        (DAY, DAY + 300, DAY + 1_000_001),
    )
    said = json.loads(row.result or "")
    assert (said["from_ms"], said["timestamp_ms"], said["within_ms"]) == (1_999, 2_499, 3)


def test_no_record_has_no_time() -> None:
    """-1 stays -1."""
    said = json.loads(in_trace_time(answer(offset=-1, timestamp_ms=-1), DAY, (DAY,)).result or "")
    assert (said.get("timestamp_ms", -1), said["from_ms"]) == (-1, 2_000)


def test_another_operation_stays_as_it_is() -> None:
    """An end has no time."""
    row = Operation(op_id=1, process=0, function=Function.LIST_OFFSETS, invoke_time=0, outcome=Outcome.OK)
    assert in_trace_time(row, DAY, (DAY,)) is row


def test_plans_of_real_systems_ask_by_time() -> None:
    """In each profile, now and then."""
    for name in PROFILES:
        plans = [swarm_for_real(seed, profile=name) for seed in range(20)]
        asked = [one for plan in plans for one in plan.operations if one.argument == BY_TIME]
        assert 1 <= len(asked) < sum(len(plan.operations) for plan in plans) / 20, name
        assert all(1 <= one.records <= 300 for one in asked)

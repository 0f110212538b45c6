"""A member that waits for its coordinator is not silent."""

import pytest
from attrs import evolve

from fencepost.checkers.meantime import judge
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import ClusterOptions, ConsumerOptions, NetworkOptions, Plan, PlannedOperation
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace

SECOND = 1_000_000_000
JOIN = Operation(
    op_id=1,
    process=4,
    function=Function.JOIN,
    group="g",
    member="m",
    invoke_time=30 * SECOND,
    completion_time=33 * SECOND,
    outcome=Outcome.FAIL,
    error="UNKNOWN_MEMBER_ID",
)


def found(
    *events: Event, join: Operation = JOIN, moves: tuple[PlannedOperation, ...] = (), **network: int
) -> bool:
    """Whether the member that was forgotten convicts; its session lasts two seconds."""
    plan = Plan(
        seed=1,
        cluster=ClusterOptions(),
        network=NetworkOptions(**{"latency_max_us": 1_000, **network}),
        consumer=ConsumerOptions(session_timeout_ms=2_000),
        operations=moves,
    )
    trace = Trace(
        trace_id=1,
        plan=plan_to_json(plan),
        seed=1,
        software_version="0",
        events=(Event(time=0, name=Name.PHASE, cause="safety"), *events),
        operations=(join,),
        concurrent_processes=True,
    )
    return "needless_expulsion" in {one.anomaly for one in judge(trace).findings}


def happened(name: Name, at: int) -> Event:
    return Event(time=at * SECOND, name=name, node=1, cause="loss", detail='{"fault":1}')


def test_who_waits_is_not_expelled() -> None:
    """Rule (JUSTIFIED): if it waited for a session, whatever was broken before."""
    assert found()
    assert found(happened(Name.FAULT_BEGAN, 20), happened(Name.FAULT_ENDED, 29))
    assert found(happened(Name.FAULT_BEGAN, 34))
    assert not found(join=evolve(JOIN, completion_time=31 * SECOND))  # it was forgotten before
    assert not found(join=evolve(JOIN, error="NOT_COORDINATOR"))
    assert not found(join=evolve(JOIN, member=None))


@pytest.mark.parametrize(
    "name", [Name.FAULT_BEGAN, Name.BROKER_ZNODE, Name.BECAME_LEADER, Name.GROUPS_LOADED]
)
def test_what_excuses(name: Name) -> None:
    """Rule: something that happens while it waits, or a fault that lasts."""
    assert not found(happened(name, 31))
    assert not found(happened(Name.FAULT_BEGAN, 20))


def test_a_process_that_does_not_run_is_silent() -> None:
    """Rule: its own pause or crash, nobody else's. Nor is a network asked that is slower than its session."""
    pause = PlannedOperation(op_id=9, process=4, at_ms=29_000, function="pause", records=30, key="g")
    assert not found(moves=(pause,))
    assert found(moves=(evolve(pause, process=5),))
    assert found(moves=(evolve(pause, at_ms=20_000),))
    assert not found(loss_ppm=1)
    assert not found(latency_min_us=500_000, latency_max_us=590_000)

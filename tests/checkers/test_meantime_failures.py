"""A client tries for its delivery time-out."""

import pytest

from fencepost.checkers.meantime import judge
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import ClientOptions, Plan, ProducerOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace

MS = 1_000_000
PATIENCE_MS = 6_000
JUMP = Event(time=0, name=Name.FAULT_BEGAN, node=1, cause="clock_jump", detail='{"fault":1}')


def found(
    took_ms: int | None, *events: Event, pipelined: bool = False, backoff_ms: int = 100, **columns: object
) -> bool:
    """Whether an operation that takes so long is convicted."""
    plan = Plan(
        seed=1,
        client=ClientOptions(
            delivery_timeout_ms=PATIENCE_MS,
            retry_backoff_ms=backoff_ms,
            producer=ProducerOptions(pipelined=pipelined),
        ),
    )
    facts = {
        "op_id": 7,
        "process": 0,
        "session": 0,
        "clock_id": 0,
        "function": Function.APPEND,
        "topic": "t",
        "partition": 0,
        "invoke_time": 5 * MS,
        "completion_time": None if took_ms is None else (5 + took_ms) * MS,
        "outcome": Outcome.FAIL,
        "error": "NOT_LEADER_OR_FOLLOWER",
        "attempts": 2,
        "acks": -1,
        **columns,
    }
    trace = Trace(
        trace_id=1,
        plan=plan_to_json(plan),
        seed=1,
        software_version="0",
        operations=(Operation(**facts),),  # type: ignore[arg-type]
        events=events,
    )
    return "needless_failure" in {one.anomaly for one in judge(trace).findings}


@pytest.mark.parametrize(
    "function", [Function.APPEND, Function.POLL, Function.LIST_OFFSETS, Function.DELETE_RECORDS]
)
def test_who_gives_up_early_is_found(function: Function) -> None:
    """Rule (JUSTIFIED): before delivery.timeout.ms an operation fails only for a final error; an unknown
    outcome, and a client that has not ended, are something else."""
    assert found(PATIENCE_MS - 1, function=function)
    assert not found(PATIENCE_MS, function=function)
    assert not found(100, function=function, error="MESSAGE_TOO_LARGE")
    assert not found(100, function=function, outcome=Outcome.UNKNOWN)
    assert not found(None, function=function)


def test_there_is_a_most_number_of_requests() -> None:
    """Rule (JUSTIFIED): 80 back-offs are over before the time is, if they are short."""
    assert found(790, backoff_ms=10)
    assert not found(800, backoff_ms=10)


def test_who_goes_on_too_long_is_found() -> None:
    """Rule (JUSTIFIED): the same bound; a pipelined producer's counts from the batch, so that none of its
    appends is asked."""
    assert found(PATIENCE_MS + 100)
    assert found(PATIENCE_MS + 100, outcome=Outcome.OK, error="")
    assert not found(PATIENCE_MS + 100, pipelined=True)
    assert not found(100, pipelined=True)
    assert found(PATIENCE_MS + 100, pipelined=True, function=Function.POLL)


def test_what_is_not_asked() -> None:
    """Rule: groups, the run's own operations, and runs in which a clock was wrong."""
    assert not found(100, JUMP)
    assert not found(100, group="g")
    assert not found(100, op_id=1_000_001)

"""A group does a record's work again only after a crash, an expulsion or a fault."""

import pytest

from fencepost.checkers.meantime import judge
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.plan import ClusterOptions, ConsumerOptions, NetworkOptions, Plan, PlannedOperation
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace

SECOND = 1_000_000_000
PHASES = tuple(
    Event(time=at * SECOND, name=Name.PHASE, cause=cause) for at, cause in ((1, "safety"), (90, "heal"))
)


def poll(at: int, member: str, generation: int, *offsets: int) -> Operation:
    """A poll of a member that returned these offsets."""
    return Operation(
        op_id=at,
        process=ord(member),
        function=Function.POLL,
        invoke_time=at * SECOND,
        completion_time=at * SECOND + 1_000_000,
        outcome=Outcome.OK,
        group="g",
        member=member,
        generation=generation,
        records=tuple(Record(topic="t", partition=0, offset=offset, value=offset) for offset in offsets),
    )


def found(
    *operations: Operation,
    commit: str = "auto",
    events: tuple[Event, ...] = (),
    moves: tuple[PlannedOperation, ...] = (),
    latency_us: int = 1_000,
) -> bool:
    """Whether work that was done again has no reason."""
    plan = Plan(
        seed=1,
        cluster=ClusterOptions(zookeeper_session_timeout_ms=1_000, replica_lag_time_max_ms=1_000),
        network=NetworkOptions(latency_min_us=latency_us, latency_max_us=latency_us + 500),
        consumer=ConsumerOptions(commit=commit),
        operations=moves,
    )
    trace = Trace(
        trace_id=1,
        plan=plan_to_json(plan),
        seed=1,
        software_version="0",
        events=tuple(sorted((*PHASES, *events), key=lambda event: event.time)),
        operations=operations,
        concurrent_processes=True,
    )
    return "needless_reprocessing" in {one.anomaly for one in judge(trace).findings}


FIRST = (poll(50, "a", 1, 0, 1), poll(52, "a", 1, 2, 3))


@pytest.mark.parametrize("commit", ["auto", "before", "sync", "async", "none"])
def test_what_a_member_got_is_committed_before_it_goes(commit: str) -> None:
    """Rule (JUSTIFIED): in modes auto and before nothing comes again, in mode sync no more than the former
    owner's last poll; the others promise nothing."""
    promises = commit in ("auto", "before")
    assert not found(*FIRST, poll(54, "b", 2, 4, 5), commit=commit)
    assert found(*FIRST, poll(54, "b", 2, 2, 3), commit=commit) is promises
    assert found(*FIRST, poll(54, "b", 2, 1, 2, 3), commit=commit) is (promises or commit == "sync")
    assert found(*FIRST, poll(54, "a", 2, 3), commit=commit) is promises


def test_what_explains_work_that_is_done_again() -> None:
    """Rule (JUSTIFIED): a fault, a coordinator that moved, offsets that expired, a crash or a pause; to leave
    is to commit, unless a commit takes longer than a process that leaves has."""
    again = (*FIRST, poll(54, "b", 2, 3))

    def event(name: Name) -> tuple[Event, ...]:
        return (Event(time=53 * SECOND, name=name, node=1, topic="t", partition=0, detail='{"fault":1}'),)

    def move(function: str) -> tuple[PlannedOperation, ...]:
        return (PlannedOperation(op_id=1, process=9, at_ms=52_000, function=function, key="g"),)

    assert found(*again)
    for name in (Name.FAULT_BEGAN, Name.BECAME_LEADER, Name.GROUP_OFFSET_EXPIRED, Name.GROUPS_LOADED):
        assert not found(*again, events=event(name))
    for function in ("crash", "pause"):
        assert not found(*again, moves=move(function))
    assert found(*again, moves=move("unsubscribe"))
    assert not found(*again, moves=move("unsubscribe"), latency_us=50_000)
    late = PlannedOperation(op_id=1, process=9, at_ms=70_000, function="crash", key="g")
    assert found(*again, moves=(late,))


def test_a_process_that_commits_in_transactions_is_not_asked() -> None:
    """Rule (JUSTIFIED): what an aborted transaction had consumed comes again, whatever the mode of other
    consumers is."""
    again = (*FIRST, poll(54, "b", 2, 2, 3))
    txn = Operation(
        op_id=1, process=ord("a"), function=Function.TXN, invoke_time=51 * SECOND, outcome=Outcome.UNKNOWN
    )
    assert found(*again)
    assert not found(*again, txn)

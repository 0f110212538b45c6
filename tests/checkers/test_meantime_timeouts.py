"""Every request is answered while every broker runs."""

from random import Random

import pytest
from attrs import evolve

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.options import options_of
from fencepost.checkers.meantime.retries import settled_ns
from fencepost.checkers.meantime.timeouts import BREAKING, OPERATORS, judge_timeouts
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import ClusterOptions, NetworkOptions, Plan, PlannedOperation
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace

SECOND = 1_000_000_000
OPTIONS = ClusterOptions(zookeeper_session_timeout_ms=1_000, replica_lag_time_max_ms=1_000)
T0 = {"topic": "t", "partition": 0}


def traced(
    events: tuple[Event, ...],
    operations: tuple[Operation, ...],
    moves: tuple[PlannedOperation, ...] = (),
    **network: int,
) -> Trace:
    """A trace of three brokers whose faults are over after some 12 s."""
    options = NetworkOptions(**{"latency_max_us": 1_000, **network})
    plan = Plan(seed=1, cluster=OPTIONS, network=options, operations=moves)
    began = Event(time=0, name=Name.PHASE, cause="safety")
    return Trace(
        trace_id=1,
        plan=plan_to_json(plan),
        seed=1,
        software_version="0",
        events=(Event(time=0, name=Name.ASSIGNMENT, replicas=(1, 2), **T0), began, *events),
        operations=operations,
        concurrent_processes=True,
    )


def found(trace: Trace) -> set[int]:
    """The operations that waited in vain without a reason."""
    findings, options = Findings("meantime"), options_of(trace.plan)
    assert options is not None
    judge_timeouts(findings, trace, options)
    return {op_id for one in findings.found.values() for op_id in one.operations}


def asked(at: int, takes_ms: int = 10, **fields: object) -> Operation:
    """An append at this second."""
    known = {"outcome": Outcome.OK, "acks": -1, "attempts": 1, **fields}
    ended = None if known["outcome"] is Outcome.UNKNOWN else at * SECOND + takes_ms * 1_000_000
    return Operation(
        op_id=at,
        process=0,
        function=Function.APPEND,
        invoke_time=at * SECOND,
        completion_time=ended,
        **{**T0, **known},  # type: ignore[arg-type]
    )


def happened(name: Name, at: int, cause: str = "crash", fault: int = 1, **fields: object) -> Event:
    return Event(time=at * SECOND, name=name, node=1, cause=cause, detail=f'{{"fault":{fault}}}', **fields)


LOST = asked(50, outcome=Outcome.UNKNOWN, error="NETWORK_EXCEPTION")
SLOW = asked(50, 2_600, attempts=2)
COMMIT = Operation(
    op_id=60,
    process=4,
    function=Function.COMMIT,
    group="g",
    argument="sync",
    invoke_time=50 * SECOND,
    outcome=Outcome.UNKNOWN,
    error="NETWORK_EXCEPTION",
)


@pytest.mark.parametrize("waits", [LOST, SLOW, COMMIT], ids=["lost", "slow", "commit"])
def test_who_waits_in_vain_has_a_reason(waits: Operation) -> None:
    """Rule (JUSTIFIED): a fault, a broker that goes or comes, a partition without a leader; but no leader
    that moves and no request of an operator."""
    assert found(traced((), (waits,))) == {waits.op_id}
    for name in BREAKING:
        assert not found(traced((happened(name, 49),), (waits,)))
    assert not found(traced((happened(Name.FAULT_BEGAN, 10),), (waits,)))
    assert found(traced((happened(Name.FAULT_BEGAN, 10), happened(Name.FAULT_ENDED, 20)), (waits,)))
    for kind in OPERATORS:
        move = (happened(Name.FAULT_BEGAN, 49, kind), happened(Name.FAULT_ENDED, 49, kind))
        assert found(traced(move, (waits,)))
    assert found(traced((happened(Name.BECAME_LEADER, 49), happened(Name.BECAME_FOLLOWER, 49)), (waits,)))
    assert not found(traced((happened(Name.PARTITION_STATE, 49, leader=-1),), (waits,)))
    assert found(traced((happened(Name.PARTITION_STATE, 49, leader=2),), (waits,)))
    pause = PlannedOperation(op_id=1, process=4, at_ms=40_000, function="pause", records=90, key="g")
    assert not found(traced((), (waits,), moves=(pause,)))
    assert not found(traced((), (waits,), loss_ppm=1))


def test_what_is_answered_is_no_time_out() -> None:
    """Rule: a coordinator's REQUEST_TIMED_OUT is an answer, and so is every error; several answers take
    longer than one."""
    assert not found(traced((), (evolve(COMMIT, error="REQUEST_TIMED_OUT"),)))
    assert not found(traced((), (evolve(COMMIT, argument="txn"),)))
    assert not found(traced((), (asked(50), asked(51, 1_400))))
    assert not found(traced((), (asked(50, 2_600, attempts=5),)))
    nowhere = asked(50, 2_600, attempts=0, outcome=Outcome.FAIL, error="LEADER_NOT_AVAILABLE")
    assert not found(traced((), (nowhere,)))
    assert not found(traced((), (asked(50, outcome=Outcome.FAIL, error="NOT_LEADER_OR_FOLLOWER"),)))
    in_transactions = Operation(
        op_id=1, process=0, function=Function.TXN, invoke_time=0, completion_time=1, outcome=Outcome.OK
    )
    assert not found(traced((), (in_transactions, LOST)))
    came = happened(Name.ASSIGNMENT, 30, "", topic="u", partition=0, replicas=(1,))
    assert not found(traced((came,), (evolve(LOST, topic="u"),)))
    added = happened(Name.ASSIGNMENT, 52, "", topic="t", partition=1, replicas=(1,))
    led = happened(Name.PARTITION_STATE, 53, "", topic="t", partition=1, leader=1)
    to_it = evolve(LOST, partition=1)
    assert not found(traced((added,), (to_it,)))  # it waits for a partition to be added
    assert not found(traced((added, led), (to_it,)))
    assert found(traced((added, led), (LOST,)))
    assert found(traced((added, led), (evolve(to_it, invoke_time=54 * SECOND),)))
    gone = happened(Name.TOPIC_DELETION, 30, "requested", topic="t")
    assert not found(traced((gone,), (LOST,)))


def by_definition(trace: Trace) -> set[int]:
    """Each operation, each event and each fault by itself."""
    options = options_of(trace.plan)
    assert options is not None
    settled, needless = settled_ns(options), set()
    client = options.client
    patience = (client.delivery_timeout_ms + client.request_timeout_ms) * 1_000_000
    for one in trace.operations:
        lost = one.outcome is Outcome.UNKNOWN and one.error == "NETWORK_EXCEPTION"
        until = one.invoke_time + patience if one.completion_time is None else one.completion_time
        begin, excused = one.invoke_time - settled, False
        for event in trace.events:
            if event.cause in OPERATORS:
                continue
            inside = begin <= event.time <= until
            if event.name is Name.FAULT_BEGAN:
                ends = [e for e in trace.events if e.name is Name.FAULT_ENDED and e.detail == event.detail]
                over = any(event.time <= end.time < begin for end in ends)
                excused |= inside or (event.time <= until and not over)
            elif event.name in (*BREAKING, Name.PHASE, Name.FAULT_ENDED):
                excused |= inside
            elif event.name is Name.PARTITION_STATE:
                excused |= inside and event.leader < 0
        if lost and not excused:
            needless.add(one.op_id)
    return needless


def test_the_twin_agrees() -> None:
    """Rule (STYLE 15): a form that looks at each operation, event and fault by itself says the same."""
    convicted = 0
    for seed in range(300):
        random = Random(seed)
        events = []
        for fault in range(random.randrange(3)):
            begun, kind = random.randrange(60), random.choice(("crash", "loss", "reassign_move"))
            events.append(happened(Name.FAULT_BEGAN, begun, kind, fault))
            if random.random() < 0.8:
                events.append(happened(Name.FAULT_ENDED, begun + random.randrange(1, 20), kind, fault))
        for name in (Name.BECAME_LEADER, Name.BROKER_ZNODE, Name.PARTITION_STATE):
            if random.random() < 0.3:
                events.append(happened(name, random.randrange(80), "", leader=random.choice((-1, 2))))
        operations = tuple(
            evolve(LOST, op_id=at, invoke_time=at * SECOND) if random.random() < 0.4 else asked(at)
            for at in sorted(random.sample(range(20, 90), 6))
        )
        trace = traced(tuple(sorted(events, key=lambda event: event.time)), operations)
        expected, seen = by_definition(trace), found(trace)
        assert bool(seen) == bool(expected) and seen <= expected, seed
        convicted += bool(expected)
    assert 30 < convicted < 270


def test_without_acknowledgement_nobody_waits() -> None:
    """Rule: an append with acks=0 is over when it is sent, whatever is broken; before that its client may
    look for a leader in vain."""
    assert found(traced((), (evolve(LOST, acks=0),)))
    assert found(traced((happened(Name.FAULT_BEGAN, 10),), (evolve(LOST, acks=0),)))
    assert not found(traced((), (evolve(LOST, acks=0, attempts=0),)))
    sent = evolve(LOST, acks=0, outcome=Outcome.OK, completion_time=51 * SECOND)
    assert not found(traced((), (sent,)))
    assert found(traced((), (evolve(sent, attempts=2),)))

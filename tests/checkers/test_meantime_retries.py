"""An operation is answered at its first attempt, unless something was broken or moved."""

from random import Random

import pytest
from attrs import evolve

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime import judge
from fencepost.checkers.meantime.options import options_of
from fencepost.checkers.meantime.retries import DISTURBING, disturbances_of, judge_retries, settled_ns
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import ClientOptions, ClusterOptions, NetworkOptions, Plan, ProducerOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace

SECOND = 1_000_000_000
OPTIONS = ClusterOptions(zookeeper_session_timeout_ms=1_000, replica_lag_time_max_ms=1_000)


def traced(events: tuple[Event, ...], operations: tuple[Operation, ...], **network: int) -> Trace:
    """A trace of three brokers whose faults are over after some 12 s."""
    plan = Plan(seed=1, cluster=OPTIONS, network=NetworkOptions(**{"latency_max_us": 1_000, **network}))
    return Trace(
        trace_id=1,
        plan=plan_to_json(plan),
        seed=1,
        software_version="0",
        events=events,
        operations=operations,
    )


def asked(at: int, *, attempts: int = 1, outcome: Outcome = Outcome.OK, process: int = 0) -> Operation:
    """An append, answered within 10 ms."""
    return Operation(
        op_id=at,
        process=process,
        function=Function.APPEND,
        topic="t",
        partition=0,
        invoke_time=at * SECOND,
        completion_time=None if outcome is Outcome.UNKNOWN else at * SECOND + 10_000_000,
        outcome=outcome,
        acks=-1,
        attempts=attempts,
    )


def happened(name: Name, at: int, cause: str = "crash", fault: int = 1) -> Event:
    return Event(time=at * SECOND, name=name, node=1, cause=cause, detail=f'{{"fault":{fault}}}')


def found(events: tuple[Event, ...], *operations: Operation, **network: int) -> bool:
    """Whether a retry has no reason."""
    return "needless_retry" in {one.anomaly for one in judge(traced(events, operations, **network)).findings}


@pytest.mark.parametrize("again", [{"attempts": 2}, {"outcome": Outcome.UNKNOWN}, {"outcome": Outcome.FAIL}])
def test_a_retry_has_a_reason(again: dict[str, object]) -> None:
    """Rule (JUSTIFIED): a client that was served, and is not served at once the next time, was disturbed: by
    a fault, by a leader that moved, or by what these leave for a while."""
    served, retried = asked(50), asked(52, **again)  # type: ignore[arg-type]
    began, ended = happened(Name.FAULT_BEGAN, 10), happened(Name.FAULT_ENDED, 20)
    assert found((), served, retried)
    assert found((began, ended), served, retried)
    assert not found((began,), served, retried)
    assert not found((happened(Name.FAULT_BEGAN, 45), happened(Name.FAULT_ENDED, 46)), served, retried)
    assert not found((happened(Name.BECAME_LEADER, 51),), served, retried)
    assert found((happened(Name.BECAME_LEADER, 5),), served, retried)
    assert found((happened(Name.FAULT_BEGAN, 70),), served, retried)
    assert not found((), retried)  # it does not know the leader yet
    assert not found((), asked(50, process=1), retried)  # nor does another process help it
    ended_one = evolve(asked(40), function=Function.TXN, topic=None, partition=None)
    assert not found((), ended_one, served, retried)  # its appends fail with a transaction that is aborted
    assert found((), evolve(ended_one, process=7), served, retried)
    assert not found((), served, retried, loss_ppm=1)
    assert not found((), served, retried, latency_max_us=400_000)  # it has no patience for that


@pytest.mark.parametrize(("pipelined", "together", "convicts"), [(1, 1, 0), (1, 0, 1), (0, 1, 1)])
def test_batches_in_flight_together_may_overtake(pipelined: int, together: int, convicts: int) -> None:
    """Rule (JUSTIFIED): the later batch of a pipelined producer may arrive first, and is sent again; one that
    is alone may not, nor one of a client that waits for each answer."""
    served, first, second = asked(50), asked(52), asked(53, attempts=2)
    if together:
        second = evolve(second, invoke_time=first.invoke_time)
    trace = traced((), (served, second, first))
    plan = Plan(
        seed=1,
        cluster=OPTIONS,
        network=NetworkOptions(latency_max_us=1_000),
        client=ClientOptions(producer=ProducerOptions(pipelined=bool(pipelined), idempotent=True)),
    )
    anomalies = {one.anomaly for one in judge(evolve(trace, plan=plan_to_json(plan))).findings}
    assert ("needless_retry" in anomalies) is bool(convicts)


def by_definition(trace: Trace) -> set[int]:
    """The operations without a reason, each looked at by itself."""
    options = options_of(trace.plan)
    assert options is not None
    settled = settled_ns(options)
    needless = set()
    for one in trace.operations:
        well = one.outcome is Outcome.OK and one.attempts <= 1
        before = [
            other.completion_time
            for other in trace.operations
            if other.process == one.process
            and other.invoke_time < one.invoke_time
            and other.outcome is Outcome.OK
            and other.attempts <= 1
        ]
        if well or not before:
            continue
        since = max(at for at in before if at is not None)
        client = options.client
        patience = (client.delivery_timeout_ms + client.request_timeout_ms) * 1_000_000
        until = one.invoke_time + patience if one.completion_time is None else one.completion_time
        names = (*DISTURBING, Name.FAULT_BEGAN, Name.FAULT_ENDED)
        reasons = [e for e in trace.events if e.name in names and since - settled <= e.time <= until]
        lasting = [
            began
            for began in trace.events
            if began.name is Name.FAULT_BEGAN
            and began.time <= until
            and not any(
                ended.name is Name.FAULT_ENDED
                and ended.detail == began.detail
                and began.time <= ended.time < since - settled
                for ended in trace.events
            )
        ]
        if not reasons and not lasting:
            needless.add(one.op_id)
    return needless


def test_the_twin_agrees() -> None:
    """Rule (STYLE 15): a form that looks at each operation, each event and each fault by itself says the
    same."""
    convicted = 0
    for seed in range(300):
        random = Random(seed)
        events = []
        for fault in range(random.randrange(3)):
            begun = random.randrange(60)
            events.append(happened(Name.FAULT_BEGAN, begun, fault=fault))
            if random.random() < 0.8:
                events.append(happened(Name.FAULT_ENDED, begun + random.randrange(1, 20), fault=fault))
        if random.random() < 0.4:
            events.append(happened(Name.BECAME_LEADER, random.randrange(80)))
        times = random.sample(range(90), 12)
        operations = tuple(
            asked(
                at,
                attempts=random.choice((1, 1, 1, 2)),
                outcome=random.choice((Outcome.OK, Outcome.OK, Outcome.OK, Outcome.UNKNOWN)),
                process=random.randrange(2),
            )
            for at in times
        )
        trace = traced(tuple(sorted(events, key=lambda event: event.time)), operations)
        findings, options = Findings("meantime"), options_of(trace.plan)
        assert options is not None
        judge_retries(findings, trace, options)
        expected = by_definition(trace)
        assert bool(findings.found) == bool(expected), seed
        convicted += bool(expected)
        for one in findings.found.values():
            assert set(one.operations) <= expected
    assert 30 < convicted < 270


def test_a_fault_that_never_ends_lasts_to_the_end() -> None:
    """Rule (JUSTIFIED): what is broken is an interval."""
    began = happened(Name.FAULT_BEGAN, 10)
    disturbances = disturbances_of((began, happened(Name.HIGH_WATERMARK, 90)))
    assert disturbances.within(50 * SECOND, 60 * SECOND)
    assert not disturbances.within(0, 9 * SECOND)

"""Processes that consume, transform and produce in transactions, in the simulated cluster."""

from collections import Counter

import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import (
    ClusterOptions,
    ConsumerOptions,
    NetworkOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
    TransactionOptions,
    TransformOptions,
)


def plan(*lives, version=1, aborts_ppm=0, **transform):
    """Appends to t for ten seconds, and what else these operations say."""
    appends = tuple(
        PlannedOperation(
            op_id=number, process=0, at_ms=number * 200, function="append", partition=number % 2, records=3
        )
        for number in range(1, 50)
    )
    options = {"transaction_timeout_ms": 3_000, "aborts_ppm": aborts_ppm} | transform
    compacted = [
        TopicOptions(name=name, cleanup_policy="compact")
        for name in ("__consumer_offsets", "__transaction_state")
    ]
    return Plan(
        seed=1,
        safety_ms=14_000,
        cluster=ClusterOptions(
            topics=(TopicOptions(name="t", partitions=2), TopicOptions(name="out", partitions=2), *compacted),
            transactions=TransactionOptions(version=version, abort_check_ms=300),
        ),
        consumer=ConsumerOptions(session_timeout_ms=3_000, heartbeat_interval_ms=500, max_poll_records=5),
        transform=TransformOptions(**options),
        operations=(*appends, *lives),
    )


def transform(process, at_ms, slot=0):
    """A process begins."""
    return PlannedOperation(
        op_id=500_000 + process * 100 + at_ms,
        process=process,
        at_ms=at_ms,
        function="transform",
        key="g",
        partition=slot,
    )


def other(process, at_ms, function, **fields):
    """Something happens to it."""
    return PlannedOperation(
        op_id=600_000 + process * 100 + at_ms,
        process=process,
        at_ms=at_ms,
        function=function,
        key="g",
        **fields,
    )


def outcomes(trace, function):
    """How many rows of this function had which outcome."""
    return Counter(row.outcome for row in trace.operations if row.function is function)


def judged(trace):
    """All that is wrong."""
    return [verdict for verdict in judge(trace) if verdict.decision is not Decision.OK]


@pytest.mark.parametrize("version", [1, 2])
def test_each_record_is_transformed_once(version):
    """Rule (KIP-98): with aborts of the application, a crash in a transaction, and a second process that
    comes."""
    trace = run(
        plan(
            *(transform(5, 0), transform(6, 2_000, 1), other(5, 7_000, "crash"), transform(7, 8_000)),
            version=version,
            aborts_ppm=300_000,
        )
    )
    assert judged(trace) == []
    assert min(outcomes(trace, Function.TXN)[one] for one in (Outcome.OK, Outcome.FAIL)) > 3
    inputs = {
        f"t-{row.partition}@{record.offset}"
        for row in trace.operations
        if row.function is Function.POLL and row.topic == "t" and row.isolation == "read_committed"
        for record in row.records
    }
    sources = {
        outcome: Counter(
            source
            for row in trace.operations
            if row.function is Function.APPEND and row.result and row.outcome is outcome
            for source in row.result.split(" ")
        )
        for outcome in Outcome
    }
    assert len(inputs) > 100 and inputs == {*sources[Outcome.OK], *sources[Outcome.UNKNOWN]}
    assert set(sources[Outcome.OK].values()) == {1}


def test_a_process_that_was_replaced_is_fenced():
    """Rule (KIP-98): one stands still in a transaction while another takes its transactional id."""
    still = (transform(5, 0), other(5, 4_000, "pause", records=50), transform(6, 5_000))
    trace = run(plan(*still, pause_ms=300))
    assert judged(trace) == []
    errors = Counter(row.error for row in trace.operations if row.function is Function.TXN)
    assert errors["PRODUCER_FENCED"] + errors["INVALID_PRODUCER_EPOCH"] > 0, errors


def test_a_process_that_was_fenced_joins_its_group_anew():
    """Rule (T17): before it asks for committed offsets again; a coordinator that was deposed would answer
    it."""
    still = (transform(5, 0), other(5, 4_000, "pause", records=50), transform(6, 5_000))
    trace = run(plan(*still, pause_ms=300))
    assert judged(trace) == []
    rows = sorted((row for row in trace.operations if row.process == 5), key=lambda row: row.invoke_time)
    fenced = [at for at, row in enumerate(rows) if row.error in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")]
    assert fenced
    names = [row.function for row in rows[fenced[-1] :]]
    assert Function.FETCH_COMMITTED in names
    assert Function.JOIN in names[: names.index(Function.FETCH_COMMITTED)]
    members = [row.member for row in rows if row.function is Function.FETCH_COMMITTED]
    assert members[-1] != members[0]


def test_what_a_crash_left_open_is_aborted_in_time():
    """Rule (KIP-98): readers of committed records get past it after transaction.timeout.ms."""
    trace = run(plan(transform(5, 0), other(5, 6_000, "crash"), pause_ms=2_000))
    assert judged(trace) == []
    phases = [event.cause for event in trace.events if event.name is Name.TRANSACTION_PHASE]
    assert "PrepareAbort" in phases


@pytest.mark.parametrize("seed", [2, 3, 5, 8])
def test_the_profile_is_healthy_and_replays(seed):
    """Rule (KIP-98): no judge finds anything, and the same plan gives the same digest."""
    planned = swarm(seed, "default+transactions")
    trace = run(planned)
    assert judged(trace) == []
    assert run(planned).digest == trace.digest


def test_a_plan_without_transactions_has_none():
    """Rule: nothing of it is in plans that do not ask for it."""
    assert not swarm(1, "default").cluster.has_transactions
    trace = run(evolve(plan(), operations=plan().operations[:3]))
    assert not outcomes(trace, Function.TXN)


def ended_before_and_after_settling(trace, error):
    """How transactions ended, and whether after all had settled; the failed ones with this error."""
    settled = next(event.time for event in trace.events if event.cause == "settled")
    return {
        (row.completion_time > settled, row.outcome)
        for row in trace.operations
        if row.function is Function.TXN and row.completion_time is not None and row.error in (error, None)
    }


def progressed(trace):
    """Whether each group got everything in the end."""
    return not [event for event in trace.events if event.name is Name.LIVENESS_FAILED]


def test_nobody_aborts_by_choice_when_that_keeps_a_group_from_its_end():
    """Rule (liveness): a group that aborts what it reads gets no further, however healthy the cluster is."""
    trace = run(plan(transform(5, 100), aborts_ppm=1_000_000))
    assert ended_before_and_after_settling(trace, None) == {(False, Outcome.FAIL), (True, Outcome.OK)}
    assert progressed(trace)


def test_everybody_is_patient_when_that_keeps_a_group_from_its_end():
    """Rule (liveness): where a batch takes longer than a client waits for its answer, one attempt is never
    enough (seed 43000206 of the profile transactions)."""
    planned = plan(transform(5, 100), version=2, attempts=1, transaction_timeout_ms=60_000)
    trace = run(
        evolve(
            planned,
            network=NetworkOptions(latency_min_us=150_000, latency_max_us=160_000),
            consumer=evolve(planned.consumer, request_timeout_ms=900),
        )
    )
    ended = ended_before_and_after_settling(trace, "NETWORK_EXCEPTION")
    assert (False, Outcome.OK) not in ended and (True, Outcome.OK) in ended
    assert progressed(trace)

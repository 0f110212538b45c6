"""Transactions in a real run: processes consume, transform and produce, come and go; the judges of
transactions have what they need, and convict a broker that breaks them."""

import asyncio
import json
from collections import Counter

import pytest
from attrs import evolve

from fencepost.bugs import parts_with
from fencepost.campaign.swarm.real_systems import TRANSACTIONS_PROFILE, UNSAFE_KINDS, swarm_for_real
from fencepost.campaign.workers.real_worker import checked
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.cli.campaign.real import CHECKS, OF_TRANSACTIONS
from fencepost.impl.broker.parts import Parts
from fencepost.run.faults.requests import BROKEN_REQUEST, LATE_REQUESTS
from fencepost.run.real.real_run import RealRun
from fencepost.systems.embedded import Embedded, quick_options
from fencepost.systems.system import UnsupportedError, requests_of_system
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import (
    ConsumerOptions,
    PlannedOperation,
    TopicOptions,
    TransactionOptions,
    TransformOptions,
)
from tests.run.real.behind_proxies import BehindProxies
from tests.run.real.small_plans import KEEPS, plan_of

JUDGES = CHECKS + OF_TRANSACTIONS


def life(op_id, process, at_ms, function, number=0, records=1):
    """What a process is asked to do."""
    return PlannedOperation(
        op_id=op_id,
        process=process,
        at_ms=at_ms,
        function=function,
        key="g1",
        partition=number,
        records=records,
    )


def plan_with(*lives, faults=(), aborts_ppm=300_000, **more):
    """Appends over 1.2 seconds, and these processes."""
    plan = plan_of(*faults, count=60, **more)
    (topic,) = plan.cluster.topics
    return checked(
        evolve(
            plan,
            safety_ms=2_500,
            cluster=evolve(
                plan.cluster,
                topics=(topic, TopicOptions(name="out", partitions=2)),
                transactions=TransactionOptions(state_topic_partitions=4),
            ),
            consumer=ConsumerOptions(
                session_timeout_ms=2_000, heartbeat_interval_ms=500, max_poll_records=5, poll_timeout_ms=200
            ),
            transform=TransformOptions(transaction_timeout_ms=3_000, aborts_ppm=aborts_ppm),
            operations=(*plan.operations, *lives),
        )
    )


def run_in(plan, version, topic, parts=None):
    """The run, its trace, and the cluster's version of transactions as its clients saw it."""
    options = quick_options(transactions=TransactionOptions(state_topic_partitions=4, version=version))
    with Embedded(options=options, parts=parts or Parts()) as system:
        run = RealRun(plan=plan, system=system, topic=topic, target="embedded")
        return run, asyncio.run(run.go())


@pytest.mark.parametrize("version", [1, 2])
def test_transactions_end_and_every_input_counts_once(version):
    """In both versions, with a crash of a process, one that leaves, a zombie of the same transactional id,
    and a crash of a leader while a transaction is open; names are the plan's."""
    plan = plan_with(
        life(901, 10, 0, "transform"),
        life(902, 11, 100, "transform", 1),
        life(903, 10, 900, "pause", records=8),
        life(904, 12, 1_000, "transform"),
        life(905, 11, 1_300, "crash"),
        life(906, 12, 1_900, "unsubscribe"),
        faults=(("crash", 700, 300, "leader of out-0"),),
    )
    plan = checked(
        evolve(plan, faults=tuple(evolve(one, follows=Name.TRANSACTION_PHASE) for one in plan.faults))
    )
    for patience in (1, 2, 4, 8, 16):  # a crowded machine may begin no transaction in time
        longer = evolve(plan, safety_ms=patience * plan.safety_ms)
        run, trace = run_in(longer, version, f"t-5-1-{patience}")
        assert not run.stuck and run.members.version == version
        if any(event.name is Name.FAULT_BEGAN for event in trace.events):
            break
    (struck,) = [event.time for event in trace.events if event.name is Name.FAULT_BEGAN]
    assert any(
        one.topic == "out" and one.invoke_time < struck
        for one in trace.operations
        if one.function is Function.APPEND
    )
    found = combine(judge(trace, JUDGES))
    assert found.decision is Decision.OK, found
    final = [one for one in trace.operations if one.process == run.reader]
    written = {f"t-0@{each.offset}" for one in final for each in one.records if each.topic == "t"}
    counted = Counter(
        place
        for one in trace.operations
        if one.function is Function.APPEND and one.outcome is Outcome.OK
        for place in (one.result or "").split()
    )
    assert len(written) > 10 and set(counted) == written and set(counted.values()) == {1}
    assert any(one.function is Function.TXN and one.outcome is Outcome.OK for one in trace.operations)
    assert {one.topic for one in trace.operations if one.topic} == {"t", "out"}
    polls = [one for one in trace.operations if one.function is Function.POLL and one.group]
    assert {place.topic for one in polls for place in one.positions} == {"t"}
    crashes = [one.process for one in trace.operations if one.function is Function.CRASH]
    assert crashes == [11]
    ends = [one for one in final if one.strong]
    assert {(one.topic, one.partition) for one in ends} == {("t", 0), ("out", 0), ("out", 1)}


@pytest.mark.parametrize("bug", ["T6", "T7"])
def test_a_broker_that_breaks_transactions_is_convicted(bug):
    """Planted in the reference brokers, and found over the wire."""
    lives = life(901, 10, 0, "transform"), life(902, 11, 900, "transform")  # the second goes on from commits
    _, trace = run_in(plan_with(*lives, aborts_ppm=500_000), 2, "t", parts_with((bug,)))
    found = combine(judge(trace, JUDGES))
    assert found.decision is Decision.ILLEGAL
    assert {finding.check for finding in found.findings} & {"transactions", "exactly_once"}


def test_what_is_drawn_with_transactions():
    """Idempotent appends with acks=all, a second topic, processes that come and go, and no fault that takes
    what coordinators had committed."""
    kinds = ("crash", "pause", "partition", *UNSAFE_KINDS)
    plans = [swarm_for_real(seed, kinds, profile=TRANSACTIONS_PROFILE) for seed in range(60)]
    for plan in plans:
        checked(plan)
        assert [topic.name for topic in plan.cluster.topics] == ["t", "out"]
        assert plan.client.producer.idempotent and not plan.client.retry_unknown
        assert not {fault.kind for fault in plan.faults} & set(UNSAFE_KINDS)
        assert swarm_for_real(plan.seed, kinds, profile=TRANSACTIONS_PROFILE) == plan
    functions = {one.function for plan in plans for one in plan.operations}
    assert {"transform", "crash", "pause", "unsubscribe", "append", "poll"} <= functions
    targets = {fault.target for plan in plans for fault in plan.faults}
    assert any(" out-" in target for target in targets) and any(" t-" in target for target in targets)
    late = [swarm_for_real(seed, (*kinds, LATE_REQUESTS), profile=TRANSACTIONS_PROFILE) for seed in range(60)]
    windows = [(plan, fault) for plan in late for fault in plan.faults if fault.kind == LATE_REQUESTS]
    assert 0 < len({plan.seed for plan, _ in windows}) < len(late)
    for plan, fault in windows:
        checked(plan)
        assert fault.parameter > plan.consumer.request_timeout_ms * 1_000, "its sender has given up by then"
    sharing = Counter()
    for plan in {plan.seed: plan for plan, _ in windows}.values():
        users = {(one.partition, one.process) for one in plan.operations if one.function == "transform"}
        sharing[len({number for number, _ in users}) < len(users)] += 1
    assert sharing[False] > sharing[True] > 0
    begun = Counter(fault.follows for _, fault in windows)
    assert begun[Name.TRANSACTION_PHASE] > begun[""] > 0
    ids = [Counter(one.partition for one in plan.operations if one.function == "transform") for plan in plans]
    assert any(max(counts.values(), default=0) > 1 for counts in ids), "ids are shared: there are zombies"


# Single requests of clients that the network breaks, in the embedded cluster behind proxies.


IMPATIENT = evolve(KEEPS, request_timeout_ms=150, retry_unknown=True)


@pytest.fixture(scope="module")
def embedded():
    with BehindProxies() as system:
        yield system


def broken(*texts, **more):
    """A plan in which each of these may strike from the beginning on, until everything has been answered:
    on a crowded machine the first request may come after the workload's second is over."""
    return plan_of(*((BROKEN_REQUEST, 50 + place, 60_000, text) for place, text in enumerate(texts)), **more)


def hits(trace):
    """(the fault, the request that was hit) of each hit."""
    details = (json.loads(one.detail) for one in trace.events if one.name is Name.FAULT_BEGAN and one.detail)
    return [(one["says"], one["target"].split()[0]) for one in details if "says" in one]


def test_a_held_append_takes_effect_after_it_was_sent_again(made):
    """Rule: the record is twice in the log, which the claims of a producer without idempotence allow, and
    which is found where it is not. The hit is in the trace, with the plan's name of the topic."""
    plan = broken("hold Produce on t-0 by 400ms, 2nd, once", client=IMPATIENT, count=40)
    run, trace = made(plan)
    assert [said for said, _ in hits(trace)] == [f"hold Produce by 400ms on {run.topic}-0, 2nd, once"]
    (began,) = [one for one in trace.events if one.cause == "hold" and one.name is Name.FAULT_BEGAN]
    assert (began.topic, began.partition) == ("t", 0) and 0 < began.time < trace.events[-1].time
    assert trace.claims.duplicates and combine(judge(trace)).decision.value == "ok"
    _, trace = made(plan, control="duplicates")
    assert len(hits(trace)) == 1 and combine(judge(trace)).anomaly is not None


def test_answers_and_connections_are_broken_of_the_client_that_is_named(made):
    """Rule: each verb that the swarm draws; a process has a client id of its own. What is armed and meets no
    request hits nothing."""
    run, trace = made(
        broken(
            "lose answer to Produce from client process-1, 1st, once",
            "hold connection at Produce by 100ms from client process-2, 1st, once",
            "delay answer to Produce by 50ms from client process-0, 1st, once",
            "half answer to Fetch from client process-0, 1st, once",
            "cut before Fetch from client process-1, 1st, once",
            "cut after Fetch from client process-2, 1st, once",
            "hold EndTxn by 100ms, once",
            count=60,
        )
    )
    struck = sorted({one.cause for one in trace.events if one.name is Name.FAULT_BEGAN} - {BROKEN_REQUEST})
    assert struck == [
        *("cut_after", "cut_before", "delay_answer", "half_answer", "hold_connection", "lose_answer")
    ]
    targets = [one.detail for one in trace.events if one.cause == "lose_answer" and "says" in one.detail]
    assert len(targets) == 1 and "Produce of process-1 at broker" in targets[0]
    assert not run.stuck and combine(judge(trace)).decision.value == "ok"


def test_a_fault_that_no_correct_broker_has_is_no_plan():
    """Rule: nor is a text that is no fault, nor a system without proxies one whose requests can be broken."""
    with pytest.raises(PlanError, match="what a correct broker may do"):
        checked(broken("skip answer to Produce"))
    with pytest.raises(PlanError, match="a verb"):
        checked(broken("leader of t-0"))
    with pytest.raises(UnsupportedError, match="come in through a proxy"):
        requests_of_system(Embedded())

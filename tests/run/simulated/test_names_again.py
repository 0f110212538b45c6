"""Runs in which a topic is deleted and created again and again, under faults: a correct cluster has no
finding, in either form of the judges."""

from random import Random

import pytest
from attrs import evolve

from fencepost.checkers.judges import DEFAULT_CHECKS, checks_by_name, judge
from fencepost.mining.spark_judge import judge_tables
from fencepost.model.lives import used_again
from fencepost.run.simulated.run import run
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Name
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.tables import tables_of
from tests.selfcheck.amounts import amount

TOPICS = (
    TopicOptions(name="t", replication_factor=2),
    TopicOptions(name="u", partitions=2, replication_factor=3, created_later=True, used_again=True),
)
STRIKES = ("crash", "pause", "isolate_zookeeper", "expire_session")


def plan_of(seed: int) -> Plan:
    """Topic u comes and goes every few seconds, while three clients write and read."""
    draw = Random(seed)
    functions = ("append", "append", "poll", "list_offsets")
    operations = tuple(
        PlannedOperation(
            op_id=number,
            process=number % 3,
            at_ms=at,
            function=draw.choice(functions),
            topic=draw.choice("uut"),
        )
        for number, at in enumerate(range(300, 24_000, 130), 1)
    )
    faults: list[Fault] = []

    def strikes(kind: str, at_ms: int, target: str, *, parameter: int = 0, duration_ms: int = 0) -> None:
        number = len(faults) + 1
        faults.append(
            Fault(
                fault_id=number,
                kind=kind,
                at_ms=at_ms,
                duration_ms=duration_ms,
                target=target,
                parameter=parameter,
            )
        )

    at = 500
    while at < 22_000:
        strikes("create_topic", at, "topic u", parameter=draw.randrange(4))
        at += draw.randrange(1_500, 5_000)
        strikes("delete_topic", at, "topic u")
        at += draw.randrange(400, 3_000)
    for _ in range(draw.randrange(4)):
        broker, lasts = f"broker {draw.randrange(1, 5)}", draw.randrange(500, 5_000)
        strikes(draw.choice(STRIKES), draw.randrange(1_000, 20_000), broker, duration_ms=lasts)
    cluster = ClusterOptions(brokers=4, topics=TOPICS)
    return Plan(seed=seed, safety_ms=24_000, cluster=cluster, operations=operations, faults=tuple(faults))


@pytest.mark.parametrize("seed", range(amount(20, 60)))
def test_a_correct_cluster_may_use_a_name_again(seed: int) -> None:
    """Epochs, offsets and records of the topics before convict nobody, whichever check looks at them."""
    trace = run(plan_of(seed))
    assert used_again(trace.events) == ["u"]
    verdicts = judge(trace)
    assert [finding for verdict in verdicts for finding in verdict.findings] == []
    if seed < 15:
        tables = tables_of([rows_of(trace)])
        (judged,) = judge_tables(tables, checks_by_name(DEFAULT_CHECKS), None, where="here")
        assert judged.verdicts == verdicts


def test_a_leader_epoch_that_goes_back_within_the_second_topic_is_found() -> None:
    """The control: a later topic of a name is judged like the first one."""
    trace = run(plan_of(0))
    begun = [
        place for place, event in enumerate(trace.events) if event.name is Name.ASSIGNMENT and event.replicas
    ]
    place = next(
        place
        for place, event in enumerate(trace.events)
        if place > begun[-1] and event.name is Name.PARTITION_STATE and event.topic == "u"
    )
    written = trace.events[place]
    states = [evolve(written, leader_epoch=epoch) for epoch in (3, 2)]
    broken = evolve(trace, events=(*trace.events[: place + 1], *states, *trace.events[place + 1 :]))
    found = {finding.anomaly: finding.topic for verdict in judge(broken) for finding in verdict.findings}
    assert found["leader_epoch_regressed"] == "u"
    assert used_again(broken.events) == ["u"]


def test_a_topic_that_is_there_is_not_created_again() -> None:
    """A name is free once its topic is gone, and only in a plan that uses it again."""
    plan = plan_of(0)
    twice = [
        evolve(fault, fault_id=900 + fault.fault_id) for fault in plan.faults if fault.kind == "create_topic"
    ]
    more = sorted(
        (*plan.faults, *(evolve(fault, at_ms=fault.at_ms + 50) for fault in twice)), key=lambda one: one.at_ms
    )
    skipped = [
        event.detail
        for event in run(evolve(plan, faults=tuple(more))).events
        if event.name is Name.FAULT_SKIPPED
    ]
    assert sum("there is a topic u" in detail for detail in skipped) == len(twice)
    once = tuple(evolve(topic, used_again=False) for topic in TOPICS)
    events = run(evolve(plan, cluster=evolve(plan.cluster, topics=once))).events
    assert used_again(events) == [] and any("there was a topic u" in event.detail for event in events)

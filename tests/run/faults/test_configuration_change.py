"""A topic that operators begin to have compacted while clients use it: a whole simulated run, and what its
claims allow."""

import json

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.faults import configuration_change
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.plan import Fault, Plan, TopicOptions

TO_COMPACT = ({}, {"cleanup.policy": "compact"})
"""What operators change here, by the parameter of alter_topic; the swarm draws no change of the policy."""


@pytest.fixture
def plan(small_plan, monkeypatch) -> Plan:
    """The policy changes after two seconds; a follower and then the leader crash, and come back with logs
    that have gaps."""
    monkeypatch.setattr(configuration_change, "CHANGES", TO_COMPACT)
    faults = (
        Fault(fault_id=0, kind="alter_topic", at_ms=2_000, target="topic t", parameter=1),
        Fault(fault_id=1, kind="crash", at_ms=5_500, duration_ms=500, target="follower 1 of t-0"),
        Fault(fault_id=2, kind="power_loss", at_ms=8_000, duration_ms=500, target="leader of t-0"),
    )
    plan = small_plan(faults=faults)
    keyed = tuple(
        evolve(each, key=f"k{each.op_id % 4}" if each.function == "append" else "")
        for each in plan.operations
    )
    topic = TopicOptions(name="t", flush_messages=1, segment_bytes=300, min_cleanable_dirty_ppm=0)
    cluster = evolve(plan.cluster, topics=(topic,), log_cleaner_backoff_ms=1_000)
    return evolve(plan, cluster=cluster, operations=keyed)


def test_a_topic_is_compacted_from_the_change_on_and_nothing_else_is_lost(plan):
    """Rule (Z, cleanup.policy): each broker takes the change over, tells of it, and cleans its log; brokers
    that restart find it whole. The claims say that the topic is compacted, from the events and not from the
    plan; held to a topic that is not, the run is convicted."""
    trace = run(plan)
    applied = [
        (event.node, json.loads(event.detail))
        for event in trace.events
        if event.name is Name.TOPIC_CONFIGURED
    ]
    assert {(node, *config.values()) for node, config in applied} == {(node, "compact") for node in (1, 2, 3)}
    told = next(at for at, event in enumerate(trace.events) if event.name is Name.TOPIC_CONFIGURED)
    cleaned = [(at, event.node) for at, event in enumerate(trace.events) if event.name is Name.COMPACTED]
    assert {node for _, node in cleaned} == {1, 2, 3} and min(cleaned)[0] > told
    assert trace.claims.compacted == ("t",) and not trace.claims.loss
    assert combine(judge(trace)).decision is Decision.OK
    held = evolve(trace, claims=evolve(trace.claims, compacted=()))
    assert combine(judge(held)).decision is Decision.ILLEGAL


def test_a_topic_whose_policy_nobody_changes_is_not_compacted(plan):
    """Rule: without the change the same run has no cleaner, and its claims allow no gap."""
    trace = run(evolve(plan, faults=plan.faults[1:]))
    assert not [event for event in trace.events if event.name is Name.COMPACTED]
    assert trace.claims.compacted == () and combine(judge(trace)).decision is Decision.OK

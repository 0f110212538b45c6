"""What operators ask for, as part of a plan: each request is made, recorded, carried through, and known to
the liveness phase."""

import json

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.faults import configuration_change
from fencepost.run.faults.operator_requests import ADMINISTRATION, MOST_PARTITIONS, named
from fencepost.run.simulated.run import run
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, Fault, Plan, TopicOptions
from fencepost.traces.plan_json import plan_from_json, plan_to_json


def asks(kind: str, number: int = 0, target: str = "", parameter: int = 0, at_ms: int = 3_000) -> Fault:
    """A request about t, or its partition 0."""
    on = ADMINISTRATION[kind].on
    default = "partition t-0" if on == "partition" else "topic t"
    return Fault(
        fault_id=number, kind=kind, at_ms=at_ms, duration_ms=0, target=target or default, parameter=parameter
    )


@pytest.fixture
def with_requests(small_plan):
    """A maker of runs: four brokers, t with two partitions of two replicas, and u, which comes later."""

    def make(*faults: Fault, **changes: object):
        topics = (
            TopicOptions(name="t", partitions=2, replication_factor=2),
            TopicOptions(name="u", replication_factor=2, created_later=True),
        )
        cluster = ClusterOptions(brokers=4, topics=topics)
        plan = small_plan(cluster=cluster, faults=faults, **changes)
        assert plan_from_json(plan_to_json(plan)) == plan
        return run(plan)

    return make


def replicas(trace) -> dict[tuple[str, int], tuple[int, ...]]:
    """AR at the end."""
    return {
        (event.topic, event.partition): event.replicas
        for event in trace.events
        if event.name is Name.ASSIGNMENT
    }


def named_events(trace, name: Name, cause: str = "") -> list[Event]:
    """Events of this name and cause."""
    return [event for event in trace.events if event.name is name and event.cause == cause]


AFTER = {
    "reassign_grow": {("t", 0): (1, 2, 3), ("t", 1): (2, 3)},
    "reassign_move": {("t", 0): (3, 2), ("t", 1): (2, 3)},
    "reassign_shrink": {("t", 0): (2,), ("t", 1): (2, 3)},
    "reassign_reorder": {("t", 0): (2, 1), ("t", 1): (2, 3)},
    "add_partitions": {("t", 0): (1, 2), ("t", 1): (2, 3), ("t", 2): (3, 4)},
    "preferred_election": {("t", 0): (1, 2), ("t", 1): (2, 3)},
    "delete_topic": {("t", 0): (), ("t", 1): ()},
}


@pytest.mark.parametrize("kind", sorted(AFTER))
def test_a_request_is_made_recorded_and_carried_through(with_requests, kind):
    """The request stands in the trace as a fault that begins and ends, the assignment is what was asked for,
    and a correct cluster survives it."""
    trace = with_requests(asks(kind))
    assert len(named_events(trace, Name.FAULT_BEGAN, kind)) == 1
    assert len(named_events(trace, Name.FAULT_ENDED, kind)) == 1
    assert replicas(trace) == AFTER[kind]
    assert combine(judge(trace)).decision is Decision.OK


def test_one_request_may_move_several_partitions(with_requests):
    """The remainder of the parameter takes the following partitions into the same znode."""
    trace = with_requests(asks("reassign_grow", parameter=1))
    assert replicas(trace) == {("t", 0): (1, 2, 3), ("t", 1): (2, 3, 1)}
    assert len({event.time for event in named_events(trace, Name.REASSIGNMENT)[:2]}) == 1


def test_a_topic_comes_and_goes_and_its_name_is_used_once(with_requests):
    """create_topic makes it, delete_topic removes it, and another create_topic is skipped with its reason
    (KAFKA-13132)."""
    trace = with_requests(
        asks("create_topic", 1, "topic u", at_ms=1_000),
        asks("delete_topic", 2, "topic u", at_ms=4_000),
        asks("create_topic", 3, "topic u", at_ms=7_000),
    )
    assert replicas(trace)["u", 0] == ()
    assert [event.cause for event in trace.events if event.name is Name.TOPIC_DELETION] == [
        "requested",
        "done",
    ]
    (skipped,) = [event for event in trace.events if event.name is Name.FAULT_SKIPPED]
    assert "there was a topic u before" in skipped.detail
    assert combine(judge(trace)).decision is Decision.OK


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ([asks("reassign_move", 1), asks("reassign_grow", 2)], "a reassignment is under way"),
        ([asks("reassign_move", target="partition t-7")], "t-7 does not exist"),
        ([asks("create_topic", target="topic t")], "created when the cluster was set up"),
        ([asks("delete_topic", target="topic x")], "x does not exist"),
        ([asks("delete_topic", 1), asks("delete_topic", 2)], "is being deleted already"),
        ([asks("add_partitions", number) for number in range(MOST_PARTITIONS)], "partitions already"),
        ([asks("preferred_election", 1), asks("preferred_election", 2)], "under way"),
    ],
)
def test_a_request_that_makes_no_sense_is_skipped_with_its_reason(with_requests, requests, reason):
    """What the admin tool would refuse is not written, and the trace says why."""
    trace = with_requests(*requests)
    assert any(reason in event.detail for event in trace.events if event.name is Name.FAULT_SKIPPED)
    assert combine(judge(trace)).decision is Decision.OK


def test_an_accepted_reassignment_ends_once_the_cluster_is_healed(with_requests):
    """Heal waits for it: the target's broker dies before it can catch up, returns at the end, and the
    reassignment is completed then."""
    plan = (
        Fault(fault_id=1, kind="pause", at_ms=2_900, duration_ms=9_000, target="broker 3"),
        asks("reassign_move", 2),
    )
    trace = with_requests(*plan)
    healed = next(event.time for event in trace.events if event.name is Name.PHASE and event.cause == "heal")
    ended = [event.time for event in named_events(trace, Name.REASSIGNMENT) if not event.replicas]
    assert len(ended) == 1 and ended[0] > healed
    assert replicas(trace)["t", 0] == (3, 2)


def test_nobody_is_about_to_stop_when_progress_is_demanded(with_requests):
    """Heal waits for a broker that was asked to stop to come back: its logs are open when all logs are
    compared (found by the swarm, seed 1022)."""
    stop = Fault(
        fault_id=1, kind="clean_restart", at_ms=9_990, duration_ms=10, target="broker 2", parameter=6_000
    )
    trace = with_requests(stop)
    healed = next(event.time for event in trace.events if event.cause == "heal")
    started = [event.time for event in trace.events if event.name is Name.BROKER_STARTED and event.node == 2]
    first_probe = next(operation.invoke_time for operation in trace.operations if operation.op_id > 1_000_000)
    assert len(started) == 2 and healed < started[1] < first_probe
    assert {event.node for event in trace.events if event.name is Name.REPLICA_LOG} == {1, 2, 3}
    assert combine(judge(trace)).decision is Decision.OK


def test_removing_a_request_does_not_reshuffle_the_rest(with_requests):
    """Randomness is keyed by cause: without a preferred election that changes nothing, what the clients did
    is the same."""
    fault = Fault(fault_id=1, kind="crash", at_ms=5_000, duration_ms=2_000, target="broker 1")
    with_it = with_requests(asks("preferred_election", 2, at_ms=1_000), fault)
    without = with_requests(fault)
    assert with_it.operations == without.operations


def test_a_target_that_cannot_be_read_is_refused():
    """A request about nothing is an error of the plan, in one sentence."""
    with pytest.raises(PlanError, match='"partition t-0"'):
        named("leader of t-0", "partition")
    assert str(named("partition a-b-12", "partition")) == "a-b-12"


def test_requests_wait_for_nobody_after_the_safety_phase(with_requests):
    """A request that comes while the cluster heals is skipped."""
    trace = with_requests(asks("reassign_move", at_ms=10_001), evolve(asks("reassign_grow", 1), at_ms=10_002))
    assert not named_events(trace, Name.REASSIGNMENT)


# A topic that operators begin to have compacted while clients use it: a whole simulated run, and what its
# claims allow.


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

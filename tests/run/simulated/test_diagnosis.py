"""A run that makes no progress says what stood, and what is printed names the cause."""

import pytest

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.report.explain import DIAGNOSIS, explain
from fencepost.run.simulated.diagnosis import diagnose, said_of
from fencepost.run.simulated.run import Run, run
from fencepost.run.story import at_once
from fencepost.traces.events import REPLICA_DELETED, Event, Name
from tests.bugs.found import FOUND

CAUSES = {
    "KAFKA-4443": (
        "t-0: broker 2 is assigned, and has taken no role",
        "! broker 2: refused to follow broker 1 in epoch 0 of t-0: it had not heard that broker 1 is alive",
    ),
    "KAFKA-2729": (
        "broker 2 does not follow broker 3 in epoch 8: it follows broker 3 in epoch 7",
        "FENCED_LEADER_EPOCH",
    ),
    "KAFKA-1382": ("! broker 1: ZooKeeper refused its ISR change of t-0",),
}


@pytest.mark.parametrize("bug", sorted(CAUSES))
def test_what_is_printed_names_the_cause(bug):
    """Rule: state of ZooKeeper, what brokers said of their roles, and refusals are in the explanation."""
    trace = run(FOUND[bug])
    verdict = combine(judge(trace))
    assert verdict.anomaly == "no_progress"
    (finding,) = [one for one in verdict.findings if one.anomaly == "no_progress"]
    told = explain(finding, trace).plain()
    state = told.split(DIAGNOSIS)[1].split("Timeline")[0]
    for cause in CAUSES[bug]:
        assert cause in state
    assert 1 <= state.count(" believes: ") <= 3 and " in ZooKeeper: leader " in state
    refused = sum(
        event.name is Name.CONTROL_REQUEST_REFUSED or event.cause == "leader_not_alive"
        for event in trace.events
    )
    lines = [line for line in told.split("Timeline")[1].splitlines() if "... " not in line]
    assert sum("REFUSES to follow" in line or " refuses " in line for line in lines) >= refused
    assert refused or bug != "KAFKA-4443"


def test_an_operation_that_hangs_is_named(small_plan):
    """Rule: the oldest operation without an answer is in it, with the broker that was asked last."""
    under_way = Run(small_plan())
    assert at_once(under_way.set_up())
    assert diagnose(under_way.cluster, [("t", 0)]).oldest is None
    for broker in under_way.cluster.broker_ids:
        under_way.cluster.world.pause(broker)
    for operation in under_way.plan.operations[:2]:
        under_way.schedule(operation)
    under_way.cluster.world.run_until(under_way.cluster.now + 2_000_000_000)
    diagnosis = diagnose(under_way.cluster, [("t", 0)])
    assert (diagnosis.oldest.op_id, diagnosis.oldest.function) == (1, "append")
    assert {broker.process for broker in diagnosis.brokers} == {"paused"}
    assert [(one.topic, one.partition) for one in diagnosis.partitions] == [("t", 0)]


def test_a_healthy_run_has_none():
    """The control: without the bug the same seed makes progress."""
    healthy = run(swarm(0))
    assert not [event for event in healthy.events if event.name is Name.LIVENESS_FAILED]


def test_what_brokers_said_of_a_topic_that_is_gone_is_not_said_of_the_next():
    """A role ends with its replica, and a state with the assignment."""
    on = {"topic": "u", "partition": 0}
    told = [
        Event(time=1, name=Name.PARTITION_STATE, node=1, leader=3, leader_epoch=5, **on),
        *(Event(time=2, name=Name.BECAME_LEADER, node=node, leader_epoch=5, **on) for node in (2, 3)),
        Event(time=3, name=Name.ISR_PROPOSED, node=3, leader_epoch=5, **on),
        Event(time=4, name=Name.MARK, node=3, cause=REPLICA_DELETED, **on),
    ]
    said = said_of(told)
    assert [node for node, _ in said.roles] == [2] and not said.changes and said.states
    assert not said_of([*told, Event(time=5, name=Name.ASSIGNMENT, **on)]).states

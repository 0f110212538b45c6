"""What operators ask of consumer groups, as part of a plan: it is carried out or refused, and judged."""

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import run
from fencepost.traces.errors import PlanError
from fencepost.traces.events import OFFSET_DELETED, Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.plan import ConsumerOptions, Fault, PlannedOperation, TopicOptions
from fencepost.traces.trace import Trace

LEFT_MS, LATER_MS = 9_000, 13_000
"""The consumer goes; and its session is over for long: a static member does not leave."""


@pytest.fixture
def with_request(small_plan):
    """A maker of runs: one static consumer of t commits what it gets, and leaves; an operator asks."""

    def make(kind: str, at_ms: int, target: str = "group g", parameter: int = 0) -> Trace:
        plan = small_plan()
        topics = (*plan.cluster.topics, TopicOptions(name=OFFSETS_TOPIC, cleanup_policy="compact"))
        lives = [(2_000, "subscribe"), (LEFT_MS, "unsubscribe")]
        members = tuple(
            PlannedOperation(op_id=90_000 + at, process=7, at_ms=at, function=function, topic="t", key="g")
            for at, function in lives
        )
        asked = Fault(fault_id=1, kind=kind, at_ms=at_ms, duration_ms=0, target=target, parameter=parameter)
        return run(
            evolve(
                plan,
                safety_ms=18_000,
                cluster=evolve(plan.cluster, topics=topics),
                consumer=ConsumerOptions(
                    static_members=True,
                    auto_commit_interval_ms=500,
                    session_timeout_ms=2_000,
                    heartbeat_interval_ms=500,
                ),
                operations=(*plan.operations, *members),
                faults=(asked,),
            )
        )

    return make


def says(trace: Trace, name: Name, text: str) -> bool:
    """Whether an event of this name says so."""
    return any(event.name is name and text in f"{event.cause} {event.detail}" for event in trace.events)


@pytest.mark.parametrize(
    ("kind", "at_ms", "parameter", "name", "text"),
    [
        ("delete_group", LATER_MS, 0, Name.GROUP_PHASE, "somebody asked"),
        ("delete_offsets", LATER_MS, 0, Name.GROUP_OFFSET_EXPIRED, OFFSET_DELETED),
        ("remove_member", 6_000, 7, Name.GROUP_PHASE, "leaves"),
    ],
)
def test_a_request_is_carried_out(with_request, kind, at_ms, parameter, name, text):
    """Rule: its coordinator says what came of it; a correct cluster and its clients keep their promises."""
    trace = with_request(kind, at_ms, parameter=parameter)
    assert says(trace, name, text) and says(trace, Name.FAULT_BEGAN, "group g")
    assert not [finding for verdict in judge(trace) for finding in verdict.findings]


@pytest.mark.parametrize("kind", ["delete_group", "delete_offsets"])
def test_what_is_in_use_is_kept(with_request, kind):
    """Rule: a group with members is not deleted, nor are offsets that it uses."""
    trace = with_request(kind, 6_000)
    assert says(trace, Name.FAULT_BEGAN, "group g")
    assert not says(trace, Name.GROUP_OFFSET_EXPIRED, OFFSET_DELETED)
    assert not says(trace, Name.GROUP_PHASE, "somebody asked")


def test_a_target_that_is_no_group_is_refused(with_request):
    """Rule: one sentence."""
    with pytest.raises(PlanError, match='expected a target such as "group g"'):
        with_request("delete_group", 6_000, target="topic t")

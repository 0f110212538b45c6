"""Runs in which a topic is deleted and created again and again, under faults: a correct cluster has no
finding, in either form of the judges."""

from random import Random

import pytest

from fencepost.campaign.observed import observed_state
from fencepost.campaign.run.cluster import FaultyCluster
from fencepost.campaign.run.run import run
from fencepost.checkers.judges import CHECKS, checks_by_name, judge
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.mining.judge import judge_tables
from fencepost.model.lives import used_again
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.rows import rows_of
from fencepost.traces.tables import tables_of

OWN_NAMES = tuple(name for name, check in CHECKS.items() if check.by_lives)
TOPICS = (
    TopicOptions(name="t", replication_factor=2),
    TopicOptions(name="u", partitions=2, replication_factor=3, created_later=True),
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


@pytest.fixture
def names_are_free_again(monkeypatch):
    """A plan's create_topic takes a name again once its topic is gone; the run forgets the topic before."""
    learn = observed_state._LEARN[Name.ASSIGNMENT]

    def create(self: FaultyCluster, topic: str, replicas: dict[int, tuple[int, ...]]) -> str:
        deletions = [event.cause for event in self.events if event.name is Name.TOPIC_DELETION]
        there = any(known == topic and ids for (known, _), ids in self.observed_state.assignments.items())
        if there or (deletions and deletions[-1] != "done"):
            return f"there is a topic {topic}"
        self.world.admin(Create(znodes.topic_path(topic), znodes.encode_topic(replicas)))
        return ""

    def assigned(state: observed_state.ObservedState, event: Event) -> None:
        learn(state, event)
        if not event.replicas:
            state.partitions.pop((event.topic or "", event.partition), None)

    monkeypatch.setattr(FaultyCluster, "create_once", create)
    monkeypatch.setitem(observed_state._LEARN, Name.ASSIGNMENT, assigned)


@pytest.mark.parametrize("seed", range(15))
def test_a_correct_cluster_may_use_a_name_again(names_are_free_again, seed: int) -> None:
    """Epochs, offsets and records of the topics before convict nobody."""
    trace = run(plan_of(seed))
    assert used_again(trace.events) == ["u"]
    verdicts = judge(trace, OWN_NAMES)
    assert [finding for verdict in verdicts for finding in verdict.findings] == []
    tables = tables_of([rows_of(trace)])
    (judged,) = judge_tables(tables, checks_by_name(OWN_NAMES), None, where="here")
    assert judged.verdicts == verdicts

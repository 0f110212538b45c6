"""What depends on what: one case for each edge, and one for each that there is not."""

import json

import pytest

from fencepost.record.facts import facts_of
from fencepost.record.settings import Cluster, Network, Real, Settings
from fencepost.record.timeline import Disturbance, Kind, Subject, Timeline, timeline_of, touches
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Position

SECOND = 1_000_000_000
OFFSETS, IDS = "__consumer_offsets", "__transaction_state"
SETTINGS = Settings(cluster=Cluster(brokers=4))
QUORUM = Settings(cluster=Cluster(brokers=4), real=Real(quorum_ms=1_000))


def event(at: float, name: Name, **fields) -> Event:
    return Event(time=int(at * SECOND), name=name, **fields)


def partition(topic: str, number: int, replicas: tuple[int, ...]) -> list[Event]:
    """A partition with its first replica as its leader, from the first moment on."""
    return [
        event(0, Name.ASSIGNMENT, topic=topic, partition=number, replicas=replicas),
        event(
            0,
            Name.PARTITION_STATE,
            topic=topic,
            partition=number,
            leader=replicas[0],
            leader_epoch=0,
            isr=replicas,
        ),
    ]


EVENTS = [
    *(event(0, Name.BROKER_ZNODE, node=broker, broker_epoch=1) for broker in (1, 2, 3, 4)),
    event(0, Name.CONTROLLER_ZNODE, node=4, leader=4),
    *partition("t", 0, (1, 2)),
    *partition("t", 1, (2, 3)),
    *partition("u", 0, (3, 1)),
    *(each for number in range(2) for each in partition(OFFSETS, number, (1 + number, 3))),
    *(each for number in range(2) for each in partition(IDS, number, (1 + number, 3))),
]
POLL = Operation(
    op_id=1,
    process=0,
    function=Function.POLL,
    invoke_time=0,
    completion_time=1,
    outcome=Outcome.OK,
    group="g",  # in partition 1 of two: "g".hashCode() is 103
    member="m",
    positions=(Position(topic="t", partition=0, offset=0),),
)
T0, U0 = (Subject.PARTITION, ("t", 0)), (Subject.PARTITION, ("u", 0))
GROUP, ID, CLIENT = (Subject.GROUP, "g"), (Subject.ID, "g"), (Subject.CLIENT, 0)
CONTROLLER = (Subject.CONTROLLER, None)


def broker(number: int) -> tuple[Subject, int]:
    return Subject.BROKER, number


def session(number: int) -> tuple[Subject, int]:
    return Subject.SESSION, number


def what(kind: Kind, *brokers: int, **fields) -> Disturbance:
    return Disturbance(kind, SECOND, 2 * SECOND, "it", frozenset(brokers), **fields)


EDGES = {
    "a broker on itself": (what(Kind.FAULT, 1), broker(1), broker(2)),
    "a session on its broker": (what(Kind.FAULT, 1), session(1), session(2)),
    "a session on everybody's way to ZooKeeper": (what(Kind.FAULT), session(1), None),
    "a session not on a link between brokers": (what(Kind.FAULT, 1, 2, between=True), broker(1), session(1)),
    "a partition on its replicas' brokers": (what(Kind.FAULT, 2), T0, U0),
    "a partition on who decides": (what(Kind.AWAY, 4, decides=True), U0, broker(1)),
    "a partition on a new controller": (what(Kind.CONTROLLER), U0, broker(1)),
    "a session not on the controller": (what(Kind.CONTROLLER), CONTROLLER, session(1)),
    "a partition on what is asked of its topic": (what(Kind.REQUEST, topic="t"), T0, U0),
    "a topic on its partitions' brokers": (what(Kind.FAULT, 2), (Subject.TOPIC, "t"), (Subject.TOPIC, "u")),
    "a topic on what is asked of it": (
        what(Kind.REQUEST, topic="u"),
        (Subject.TOPIC, "u"),
        (Subject.TOPIC, "t"),
    ),
    "a group on its coordinator's partition": (
        what(Kind.UNLED, topic=OFFSETS, partition=1),
        GROUP,
        (Subject.GROUP, "h"),
    ),
    "a group on what it reads": (what(Kind.UNLED, topic="t", partition=0), GROUP, (Subject.GROUP, "h")),
    "a group not on what others read": (what(Kind.UNLED, topic="u", partition=0), ID, GROUP),
    "a group on its members": (what(Kind.MEMBER, group="g"), GROUP, (Subject.GROUP, "h")),
    "a client on members that come and go": (what(Kind.MEMBER, group="h"), CLIENT, GROUP),
    "a group on a broker that its clients may ask": (what(Kind.FAULT, 4), GROUP, T0),
    "an id on its coordinator's partition": (what(Kind.UNLED, topic=IDS, partition=1), ID, (Subject.ID, "h")),
    "an id on what it may write": (what(Kind.UNLED, topic="u", partition=0), ID, T0),
    "a client on every broker": (what(Kind.FAULT, 4), CLIENT, T0),
    "a client on its links": (what(Kind.LINKS, 1), CLIENT, T0),
    "a group on its clients' links": (what(Kind.LINKS, 1), GROUP, broker(1)),
}


@pytest.mark.parametrize("name", EDGES)
def test_each_edge_is_there_and_its_neighbour_is_not(name):
    disturbance, touched, other = EDGES[name]
    facts = facts_of(enumerate(EVENTS), [POLL], SETTINGS)
    assert touches(facts, disturbance, touched)
    assert other is None or not touches(facts, disturbance, other)


def test_a_session_with_the_quorum_depends_on_links_between_brokers():
    facts = facts_of(enumerate(EVENTS), [], QUORUM)
    assert touches(facts, what(Kind.FAULT, 1, 2, between=True), session(1))


def timeline(*events: Event, operations=()) -> Timeline:
    return timeline_of(facts_of(enumerate([*EVENTS, *events]), operations, SETTINGS))


def fault(at: float, kind: str, node: int) -> Event:
    return event(at, Name.FAULT_BEGAN, node=node, cause=kind, detail=json.dumps({"fault": 1}))


END = event(100, Name.PHASE, cause="end")


def test_a_row_may_be_judged_through_a_broker_that_is_away_but_not_through_the_controllers_absence():
    for node, calm in ((1, True), (4, False)):
        found = timeline(fault(10, "crash", node), END).calm_at(T0, 10 * SECOND + 1, frozenset({Kind.AWAY}))
        assert (found is not None) is calm


def test_a_crash_in_the_middle_of_an_orderly_stop_is_a_crash():
    found = timeline(fault(10, "clean_restart", 1), fault(11, "crash", 1), END)
    assert [one.begin for one in found.disturbances if one.kind is Kind.AWAY] == [11 * SECOND]
    stopped = timeline(
        fault(10, "clean_restart", 1),
        event(11, Name.BROKER_ZNODE, node=1, broker_epoch=-1),
        event(11.1, Name.BROKER_STATE, node=1, cause="NotRunning"),
        END,
    )
    assert not [one for one in stopped.disturbances if one.kind is Kind.AWAY]


def test_a_group_without_a_coordinator_is_not_calm_until_another_broker_leads():
    moved = event(30, Name.PARTITION_STATE, topic=OFFSETS, partition=1, leader=3, leader_epoch=1, isr=(3,))
    found = timeline(fault(10, "crash", 2), moved, END, operations=[POLL])
    assert found.calm_at(GROUP, 29 * SECOND) is None
    assert found.calm_at(T0, 29 * SECOND) is not None
    assert found.calm_at(GROUP, 60 * SECOND) is not None


def test_nobody_can_be_controller_where_nobody_is_registered():
    gone = [event(9 + node, Name.BROKER_ZNODE, node=node, broker_epoch=-1) for node in (1, 2, 3, 4)]
    back = event(20, Name.BROKER_ZNODE, node=2, broker_epoch=2)
    facts = facts_of(enumerate([*EVENTS, *gone, back, END]), [], SETTINGS)
    assert list(facts.candidates((1, 2, 3, 4), 5 * SECOND, 50 * SECOND)) == [
        (5 * SECOND, 13 * SECOND),
        (20 * SECOND, 50 * SECOND),
    ]


@pytest.mark.parametrize(("wait_ms", "calm"), [(300, False), (301, False), (450, True)])
def test_nothing_is_calm_under_a_controller_that_does_not_wait_for_its_answers(
    wait_ms: int, calm: bool
) -> None:
    """Rule: a request that is given up before a usual answer can be there is sent again, and again."""
    far = Network(latency_min_us=150_000, latency_tail_us=20_000, latency_max_us=400_000)
    settings = Settings(cluster=Cluster(brokers=4, controller_request_timeout_ms=wait_ms), network=far)
    events = [*EVENTS, event(100, Name.PHASE, cause="end")]
    timeline = timeline_of(facts_of(enumerate(events), [POLL], settings))
    assert [bool(timeline.calms(name)) for name in (T0, (Subject.CONTROLLER, None))] == [calm, calm]

"""What brokers believe at the end is compared with ZooKeeper, with their leaders and with their logs."""

from functools import cache

import msgspec
import pytest
from attrs import evolve

from fencepost.campaign.run.run import run
from fencepost.checkers.meantime import judge
from fencepost.checkers.meantime.beliefs import Known, contradictions
from fencepost.traces.events import Belief, Event, Name
from fencepost.traces.plan import (
    ClusterOptions,
    ConsumerOptions,
    Fault,
    GroupOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)
from fencepost.traces.trace import Trace

OFFSETS = TopicOptions(name="__consumer_offsets", cleanup_policy="compact")
SEED = 3
NEVER = 7_777
REST = 60_000_000_000
"""Nanoseconds after which followers have everything."""


@cache
def healthy() -> Trace:
    """Appends, a group, and a broker that was away."""
    appends = tuple(
        PlannedOperation(op_id=n, process=n % 3, at_ms=200 * n, function="append", records=2)
        for n in range(1, 40)
    )
    member = PlannedOperation(op_id=1_000, process=5, at_ms=500, function="subscribe", key="g")
    fault = Fault(fault_id=0, kind="crash", at_ms=3_000, duration_ms=2_000, target="leader of t-0")
    return run(
        Plan(
            seed=SEED,
            safety_ms=12_000,
            cluster=ClusterOptions(
                topics=(TopicOptions(partitions=2), OFFSETS),
                zookeeper_session_timeout_ms=1_500,
                groups=GroupOptions(initial_rebalance_delay_ms=200),
            ),
            consumer=ConsumerOptions(session_timeout_ms=2_000, heartbeat_interval_ms=400),
            operations=(*appends, member),
            faults=(fault,),
        )
    )


def found(events: tuple[Event, ...]) -> set[str]:
    """The anomalies of a trace with these events."""
    return {one.anomaly for one in judge(evolve(healthy(), events=events)).findings}


def changed(place: int, event: Event) -> set[str]:
    """The anomalies of the healthy trace with another event at this place."""
    events = (*healthy().events[:place], event, *healthy().events[place + 1 :])
    return found(tuple(evolve(one, time=one.time + REST * (one.name is Name.BELIEF)) for one in events))


def with_detail(event: Event, **facts: object) -> Event:
    """The event with other facts in its detail."""
    detail = msgspec.json.decode(event.detail) | facts
    return evolve(event, detail=msgspec.json.encode(detail).decode())


def beliefs(cause: Belief) -> list[tuple[int, Event]]:
    """Those about one thing, with their places."""
    rows = [(n, one) for n, one in enumerate(healthy().events) if one.name is Name.BELIEF]
    return [(n, one) for n, one in rows if one.cause == cause]


def test_a_healthy_run_agrees() -> None:
    """Rule (AGREED): all kinds of beliefs are recorded, and nothing disagrees. Those about transactions
    are in tests/campaign/observed/test_transactional.py."""
    assert found(healthy().events) == set()
    for cause in set(Belief) - {Belief.TRANSACTION}:
        assert beliefs(cause), cause


COLUMNS = {
    Belief.BROKER: ("broker_epoch", "controller_epoch", "leader", "replicas", "isr"),
    Belief.METADATA: ("leader", "leader_epoch", "zk_version", "isr", "replicas"),
    Belief.CONTROLLER: ("controller_epoch", "replicas", "isr"),
    Belief.CONTROLLED: ("leader", "leader_epoch", "zk_version", "isr", "replicas"),
    Belief.GROUP: ("node", "leader_epoch"),
}


@pytest.mark.parametrize(
    ("cause", "column"), [(cause, column) for cause, columns in COLUMNS.items() for column in columns]
)
def test_each_column_counts(cause: Belief, column: str) -> None:
    """Rule (AGREED): a broker that believes anything else than ZooKeeper holds is found, whatever it is."""
    for place, event in beliefs(cause):
        wrong = (NEVER,) if column in ("isr", "replicas") else NEVER
        assert "stale_belief" in changed(place, evolve(event, **{column: wrong})), event


def test_roles_count() -> None:
    """Rule (AGREED): the leader's whole state, a follower's leader and epoch; not what a follower believes of
    the ISR."""
    for place, event in beliefs(Belief.REPLICA):
        leads = event.leader == event.node
        for column in ("leader_epoch", "isr", "zk_version"):
            wrong = evolve(event, **{column: (NEVER,) if column == "isr" else NEVER})
            expected = leads or column == "leader_epoch"
            assert ("stale_belief" in changed(place, wrong)) is expected, (column, event)


def test_replicas_are_alike() -> None:
    """Rule (AGREED): a follower has its leader's end, high watermark and producers, and no lower start; its
    leader knows where it ends."""
    compared = 0
    for place, event in beliefs(Belief.REPLICA):
        if event.leader == event.node or event.topic == OFFSETS.name:
            continue
        compared += 1
        for column in ("end_offset", "high_watermark"):
            assert "replicas_disagree" in changed(place, evolve(event, **{column: NEVER}))
    assert compared
    for place, event in beliefs(Belief.REPLICA):
        if event.leader == event.node and event.topic != OFFSETS.name:
            wrong = dict.fromkeys(msgspec.json.decode(event.detail)["followers"], NEVER)
            assert "replicas_disagree" in changed(place, with_detail(event, followers=wrong))
            assert "replicas_disagree" in changed(place, evolve(event, log_start_offset=1))


def test_files_count() -> None:
    """Rule (AGREED): what is wrong with a directory is found at leaders and followers."""
    for place, event in beliefs(Belief.REPLICA):
        wrong = with_detail(event, files=["00000000000000000007.index belongs to no segment"])
        assert "directory_disagrees" in changed(place, wrong)


def test_what_is_missing_counts() -> None:
    """Rule (AGREED): a broker without metadata or a replica of an assigned partition, and a cluster without
    an active controller."""
    events = healthy().events
    for cause in (Belief.METADATA, Belief.REPLICA, Belief.CONTROLLER):
        place, _ = beliefs(cause)[0]
        assert "stale_belief" in found((*events[:place], *events[place + 1 :])), cause


@pytest.mark.parametrize(
    "facts",
    [{"queued": 1}, {"channels": {"1": NEVER}}, {"reassigning": ["t-0"]}, {"deleting": ["t"]}],
)
def test_a_controller_has_finished(facts: dict[str, object]) -> None:
    """Rule (AGREED): nothing waits to be sent, to move or to be deleted, and channels are to the brokers that
    are registered."""
    place, event = beliefs(Belief.CONTROLLER)[0]
    assert "stale_belief" in changed(place, with_detail(event, **facts))


@pytest.mark.parametrize("facts", [{"phase": "OfflinePartition"}, {"replicas": {"1": "NewReplica"}}])
def test_partitions_and_replicas_are_online(facts: dict[str, object]) -> None:
    """Rule (AGREED): in a cluster that is healed every partition and every replica is online."""
    place, event = beliefs(Belief.CONTROLLED)[0]
    assert "stale_belief" in changed(place, with_detail(event, **facts))


@pytest.mark.parametrize(
    "held",
    [
        {"generation": NEVER},
        {"protocol": "other"},
        {"leader": "other"},
        {"members": {}},
        {"offsets": {"t-0": (NEVER, 1, "")}},
    ],
)
def test_a_group_is_served_as_it_is_stored(held: dict[str, object]) -> None:
    """Rule (AGREED): generation, protocol, leader, members and offsets of a settled group are those of its
    log; of a group that rebalances only the offsets are asked. The log may have a later offset."""
    place, event = beliefs(Belief.GROUP)[0]
    facts = msgspec.json.decode(event.detail)
    assert facts["phase"] == "Stable"
    wrong = facts["served"] | held
    assert changed(place, with_detail(event, served=wrong)) == {"group_not_stored"}
    moving = changed(place, with_detail(event, served=wrong, phase="PreparingRebalance"))
    assert moving == ({"group_not_stored"} if "offsets" in held else set())


def test_a_later_offset_in_the_log_is_none_of_the_coordinators() -> None:
    """Rule (AGREED): its append may have been given up; the same record with another offset may not."""
    place, event = beliefs(Belief.GROUP)[0]
    facts = msgspec.json.decode(event.detail)
    (name, (at, offset, text)), *_ = facts["stored"]["offsets"].items()
    for stored, expected in (((at + 1, NEVER, text), set()), ((at, NEVER, text), {"group_not_stored"})):
        held = facts["stored"] | {"offsets": facts["stored"]["offsets"] | {name: stored}}
        assert changed(place, with_detail(event, stored=held)) == expected, offset


def test_brokers_have_the_same_configurations() -> None:
    """Rule (AGREED): an override that one broker has, all have."""
    place, event = beliefs(Belief.BROKER)[-1]
    assert "stale_belief" in changed(place, with_detail(event, configs={"t": {"retention.ms": "1"}}))


def test_an_override_is_obeyed() -> None:
    """Rule (AGREED): a broker has every override that it knows in effect, in its logs, too."""
    place, event = beliefs(Belief.BROKER)[0]
    wrong = ["retention.ms=1 of t is in effect as 7"]
    assert "stale_belief" in changed(place, with_detail(event, misapplied=wrong))


def test_a_registered_broker_runs() -> None:
    """Rule (AGREED): its state says so, and whether it is the controller."""
    for place, event in beliefs(Belief.BROKER):
        others = {"Starting", "RunningAsBroker", "RunningAsController"}
        others.remove(msgspec.json.decode(event.detail)["state"])
        for state in others:
            assert "stale_belief" in changed(place, with_detail(event, state=state))


def test_another_form_is_no_finding() -> None:
    """Rule: a trace may come from any tool; what is not readable is not judged."""
    bad = Event(time=1, name=Name.BELIEF, node=1, cause=Belief.GROUP, detail="no JSON")
    assert list(contradictions(Known(), (bad,), 0)) == []
    assert list(contradictions(Known(), (evolve(bad, cause="new"),), 0)) == []


@pytest.mark.parametrize(
    ("then", "stale"),
    [
        ((), True),
        (
            (
                Event(time=9, name=Name.BROKER_ZNODE, node=2),
                Event(time=9, name=Name.BROKER_ZNODE, node=2, broker_epoch=8),
            ),
            False,
        ),
        ((Event(time=9, name=Name.BROKER_ZNODE, node=1, broker_epoch=8),), True),
        ((Event(time=9, name=Name.CONTROLLER_EPOCH, node=1, controller_epoch=4),), False),
    ],
    ids=["stays", "registers anew", "another one does", "failover"],
)
def test_a_broker_forgets_a_deleted_partition(then: tuple[Event, ...], stale: bool) -> None:
    """Rule (AGREED): in any reign. A broker that registers anew, or a controller that is elected after the
    deletion, is not told or does not know (seed 40006105 of the profile everything)."""
    known = Known()
    for event in (
        Event(time=1, name=Name.CONTROLLER_EPOCH, node=1, controller_epoch=3),
        Event(time=2, name=Name.BROKER_ZNODE, node=2, broker_epoch=7),
        Event(time=3, name=Name.ASSIGNMENT, topic="v", partition=0, replicas=(1,)),
        Event(time=8, name=Name.TOPIC_DELETION, topic="v"),
        Event(time=8, name=Name.ASSIGNMENT, topic="v", partition=0),
        *then,
    ):
        known.learn(event)
    belief = Event(time=20, name=Name.BELIEF, cause=Belief.METADATA, node=2, topic="v", partition=0, leader=1)
    assert [one.topic for one in contradictions(known, [belief], REST)] == ["v"] * stale

"""One question gives one event, whether it goes over the simulated network or over Kafka's wire."""

import json
import time

import pytest
from attrs import evolve
from confluent_kafka import Consumer, Producer

import fencepost.kafka
from fencepost.asked import ask
from fencepost.asked.step import Scope
from fencepost.impl.coordinator.group_records import partition_of
from fencepost.traces.events import Name, Question
from fencepost.traces.plan import TransactionOptions

TOPIC, GROUP, ID = "t", "g", "x"
KAFKA_ONLY = (Question.CONSUMER_GROUP, Question.QUORUM, Question.ELIGIBLE)
OF_DOCTOR = (Question.SETTINGS,)
PATIENCE_S = 600


@pytest.fixture(scope="module")
def kafka():
    """A cluster with a committed and an open transaction, and a group with a member and committed offsets."""
    with fencepost.kafka.cluster(transactions=TransactionOptions(state_topic_partitions=2)) as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        producer = Producer({**servers, "transactional.id": ID})
        producer.init_transactions(PATIENCE_S)
        consumer = Consumer({**servers, "group.id": GROUP, "auto.offset.reset": "earliest"})
        for value in (b"1", b"2"):
            producer.begin_transaction()
            producer.produce(TOPIC, value, key=b"k", partition=0)
            producer.flush(PATIENCE_S)
            if value == b"1":
                producer.commit_transaction(PATIENCE_S)
                consumer.subscribe([TOPIC])
                while (message := consumer.poll(0.1)) is None or message.error():
                    pass
                consumer.commit(message, asynchronous=False)
        while (
            len(
                {
                    event.high_watermark
                    for event in over_the_wire(cluster)
                    if event.partition == 0 and event.cause == Question.CONTENT
                }
            )
            > 1
        ):
            pass  # followers learn the high watermark with their next fetch
        yield cluster
        consumer.close()


def over_the_wire(kafka, *, topics=(TOPIC,)):
    """One round by Kafka's protocol."""
    return ask(kafka.bootstrap_servers, topics, [GROUP], [ID], guarded=False)


def in_the_simulation(kafka, *, topics=(TOPIC,)):
    """The same round by messages of the simulated world in the cluster."""
    system, asker, events = kafka.run.cluster.system, kafka.run.rounds.asker, []
    asker.record, asker.room = events.append, lambda: True
    scope = Scope(brokers=system.brokers, topics=topics, groups=(GROUP,), transactional_ids=(ID,), last=True)
    system.do(asker.begin, scope)
    while not system.do(lambda: asker.idle):
        time.sleep(0.01)
    return events


@pytest.fixture(scope="module", params=[over_the_wire, in_the_simulation], ids=["wire", "simulation"])
def seen(request, kafka):
    """What one round saw."""
    return request.param(kafka)


def answers(events, question):
    """Each event of a question, its detail as data."""
    return [(event, json.loads(event.detail)) for event in events if event.cause == question]


def timeless(event):
    """An event without its times, and without what differs between two moments of one state."""
    detail = {key: value for key, value in json.loads(event.detail).items() if key != "asked"}
    return evolve(event, time=0, detail=json.dumps(detail, sort_keys=True))


def test_both_transports_see_the_same(kafka):
    """Event by event, but for the times, in a cluster in which nothing happens."""
    wire, simulated = over_the_wire(kafka), in_the_simulation(kafka)
    assert [timeless(event) for event in wire] == [timeless(event) for event in simulated]
    assert {event.cause for event in wire} == {*Question} - {*KAFKA_ONLY, *OF_DOCTOR}


def test_every_answer_has_a_time_and_no_error(seen):
    """A healthy cluster answers every question."""
    details = [json.loads(event.detail) for event in seen]
    assert all(
        event.name is Name.ASKED and detail["asked"] <= event.time
        for event, detail in zip(seen, details, strict=True)
    )
    assert [detail for detail in details if "error" in detail or "errors" in detail] == []


def test_a_transaction_is_open_in_the_coordinator_in_its_records_and_in_every_replica(seen):
    """KIP-664: its state, and the first offset of each partition's open transaction."""
    ((event, said),) = answers(seen, Question.TRANSACTION)
    assert (event.topic, event.partition) == ("__transaction_state", partition_of(ID, 2))
    assert (said["transactional_id"], said["state"], said["partitions"]) == (ID, "Ongoing", [[TOPIC, 0]])
    ((_, stored),) = answers(seen, Question.TRANSACTION_RECORDS)
    states = [value["state"] for _, value, _, _ in stored["records"]]
    assert states[-1] == "Ongoing" and "CompleteCommit" in states
    of = [(event, said) for event, said in answers(seen, Question.PRODUCERS) if event.partition == 0]
    assert [len(said["same"]) for _, said in of] == [2]
    assert [one[4] for one in of[0][1]["producers"]] == [2]
    listed = [said["transactions"] for _, said in answers(seen, Question.TRANSACTIONS)]
    assert sorted(map(len, listed)) == [0, 0, 1]


def test_the_leader_shows_less_than_its_log_to_readers_of_committed_records(seen):
    """One record, its marker, and one record of the open transaction."""
    logs = [event for event, _ in answers(seen, Question.LOG) if (event.topic, event.partition) == (TOPIC, 0)]
    assert [(event.log_start_offset, event.end_offset) for event in logs] == [(0, 3)] * 3
    assert [(one.offset, one.high_watermark) for one in logs if one.node == one.leader] == [(2, 3)]
    assert {(one.offset, one.high_watermark) for one in logs if one.node != one.leader} == {(-1, -1)}


def test_the_leader_says_where_its_epochs_end(seen):
    """One epoch, which ends where the log does; none before it is asked for."""
    ends = {event.partition: said["ends"] for event, said in answers(seen, Question.EPOCHS)}
    assert (ends[0], ends[1]) == ([[0, 0, 3]], [[0, 0, 0]])


def test_a_committed_offset_is_served_and_stored(seen):
    """And the group has one member with both partitions, in memory and in its record."""
    ((_, group),) = answers(seen, Question.GROUP)
    assert (group["state"], [member[2] for member in group["members"]]) == (
        "Stable",
        [[[TOPIC, 0], [TOPIC, 1]]],
    )
    ((_, committed),) = answers(seen, Question.COMMITTED)
    assert [one[:3] for one in committed["offsets"]] == [[TOPIC, 0, 1]]
    stored = {json.dumps(said["of"]): said["records"] for _, said in answers(seen, Question.OFFSET_RECORDS)}
    assert stored[json.dumps([TOPIC, 0])][-1][1:] == [1, -1, True]
    assert stored["null"][-1][1]["members"] == [member[::2] for member in group["members"]]


def test_replicas_have_the_same_content(seen):
    """One digest of each range, the marker apart, and the last value of the key."""
    contents = [(event, said) for event, said in answers(seen, Question.CONTENT) if event.partition == 0]
    assert len(contents) == 3 and len({said["ranges"][0][2] for _, said in contents}) == 1
    assert [said["ranges"][0][:2] for _, said in contents] == [[0, 3]] * 3
    assert [[offset for offset, _ in said["keys"].values()] for _, said in contents] == [[2]] * 3
    assert [[marker[::3] for marker in said["markers"]] for _, said in contents] == [[[1, True]]] * 3


def test_every_broker_holds_exactly_its_replicas(seen):
    """The directories of topics that are asked for, and of no other."""
    held = {
        (event.node, topic, number)
        for event, said in answers(seen, Question.LOG_DIRECTORIES)
        for topic, number, _, _ in said["logs"]
    }
    assigned = {
        (node, event.topic, event.partition)
        for event, _ in answers(seen, Question.PARTITION)
        for node in event.replicas
    }
    assert assigned <= held
    assert {one for one in held if one[1] == TOPIC} == {one for one in assigned if one[1] == TOPIC}


@pytest.mark.parametrize("transport", [over_the_wire, in_the_simulation])
def test_asking_creates_nothing(transport):
    """C8: a cluster without groups has no __consumer_offsets afterwards, and an unknown topic stays one."""
    with fencepost.kafka.cluster() as cluster:
        events = transport(cluster, topics=("never",))
        again = transport(cluster, topics=("never",))
        unknown = [json.loads(event.detail) for event in again if event.cause == Question.PARTITION]
        assert [one["error"] for one in unknown] == ["UNKNOWN_TOPIC_OR_PARTITION"]
        held = [said["logs"] for _, said in answers(again, Question.LOG_DIRECTORIES)]
        assert held == [[], [], []]
        assert not answers(events, Question.LOG) and not answers(again, Question.LOG)


@pytest.mark.parametrize("transport", [over_the_wire, in_the_simulation])
def test_a_paused_broker_is_given_up_and_the_round_ends(kafka, transport):
    """Two questions without an answer, then none: the others answer as ever."""
    leader = kafka.leader(TOPIC, 0)
    kafka.pause(leader)
    try:
        events = transport(kafka)
    finally:
        kafka.resume(leader)
    silent = [event for event in events if '"NO_ANSWER"' in event.detail]
    assert 1 <= len(silent) <= 2 and {event.node for event in silent} == {leader}
    assert [event.node for event in events if event.cause == Question.LOG_DIRECTORIES] == [
        broker for broker in (1, 2, 3) if broker != leader
    ]

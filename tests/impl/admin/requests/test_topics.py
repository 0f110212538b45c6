"""CreateTopics, DeleteTopics and CreatePartitions, asked of a broker (KIP-4, KIP-195)."""

import pytest
from admin_lab import AdminLab

from fencepost.impl.admin.requests import desk, topic_requests
from fencepost.impl.admin.requests.topic_requests import TopicRequests
from fencepost.impl.messages.admin_api import MorePartitions, NewTopic, ReplicasOf
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.traces.kafka_names.outcomes import ErrorCode

E = ErrorCode


def assigned(*replicas: tuple[int, ...], first: int = 0) -> tuple[ReplicasOf, ...]:
    """Replicas of partitions from the first on."""
    return tuple(ReplicasOf(partition=number, replicas=ids) for number, ids in enumerate(replicas, first))


# ---- create


def test_a_topic_is_created_when_it_has_its_leaders(lab):
    """Rule (KIP-4): the answer comes when metadata shows a leader of each partition, not when the nodes
    are written."""
    asked = lab.create(NewTopic(name="t", partitions=2, replication_factor=3))
    assert lab.topics() == ("t",) and asked.answer is None
    lab.settle()
    assert asked.errors == {"t": E.NONE} and asked.messages == ""
    assert {len(ids) for ids in lab.assignment("t").values()} == {3} and len(lab.assignment("t")) == 2
    assert lab.core(1).metadata.leader_of(TopicPartition("t", 1)) > 0


def test_without_numbers_a_topic_gets_the_brokers_defaults():
    """Rule (KIP-464): num.partitions and default.replication.factor; the factor is never more than there
    are brokers, so that one broker is enough."""
    lab = AdminLab(2, num_partitions=3, default_replication_factor=3)
    asked = lab.create(NewTopic(name="t"))
    lab.settle()
    assert asked.errors == {"t": E.NONE}
    assert len(lab.assignment("t")) == 3 and {len(ids) for ids in lab.assignment("t").values()} == {2}
    one = AdminLab(1)
    asked = one.create(NewTopic(name="t"))
    one.settle()
    assert asked.errors == {"t": E.NONE} and one.assignment("t") == {0: (1,)}


def test_assignment_and_configuration_are_taken_as_they_are(lab):
    """Rule (KIP-4): replicas that are named, in their order; overrides stand in ZooKeeper and are in
    force."""
    topic = NewTopic(
        name="t", assignment=assigned((2, 1), (3, 2)), config=(("retention.ms", "1000"), ("segment.ms", "50"))
    )
    asked = lab.create(topic)
    lab.rest()
    assert asked.errors == {"t": E.NONE}
    assert lab.assignment("t") == {0: (2, 1), 1: (3, 2)}
    assert lab.overrides("t") == {"retention.ms": "1000", "segment.ms": "50"}
    assert lab.core(2).broker_context.topic_options("t").retention_ms == 1000


REFUSED = {
    "exists": (
        NewTopic(name="old", partitions=1, replication_factor=1),
        E.TOPIC_ALREADY_EXISTS,
        "a new topic",
    ),
    "name": (NewTopic(name="a b", partitions=1, replication_factor=1), E.INVALID_TOPIC_EXCEPTION, "'a b'"),
    "long name": (NewTopic(name="x" * 250), E.INVALID_TOPIC_EXCEPTION, "1 to 249"),
    "path": (NewTopic(name=".."), E.INVALID_TOPIC_EXCEPTION, "'..'"),
    "metadata log": (NewTopic(name="__cluster_metadata"), E.INVALID_TOPIC_EXCEPTION, "'__cluster_metadata'"),
    "collision": (
        NewTopic(name="o_d.x", partitions=1, replication_factor=1),
        E.INVALID_TOPIC_EXCEPTION,
        "o.d_x",
    ),
    "no partitions": (NewTopic(name="t", partitions=0, replication_factor=1), E.INVALID_PARTITIONS, "saw 0"),
    "negative": (NewTopic(name="t", partitions=-2, replication_factor=1), E.INVALID_PARTITIONS, "saw -2"),
    "factor": (NewTopic(name="t", partitions=1, replication_factor=4), E.INVALID_REPLICATION_FACTOR, "saw 4"),
    "no factor": (
        NewTopic(name="t", partitions=1, replication_factor=0),
        E.INVALID_REPLICATION_FACTOR,
        "saw 0",
    ),
    "both": (NewTopic(name="t", partitions=1, assignment=assigned((1,))), E.INVALID_REQUEST, "both"),
    "dead broker": (
        NewTopic(name="t", assignment=assigned((1, 9))),
        E.INVALID_REPLICA_ASSIGNMENT,
        "broker 9",
    ),
    "twice": (
        NewTopic(name="t", assignment=assigned((1, 1))),
        E.INVALID_REPLICA_ASSIGNMENT,
        "each broker once",
    ),
    "nobody": (
        NewTopic(name="t", assignment=assigned(())),
        E.INVALID_REPLICA_ASSIGNMENT,
        "at least one replica",
    ),
    "uneven": (
        NewTopic(name="t", assignment=assigned((1,), (1, 2))),
        E.INVALID_REPLICA_ASSIGNMENT,
        "1 and 2",
    ),
    "gap": (
        NewTopic(name="t", assignment=assigned((1,), first=1)),
        E.INVALID_REPLICA_ASSIGNMENT,
        "without a gap",
    ),
    "same partition": (
        NewTopic(name="t", assignment=(*assigned((1,)), *assigned((2,)))),
        E.INVALID_REPLICA_ASSIGNMENT,
        "twice",
    ),
    "setting": (NewTopic(name="t", config=(("retention", "1"),)), E.INVALID_CONFIG, "'retention'"),
    "value": (NewTopic(name="t", config=(("retention.ms", "x"),)), E.INVALID_CONFIG, "a whole number"),
    "no value": (
        NewTopic(name="t", config=(("retention.ms", None),)),
        E.INVALID_CONFIG,
        "none for 'retention.ms'",
    ),
    "not ours": (
        NewTopic(name="t", config=(("compression.type", "gzip"),)),
        E.INVALID_CONFIG,
        "expected producer",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("dry", [False, True])
def test_what_cannot_be_created_is_refused(case, dry):
    """Rule (KIP-4): Kafka's error, with a sentence; the other topics of the request are created all the
    same, nothing of this one is."""
    lab = AdminLab().created("old")
    lab.created("o.d_x")
    topic, error, says = REFUSED[case]
    asked = lab.create(topic, NewTopic(name="good", partitions=1, replication_factor=1), dry=dry)
    lab.settle()
    assert asked.errors == {topic.name: error, "good": E.NONE}
    assert says in asked.messages
    assert lab.topics() == (("o.d_x", "old") if dry else ("good", "o.d_x", "old"))


def test_validation_alone_creates_nothing(lab):
    """Rule (KIP-4): validate_only answers at once what a creation would, and writes nothing, no
    configuration either."""
    before = lab.tree.zxid
    asked = lab.create(NewTopic(name="t", config=(("retention.ms", "1"),)), dry=True)
    assert asked.errors == {"t": E.NONE}
    assert lab.tree.zxid == before and lab.topics() == ()


def test_a_topic_named_twice_is_created_by_neither(lab):
    """Rule (KafkaApis): a request that names a topic twice contradicts itself."""
    once = NewTopic(name="t", partitions=1, replication_factor=1)
    asked = lab.create(once, once)
    assert [one.error for one in asked.answer.results] == [E.INVALID_REQUEST] * 2
    assert lab.topics() == ()


def test_only_the_controller_creates(lab):
    """Rule (KafkaApis): another broker sends the client to the controller."""
    for asked in (
        lab.create(NewTopic(name="t"), node=2),
        lab.delete("t", node=2),
        lab.grow(MorePartitions(name="t", count=2), node=2),
    ):
        assert asked.errors == {"t": E.NOT_CONTROLLER}
    assert lab.topics() == ()


def test_time_runs_out_before_the_leaders_are_there():
    """Rule (DelayedCreatePartitions): then the answer says so, of those that are late; the creation goes
    on. A time-out of 0 waits for nothing."""
    lab = AdminLab().created("old")
    late = lab.create(NewTopic(name="t"), NewTopic(name="old"), timeout_ms=500)
    lab.advance(499)
    assert late.answer is None
    lab.advance(1)
    assert late.errors == {"t": E.REQUEST_TIMED_OUT, "old": E.TOPIC_ALREADY_EXISTS}
    lab.settle()
    assert late.answers == [late.answer] and lab.core(1).metadata.knows("t")
    assert lab.create(NewTopic(name="u"), timeout_ms=0).errors == {"u": E.REQUEST_TIMED_OUT}
    assert not lab.core(1).administration.desk.open


def test_a_creation_goes_on_over_a_lost_connection(lab):
    """Rule: requests to ZooKeeper that were lost are sent again; the client hears once, when it is done."""
    lab.hold_zookeeper(1)
    asked = lab.create(NewTopic(name="t", partitions=1, replication_factor=2))
    lab.reconnect(1).settle()
    assert asked.errors == {"t": E.NONE} and len(lab.assignment("t")[0]) == 2


def test_requests_that_wait_are_bounded(monkeypatch):
    """Rule: a broker holds so many requests without an answer, and no more: a further one is answered that
    its time is up."""
    monkeypatch.setattr(desk, "MOST_WAITING", 2)
    lab = AdminLab()
    asked = [lab.create(NewTopic(name=f"t{number}")) for number in range(3)]
    assert asked[2].errors == {"t2": E.REQUEST_TIMED_OUT}
    lab.settle()
    assert [one.errors for one in asked[:2]] == [{"t0": E.NONE}, {"t1": E.NONE}]


# ---- delete


def test_a_topic_is_deleted_when_nothing_of_it_is_left():
    """Rule (KIP-4): after the answer its name is free."""
    lab = AdminLab().created("t", partitions=2, factor=3)
    asked = lab.delete("t", "none")
    assert asked.answer is None
    lab.rest()
    assert asked.errors == {"t": E.NONE, "none": E.UNKNOWN_TOPIC_OR_PARTITION}
    assert lab.topics() == ()
    lab.created("t")


@pytest.mark.parametrize("planted", [False, True])
def test_the_answer_to_a_deletion_comes_when_the_name_is_free(planted, monkeypatch):
    """Rule: the client may create the topic anew as soon as it is answered. Planted: to look at metadata
    alone, as Kafka does, is too early."""
    lab = AdminLab().created("t", factor=3)
    if planted:
        monkeypatch.setattr(TopicRequests, "_gone", lambda self, keys: not self.metadata.knows(keys[0].topic))
    asked = lab.delete("t")
    for _ in range(50):
        if asked.answer is not None:
            break
        lab.deliver()
    assert asked.errors == {"t": E.NONE}
    assert (lab.topics() == ()) is not planted


def test_a_deletion_that_another_asked_for_is_waited_for():
    """Rule (ZkAdminManager): a topic that is marked already is deleted once; both clients hear of it."""
    lab = AdminLab().created("t", factor=2)
    first, second = lab.delete("t"), lab.delete("t")
    lab.rest()
    assert first.errors == second.errors == {"t": E.NONE}


def test_replicas_on_dead_brokers_are_not_waited_for():
    """Rule: clients see the topic no more although its replica on a dead broker goes only when that
    returns; its name is free then."""
    lab = AdminLab().created("t", factor=3)
    lab.crash(3).rest()
    asked = lab.delete("t")
    lab.rest()
    assert asked.errors == {"t": E.NONE} and lab.topics() == ("t",)
    lab.start(3).rest()
    assert lab.topics() == ()


def test_a_controller_that_resigns_has_no_last_word():
    """Rule: a broker that is not the controller any more answers by its metadata, or that the time is up;
    it never says that what is there is gone."""
    lab = AdminLab().created("t", factor=3)
    lab.admin(Create(znodes.REASSIGN, znodes.encode_reassignments({TopicPartition("t", 0): (1, 2, 3)})))
    asked = lab.delete("t", timeout_ms=3_000)
    lab.drop()
    lab.expire(1)
    lab.drop()
    assert asked.answer is None
    lab.advance(3_000, nodes=(1,))
    assert asked.errors == {"t": E.REQUEST_TIMED_OUT}


# ---- more partitions


def test_partitions_are_added():
    """Rule (KIP-195): placed by the broker or as they are named; answered when they have leaders."""
    lab = AdminLab().created("t", factor=2)
    asked = lab.grow(MorePartitions(name="t", count=3))
    assert asked.answer is None
    lab.settle()
    assert asked.errors == {"t": E.NONE} and len(lab.assignment("t")) == 3
    asked = lab.grow(MorePartitions(name="t", count=4, assignment=((3, 1),)))
    lab.settle()
    assert asked.errors == {"t": E.NONE} and lab.assignment("t")[3] == (3, 1)


def test_a_request_for_too_many_partitions_is_refused_as_a_whole():
    """Rule (Apache Kafka 4, ReplicationControlManager): at most 10,000 over all topics of a request; none is
    made, not even the topic that would have fitted."""
    lab = AdminLab().created("old", partitions=2, factor=2)
    before = lab.tree.zxid
    good = NewTopic(name="good", partitions=1, replication_factor=1)
    for topic, seen in (
        (NewTopic(name="t", partitions=10_000, replication_factor=1), "10,001"),
        (NewTopic(name="t", partitions=2**31 - 1, replication_factor=1), "2,147,483,648"),
        (NewTopic(name="t", assignment=assigned(*[(1,)] * 10_000)), "10,001"),
    ):
        asked = lab.create(topic, good)
        assert asked.errors == {"t": E.POLICY_VIOLATION, "good": E.POLICY_VIOLATION}
        (result, _) = asked.answer.results
        assert f"at most 10,000 partitions over all topics, saw {seen}" in result.message
    assert lab.grow(MorePartitions(name="old", count=10_001)).errors == {"old": E.POLICY_VIOLATION}
    assert lab.tree.zxid == before
    fits = lab.create(NewTopic(name="t", partitions=9_999, replication_factor=1), good, dry=True)
    assert fits.errors == {"t": E.NONE, "good": E.NONE}


def test_partitions_that_cannot_be_added():
    """Rule (KIP-195): Kafka's errors; nothing is written."""
    lab = AdminLab().created("t", partitions=2, factor=2)
    before = lab.tree.zxid
    for topic, error in (
        (MorePartitions(name="none", count=3), E.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions(name="t", count=2), E.INVALID_PARTITIONS),
        (MorePartitions(name="t", count=1), E.INVALID_PARTITIONS),
        (MorePartitions(name="t", count=10_001), E.POLICY_VIOLATION),
        (MorePartitions(name="t", count=4, assignment=((1, 2),)), E.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(name="t", count=3, assignment=((1, 9),)), E.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(name="t", count=3, assignment=((1, 1),)), E.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(name="t", count=3, assignment=((1,),)), E.INVALID_REPLICA_ASSIGNMENT),
    ):
        assert lab.grow(topic).errors == {topic.name: error}, topic
    assert lab.grow(MorePartitions(name="t", count=3), dry=True).errors == {"t": E.NONE}
    assert lab.tree.zxid == before


def test_partitions_of_a_topic_under_change():
    """Rule (KIP-195): while it is reassigned, or deleted, its partitions stay as many as they are."""
    lab = AdminLab().created("t", factor=1)
    lab.created("gone", factor=1)
    lab.admin(Create(znodes.REASSIGN, znodes.encode_reassignments({TopicPartition("t", 0): (3, 2)})))
    lab.admin(Create(znodes.delete_topic_path("gone")))
    asked = lab.grow(MorePartitions(name="t", count=2), MorePartitions(name="gone", count=2))
    assert asked.errors == {"t": E.REASSIGNMENT_IN_PROGRESS, "gone": E.INVALID_TOPIC_EXCEPTION}


@pytest.mark.parametrize("attempts", [1, topic_requests.ATTEMPTS])
def test_two_change_the_same_topic(attempts, monkeypatch):
    """Rule: whoever was slower reads anew and tries again. Planted: with one attempt only, the client is
    sent away."""
    monkeypatch.setattr(topic_requests, "ATTEMPTS", attempts)
    lab = AdminLab().created("t", factor=1)
    lab.hold_zookeeper(1)
    first, second = lab.grow(MorePartitions(name="t", count=2)), lab.grow(MorePartitions(name="t", count=3))
    for _ in range(60):
        lab.release_zookeeper(1, 1).settle()
    lab.reconnect(1).rest()
    assert first.errors == {"t": E.NONE}
    assert second.errors == {"t": E.NONE if attempts > 1 else E.REQUEST_TIMED_OUT}

"""Topics that create themselves when a client of Kafka's own protocol asks for their metadata
(auto.create.topics.enable)."""

import pytest
from admin_lab import AdminLab

from fencepost.impl.admin.requests import topic_requests
from fencepost.impl.messages.admin_api import NewTopic
from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import GroupOptions, TransactionOptions

E = ErrorCode


def asked(lab: AdminLab, *names: str, node: int = 1, allow: bool = True) -> dict[str, ErrorCode]:
    """What metadata says of topics that are not there."""
    request = MetadataRequest(
        correlation_id=lab.number(), topics=names or None, allow_auto_topic_creation=allow
    )
    return dict(lab.send(request, node).answer.errors)


def test_a_topic_creates_itself_with_the_defaults():
    """Rule: any broker creates what is asked for; the client is told to ask again, and finds it."""
    lab = AdminLab(2, num_partitions=2)
    assert asked(lab, "t", node=2) == {"t": E.LEADER_NOT_AVAILABLE}
    lab.rest()
    assert asked(lab, "t", node=2) == {} and asked(lab, "t") == {}
    assert {number: len(ids) for number, ids in lab.assignment("t").items()} == {0: 2, 1: 2}


def test_one_broker_is_enough():
    """Rule: the default replication factor is never more than there are brokers."""
    lab = AdminLab(1)
    asked(lab, "t")
    lab.rest()
    assert lab.assignment("t") == {0: (1,)}


def test_nobody_creates_what_nobody_asked_for(lab):
    """Rule: not for a client that does not want it, not for one that asks for all topics, and not with the
    option off."""
    assert asked(lab, "t", allow=False) == {"t": E.UNKNOWN_TOPIC_OR_PARTITION}
    assert asked(lab) == {}
    off = AdminLab(1, auto_create_topics_enable=False)
    assert asked(off, "t") == {"t": E.UNKNOWN_TOPIC_OR_PARTITION}
    assert lab.topics() == off.topics() == ()


def test_it_is_created_once_however_often_it_is_asked_for(lab):
    """Rule: while a broker creates a topic, further clients wait for the same creation; of two brokers one is
    quicker."""
    lab.hold_zookeeper(2)
    for _ in range(3):
        assert asked(lab, "t", node=2) == {"t": E.LEADER_NOT_AVAILABLE}
    assert lab.core(2).administration.topics.creating == {"t"}
    asked(lab, "t", node=3)
    lab.rest()
    placed = lab.assignment("t")
    lab.reconnect(2).rest()
    assert lab.assignment("t") == placed and not lab.core(2).administration.topics.creating
    assert asked(lab, "t", node=2) == {}


def test_what_cannot_be_created_is_said():
    """Rule: an illegal name is refused at once; a name that collides when it was tried, to whoever asks
    next."""
    lab = AdminLab().created("a.b")
    assert asked(lab, "a b") == {"a b": E.INVALID_TOPIC_EXCEPTION}
    assert asked(lab, "a_b") == {"a_b": E.LEADER_NOT_AVAILABLE}
    assert asked(lab, "a_b") == {"a_b": E.INVALID_TOPIC_EXCEPTION}
    assert lab.topics() == ("a.b",)


@pytest.mark.parametrize("bound", [2, 1_000])
def test_creations_are_bounded(bound, monkeypatch):
    """Rule: one request that names thousands of topics begins so many creations at a time; the rest when
    asked for again."""
    monkeypatch.setattr(topic_requests, "MOST_CREATING", bound)
    lab = AdminLab(1)
    lab.hold_zookeeper(1)
    names = [f"t{number}" for number in range(5)]
    assert set(asked(lab, *names).values()) == {E.LEADER_NOT_AVAILABLE}
    assert len(lab.core(1).administration.topics.creating) == min(bound, 5)


def test_the_offsets_topic_creates_itself_as_the_coordinator_makes_it():
    """Rule (KafkaApis): it has as many partitions and replicas as its own options say, whoever asks for it
    first."""
    lab = AdminLab(2, groups=GroupOptions(offsets_topic_partitions=4, offsets_topic_replication_factor=2))
    assert asked(lab, "__consumer_offsets") == {"__consumer_offsets": E.LEADER_NOT_AVAILABLE}
    lab.rest()
    placed = lab.assignment("__consumer_offsets")
    assert len(placed) == 4 and {len(ids) for ids in placed.values()} == {2}


@pytest.mark.parametrize("partitions", [0, 3])
def test_the_state_topic_is_never_a_plain_topic(partitions):
    """Rule (KafkaApis): only the coordinators create __transaction_state, with the partitions that their
    options say. Where transactions are off nobody can: neither by its metadata nor by CreateTopics."""
    options = TransactionOptions(state_topic_partitions=partitions, state_topic_replication_factor=2)
    lab = AdminLab(2, transactions=options)
    name = "__transaction_state"
    expected = E.LEADER_NOT_AVAILABLE if partitions else E.UNKNOWN_TOPIC_OR_PARTITION
    assert asked(lab, name) == {name: expected}
    lab.rest()
    assert lab.topics() == ((name,) if partitions else ())
    assert not partitions or len(lab.assignment(name)) == partitions
    refused = E.TOPIC_ALREADY_EXISTS if partitions else E.INVALID_TOPIC_EXCEPTION
    created = lab.create(NewTopic(name=name, partitions=1, replication_factor=1))
    lab.rest()
    assert created.errors == {name: refused}

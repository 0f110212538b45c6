"""What an operator does to a cluster over the wire. Asked of our embedded brokers, so that it needs no Java;
the same calls go to Apache Kafka."""

import threading

import pytest

from fencepost.systems.apache_kafka.administration import Administration, TopicOptions
from fencepost.systems.embedded import Embedded
from fencepost.traces.errors import EnvironmentError_


@pytest.fixture(scope="module")
def embedded():
    """One cluster for all tests; each has topics of its own."""
    with Embedded() as system:
        yield system


@pytest.fixture
def admin(embedded):
    """Its admin client."""
    return Administration(embedded.bootstrap_servers())


def led_by(admin, topic, leader, partition=0):
    """Wait until this broker leads."""
    admin.wait_for(
        lambda: (seen := admin.partitions().get((topic, partition))) is not None and seen.leader == leader,
        f"{leader} leads {topic}-{partition}",
    )


def test_topics_are_made_enlarged_and_deleted(admin):
    """Each call says NONE, or Kafka's name of what is wrong."""
    made = TopicOptions(name="a", assignment=((2, 3), (3, 1)), settings={"min.insync.replicas": "2"})
    assert admin.create_topic(made) == "NONE"
    assert admin.create_topic(made) == "TOPIC_ALREADY_EXISTS"
    led_by(admin, "a", 2)
    assert [tuple(admin.partitions()["a", number].replicas) for number in (0, 1)] == [(2, 3), (3, 1)]
    assert admin.create_partitions("a", 3) == "NONE"
    assert admin.create_partitions("a", 2) == "INVALID_PARTITIONS"
    admin.wait_for(lambda: ("a", 2) in admin.partitions(), "the third partition")
    assert admin.delete_topic("a") == "NONE"
    admin.wait_for(lambda: ("a", 0) not in admin.partitions(), "the end of the topic")
    assert admin.delete_topic("a") == "UNKNOWN_TOPIC_OR_PARTITION"


def test_replicas_move_and_the_preferred_one_leads(admin, embedded):
    """A reassignment to another broker is carried out; its first replica leads after a preferred election."""
    assert admin.create_topic(TopicOptions(name="b", assignment=((1, 2),))) == "NONE"
    led_by(admin, "b", 1)
    assert admin.elect("b", 0) == "ELECTION_NOT_NEEDED"
    assert admin.reassign("b", 0, (3, 1)) == "NONE"
    admin.wait_for(
        lambda: (seen := admin.partitions()["b", 0]) and set(seen.replicas) == set(seen.isr) == {1, 3},
        "the new replicas",
    )
    if admin.partitions()["b", 0].leader != 3:
        assert admin.elect("b", 0) == "NONE"
    led_by(admin, "b", 3)
    assert admin.reassign("b", 0, None) == "NO_REASSIGNMENT_IN_PROGRESS"


def test_an_unclean_election_needs_a_partition_without_a_leader(admin, embedded):
    """The ISR's only member is down, and the other replica leads on demand."""
    assert admin.create_topic(TopicOptions(name="c", assignment=((1, 2),))) == "NONE"
    led_by(admin, "c", 1)
    assert admin.elect("c", 0, unclean=True) == "ELECTION_NOT_NEEDED"
    embedded.kill(2)
    admin.wait_for(lambda: set(admin.partitions()["c", 0].isr) == {1}, "an ISR of one")
    embedded.kill(1)
    embedded.restart(2)
    led_by(admin, "c", -1)
    assert admin.elect("c", 0, unclean=True) == "NONE"
    led_by(admin, "c", 2)
    embedded.restart(1)
    admin.wait_for(embedded.healthy, "health")


def test_a_controller_that_nobody_names_is_waited_for_in_vain(unused_port=1):
    """Nobody listens there: one sentence, after the patience."""
    admin = Administration(f"127.0.0.1:{unused_port}", patience_s=0.1)
    with pytest.raises(EnvironmentError_, match="an answer of the controller"):
        admin.delete_topic("a")
    assert threading.active_count() < 50

"""Verbs that wait: each ends when what it waits for has come, and says in a sentence what did not."""

import threading

import pytest
from confluent_kafka import Consumer, Producer

import fencepost.kafka
from fencepost.traces.errors import EnvironmentError_, PlanError


@pytest.fixture(scope="module")
def kafka():
    with fencepost.kafka.cluster(brokers=1) as cluster:
        cluster.create_topic("orders")
        yield cluster


def send(kafka, count=1):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(count):
        producer.produce("orders", b"%d" % number)
        producer.flush(60)


def test_an_observed_request_counts_and_is_not_struck(kafka):
    """Rule: a fault may say which requests it sees; they take effect, and nothing is in the record."""
    number = kafka.request_fault("observe Produce on orders")
    send(kafka, 3)
    assert kafka.wait_for_hits(number, 3) == 3
    kafka.end_request_fault(number)
    assert "observe" not in kafka.status()["struck"]


def test_another_fault_hits_what_is_observed(kafka):
    """Rule: one who only looks takes no fault's place."""
    looks = kafka.request_fault("observe Produce on orders")
    loses = kafka.request_fault("lose answer to Produce on orders, once")
    send(kafka)
    assert kafka.wait_for_hits(loses) == 1
    assert kafka.wait_for_hits(looks) >= 2
    kafka.end_request_fault(looks)


def test_a_request_is_waited_for(kafka):
    """Rule: the wait ends when the request has come, and leaves no fault behind."""
    waiting = threading.Thread(target=kafka.wait_for_request, args=("Produce", 1, "orders"))
    waiting.start()
    while waiting.is_alive():
        send(kafka)
    waiting.join()
    assert [row for row in kafka.request_faults() if row["fault"].startswith("observe")] == []


def test_a_group_and_its_commits_are_waited_for(kafka):
    """Rule: stable with its members, and as many records as were committed."""
    send(kafka, 2)
    options = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    assert consumer.consume(2, 60)
    kafka.wait_for_group("g", 1)
    consumer.commit(asynchronous=False)
    assert kafka.wait_for_committed("g", 2) >= 2
    with pytest.raises(EnvironmentError_, match=r"group g to be stable with 7 members within 0 s.*Stable"):
        kafka.wait_for_group("g", 7, timeout_s=0)
    consumer.close()


def test_what_does_not_come_gets_a_sentence(kafka):
    """Rule: expected, seen, where."""
    with pytest.raises(EnvironmentError_, match="5 records committed by group nobody within 0 s"):
        kafka.wait_for_committed("nobody", 5, timeout_s=0)
    with pytest.raises(PlanError, match="saw 12345"):
        kafka.wait_for_hits(12345, timeout_s=0)

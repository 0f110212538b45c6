"""What a service under test writes of itself is judged and drawn with the record of its cluster."""

import sys

import pytest
from attrs import evolve
from confluent_kafka import Producer

import fencepost.kafka
from fencepost.application.service_files import excused
from fencepost.application.tap import Tap
from fencepost.campaign.failure import RunFailedError
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.trace import Trace
from fencepost.viewer.view import Shown, view_of

SERVICE = """
import os, sys
from confluent_kafka import Consumer
from fencepost.application.tap import Tap

tap = Tap(ids=False)
settings = {"bootstrap.servers": os.environ["BOOTSTRAP_SERVERS"], "group.id": "g",
            "auto.offset.reset": "earliest", "enable.auto.commit": False}
consumer = tap.consumer(Consumer(settings), "billing", "g")
consumer.subscribe(["orders"])
seen = 0
while seen < 6:
    for order in consumer.consume(1, 1):
        if order.error():
            continue
        seen += 1
        if order.offset() != 3 or "--drop" not in sys.argv:
            tap.processed(order)
        consumer.commit(order, asynchronous=False)
consumer.close()
"""


@pytest.fixture
def kafka():
    """With six orders."""
    with fencepost.kafka.cluster(brokers=1) as cluster:
        cluster.create_topic("orders")
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        for number in range(6):
            producer.produce("orders", b"%d" % number, b"customer")
        assert producer.flush(60) == 0
        yield cluster


def served(kafka, *words):
    """Let the service do its work, and end."""
    with kafka.service([sys.executable, "-c", SERVICE, *words]) as service:
        assert service.wait(120) == 0


def test_a_service_that_keeps_its_promise_is_ok(kafka):
    """Rule: its events are part of the run, and nothing is found."""
    served(kafka)
    kafka.assert_ok()
    causes = [event.cause for event in kafka.end().events if event.name is Name.APPLICATION]
    assert causes.count("processed") == 6 and "stopped" in causes


def test_what_a_service_lost_is_in_the_same_verdict_and_page(kafka, tmp_path):
    """Rule: the cluster kept the order, the application did not: the test fails, the trace that is kept says
    so again, and the page marks the lines at the time of what the wire showed."""
    served(kafka, "--drop")
    with pytest.raises(RunFailedError, match="orders-0 offset 3 of group g: received by billing") as failed:
        kafka.assert_ok(tmp_path)
    assert [one.anomaly for one in failed.value.verdict.findings] == ["record_never_processed"]
    assert "service-1.events" in str(failed.value)
    (trace,) = read_traces(tmp_path / "trace.jsonl")
    view = view_of(Shown(trace=trace, verdicts=(failed.value.verdict,)))
    labels = {lane["label"]: number for number, lane in enumerate(view["lanes"])}
    moments = view["moments"]
    texts = [view["texts"][number] for number in moments["text"]]
    times = [sum(moments["wait"][: step + 1]) for step in range(len(texts))]
    mine = {
        texts[step]: times[step] for step, lane in enumerate(moments["lane"]) if lane == labels["billing"]
    }
    assert next(iter(mine)) == "started" and "processed orders-0 offset 3" not in mine
    sent = next(time for time, text in zip(times, texts, strict=True) if text.startswith("append"))
    assert sent < mine["received orders-0 offset 0"] <= mine["committed orders-0 offset 6"]
    (known,) = [one["known"] for one in view["clients"] if view["partitions"][one["partition"]] == "orders-0"]
    assert not any(known["rival"]), "a hash and the wire's id of one record are no two values"
    shown = {texts[step] for step in view["findings"][0]["steps"]}
    assert "received orders-0 offset 3" in shown


def test_what_a_service_promises_can_be_stated(kafka):
    """Rule: a loss is no finding where at most once was promised; a word that there is not is refused."""
    with pytest.raises(PlanError, match="at-least-once, at-most-once, exactly-once"):
        kafka.promise("always")
    with pytest.raises(PlanError, match="what is allowed"):
        kafka.promise("at-least-once", allow=["everything"])
    kafka.promise("at-most-once")
    served(kafka, "--drop")
    kafka.assert_ok()


def test_a_tap_without_a_path_needs_the_variable(monkeypatch):
    """Rule: it says what is missing."""
    monkeypatch.delenv("FENCEPOST_EVENTS", raising=False)
    with pytest.raises(ValueError, match="FENCEPOST_EVENTS"):
        Tap()


def event(name, **more):
    """An event of broker 1."""
    return Event(time=1, name=name, node=1, **more)


@pytest.mark.parametrize(
    ("one", "excuses"),
    [
        (event(Name.TRUNCATED, topic="orders", partition=0), "other_bytes"),
        (event(Name.TRUNCATED, topic="__consumer_offsets", partition=0), "processed_twice"),
        (event(Name.LOG_START, topic="orders", partition=0, log_start_offset=4), "record_never_processed"),
        (event(Name.COMPACTED, topic="orders", partition=0), "record_never_received"),
        (event(Name.GROUP_OFFSET_EXPIRED), "processed_twice"),
        (event(Name.FAULT_BEGAN, cause="power_loss"), "record_never_received"),
        (event(Name.TOPIC_DELETION, topic="orders"), "offset_acknowledged_twice"),
    ],
)
def test_what_the_cluster_lost_is_no_fault_of_the_application(one, excuses):
    """Rule: only facts of brokers excuse, each what it may have caused; none, nothing."""
    trace = Trace(trace_id=0, plan="", seed=0, software_version="", events=(one,))
    assert excuses in excused(trace)
    assert "committed_before_processed" not in excused(trace)
    crash = evolve(trace, events=(event(Name.FAULT_BEGAN, cause="crash"),))
    assert excused(crash) == frozenset()

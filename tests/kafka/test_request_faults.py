"""Faults of requests at an embedded cluster's sockets, with the exact client (wire/client.py) and with other
people's."""

import json
import time

import pytest

import fencepost.kafka
from fencepost.kafka.judgement import exercised, met_requests
from fencepost.proxy.faults import VERBS
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import Trace
from tests.kafka.clients import appended, consumer, produce, producer
from tests.kafka.raw import Raw


@pytest.fixture(scope="module")
def kafka():
    """One cluster for all tests; each heals it."""
    with fencepost.kafka.cluster() as cluster:
        cluster.create_topic("t", partitions=2)
        yield cluster
        assert cluster.assert_ok()


@pytest.fixture
def raw(kafka):
    """A socket to the leader of t-0, of which each field is seen."""
    kafka.heal()
    with Raw(kafka, "t", 0) as link:
        yield link
    kafka.heal()


def hits(kafka, number):
    """Of a fault that is armed."""
    return next(each["hits"] for each in kafka.request_faults() if each["number"] == number)


def test_an_answer_is_lost_after_its_effect(kafka, raw):
    """Rule: the record is in the log, and the connection has ended without an answer; only the fault's
    request is hit."""
    end = raw.end()
    number = kafka.request_fault("lose answer to Produce on t-0, once")
    assert raw.produce(b"a") is None and raw.closed
    assert raw.again().end() == end + 1 and hits(kafka, number) == 1
    assert raw.produce(b"b").error == "none"


def test_a_connection_is_cut_before_the_effect(kafka, raw):
    """Rule: nothing is written."""
    end = raw.end()
    kafka.request_fault("cut before Produce, once")
    assert raw.produce(b"a") is None and raw.closed and raw.again().end() == end


def test_a_connection_is_cut_after_the_answer(kafka, raw):
    """Rule: the answer arrives whole."""
    kafka.request_fault("cut after Produce, once")
    assert raw.produce(b"a").error == "none" and raw.read() is None and raw.closed


def test_half_an_answer_arrives(kafka, raw):
    """Rule: the effect is there, some bytes come, and then the end."""
    end = raw.end()
    kafka.request_fault("half answer to Produce, once")
    assert raw.produce(b"a") is None and 0 < len(raw.rest) < 60
    assert raw.again().end() == end + 1


def test_an_error_in_place_of_the_answer_has_no_effect_unless_it_says_so(kafka, raw):
    """Rule: before the effect the log stays as it was; after it the record is there."""
    end = raw.end()
    kafka.request_fault("answer NOT_LEADER_OR_FOLLOWER to Produce on t-0, once")
    answer = raw.produce(b"a")
    assert (answer.error, answer.offset) == ("not_leader_or_follower", -1) and raw.end() == end
    kafka.request_fault("answer REQUEST_TIMED_OUT to Produce on t-0, once, after effect")
    assert raw.produce(b"b").error == "request_timed_out" and raw.end() == end + 1
    with pytest.raises(PlanError, match="what a correct broker may do"):
        kafka.answer_with("OFFSET_OUT_OF_RANGE", "Fetch")


def test_one_partition_of_a_request_fails_alone(kafka, raw):
    """Rule: the other partition of the same request is written and acknowledged."""
    with Raw(kafka, "t", kafka.leader("t", 0)) as _:
        pass
    kafka.move_leader("t", 1, kafka.leader("t", 0)) if kafka.leader("t", 1) != kafka.leader("t", 0) else None
    ends = raw.end(0), raw.end(1)
    kafka.request_fault("answer NOT_ENOUGH_REPLICAS to Produce on t-1, once")
    answers = raw.produce_both(b"a")
    assert {number: row.error for number, row in answers.items()} == {0: "none", 1: "not_enough_replicas"}
    assert (raw.end(0), raw.end(1)) == (ends[0] + 1, ends[1])


def test_a_delayed_answer_and_a_throttled_client(kafka, raw):
    """Rule: the effect is at once; the throttle is in the answer."""
    kafka.request_fault("delay answer to Produce by 60ms, once")
    assert raw.produce(b"a").error == "none"
    kafka.request_fault("throttle Produce by 40ms, once")
    assert raw.produce(b"b").throttle_ms == 40
    assert raw.produce(b"c").throttle_ms == 0
    spans = [
        (event.time, json.loads(event.detail)["fault"], event.name)
        for event in kafka.trace().events
        if event.cause in ("delay_answer", "throttle")
    ]
    begins = {fault: time for time, fault, name in spans if name is Name.FAULT_BEGAN}
    ends = {fault: time for time, fault, name in spans if name is Name.FAULT_ENDED}
    assert sorted(ends[fault] - begins[fault] for fault in ends) == [40_000_000, 60_000_000]


def until(holds) -> None:
    """Wait until something holds; fail after ten minutes."""
    end = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_leader_moves_and_comes_back(kafka, raw):
    """Rule: while it lasts the leader says that it is none, and Metadata names another broker, in an earlier
    epoch; then all is as before."""
    leader = kafka.leader("t", 0)
    kafka.request_fault("move leader on t-0 for 300ms, once")
    assert raw.produce(b"a").error == "not_leader_or_follower"
    assert raw.leader() not in (leader, -1)
    assert raw.produce(b"a").error == "not_leader_or_follower"
    until(lambda: raw.leader() == leader)
    assert raw.produce(b"a").error == "none"


def test_metadata_forgets_a_topic_once_and_is_stale_once(kafka, raw):
    """Rule: UNKNOWN_TOPIC_OR_PARTITION for one answer; an earlier answer again, as it was."""
    kafka.request_fault("answer UNKNOWN_TOPIC_OR_PARTITION to Metadata on t, once")
    assert raw.leader() == "unknown_topic_or_partition"
    before = raw.leader()
    moved = kafka.move_leader("t", 0)
    until(lambda: raw.leader() == moved)
    kafka.request_fault("stale answer to Metadata, once")
    assert raw.leader() == before and raw.leader() == moved != before


@pytest.mark.parametrize("on", ["", " on t", " on t-0"])
def test_metadata_calls_a_topic_unknown_as_a_whole(kafka, raw, on):
    """Rule: UNKNOWN_TOPIC_OR_PARTITION is never the error of one partition of a topic that is known."""
    kafka.request_fault(f"answer UNKNOWN_TOPIC_OR_PARTITION to Metadata{on}, once")
    assert raw.leader() == "unknown_topic_or_partition"
    assert raw.leader() in (1, 2, 3)


def test_a_member_is_forgotten_until_it_joins_as_a_new_one(kafka, raw):
    """Rule: every request of the member is answered UNKNOWN_MEMBER_ID."""
    kafka.request_fault("forget member in Heartbeat of group g, once")
    assert raw.heartbeat("g", "m-1") == "unknown_member_id"
    kafka.heal()
    assert raw.heartbeat("g", "m-1") == "unknown_member_id"
    assert raw.leave("g", "m-1") == "unknown_member_id"


@pytest.mark.parametrize("shape", ["empty", "one batch", "partial batch", "earlier batch", "empty batch"])
def test_records_come_in_odd_shapes(kafka, raw, shape):
    """Rule: the shape is what it says, and a client that skips and asks again gets every record once."""
    start = raw.end()
    for value in (b"a", b"b", b"c"):
        raw.produce(value)
    kafka.request_fault(f"reshape Fetch to {shape} on t-0, illegal")
    if shape == "earlier batch":
        raw.fetch(start)  # now it knows the batch before those that come next
        raw.produce(b"d")
        got = raw.fetch(start + 3)
        assert [each.base_offset for each in got.headers] == [start + 2, start + 3]
        return
    got = raw.fetch(start + 1)
    offsets = [each.base_offset for each in got.headers]
    assert (
        offsets
        == {
            "empty": [],
            "one batch": [start + 1],
            "partial batch": [start + 1],
            "empty batch": [start, start + 1, start + 2],
        }[shape]
    )
    if shape == "partial batch":
        assert len(got.records) > got.headers[0].size
    if shape == "empty batch":
        assert got.headers[0].count == 0


def test_the_record_says_what_clients_heard():
    """Rule: an append whose answer was lost is unknown until a retry is acknowledged; the fault is in the
    trace once; a lost fetch is no read."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("t")
        kafka.lose_answer("Produce", "t-0")
        with producer(kafka, retries=0) as client:
            produce(client, [1], patience_s=2)
        (row,) = [row for row in kafka.trace().operations if row.function == "append"]
        assert row.outcome is Outcome.UNKNOWN
        with producer(kafka) as client:
            produce(client, [2, 3])
        kafka.request_fault("lose answer to Fetch, at most 2 times")
        with consumer(kafka, "g") as reader:
            assert reader.read(3) == {1, 2, 3}
        trace = kafka.end()
        told = kafka.assert_ok()
    polls = [row for row in trace.operations if row.function == "poll" and row.process >= 1_000]
    assert sum(len(row.records) for row in polls) == 3
    assert appended(trace) == {2, 3}
    assert [event.cause for event in trace.events if event.name is Name.FAULT_BEGAN] == ["lose_answer"] * 3
    assert "3 lost answers" in told


def test_a_group_survives_what_a_coordinator_may_do():
    """Rule: librdkafka reads every record although its coordinator moves, forgets it, and its connections
    break; every judge says Ok."""
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("t")
        for fault in (
            "forget member in Heartbeat, once",
            "move coordinator of group g for 200ms, once",
            "answer COORDINATOR_LOAD_IN_PROGRESS to OffsetFetch, at most 2 times",
            "cut before JoinGroup, once",
            "half answer to Fetch, 1 in 3, at most 3 times",
            "reshape Fetch to partial batch, 1 in 2",
        ):
            kafka.request_fault(fault)
        with producer(kafka) as client, consumer(kafka, "g") as reader:
            produce(client, range(50))
            assert reader.read(50) == set(range(50))
        assert kafka.status()["struck"]["move_coordinator"] == 1
        kafka.assert_ok()


def test_every_verb_is_counted_as_a_fault_that_requests_met():
    """A request that was held met a fault, as one that was delayed did; a pass says it in words."""
    for kind in VERBS:
        cause = kind.replace(" ", "_")
        trace = Trace(
            trace_id=1,
            plan="",
            seed=1,
            software_version="x",
            events=tuple(Event(time=0, name=Name.FAULT_BEGAN, cause=cause) for _ in range(2)),
        )
        assert met_requests(trace) == 2, kind
        assert f"2 {VERBS[kind].struck[1]}" in exercised(trace)

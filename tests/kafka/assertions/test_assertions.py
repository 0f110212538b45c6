"""Assertions on a service: each holds on a healthy run and fails on a planted fault."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

import fencepost.kafka
from fencepost.campaign.failure import RunFailedError
from fencepost.checkers.verdict import Decision
from fencepost.kafka.assertions.log_assertions import LOSS, judged, not_processed_once, out_of_order
from fencepost.kafka.assertions.problems import check
from fencepost.kafka.topic_records import KafkaRecord, from_json, to_json
from fencepost.traces.operations import Function, Outcome, Record, make_operation
from fencepost.traces.trace import Trace
from tests.kafka.clients import consumer, produce, producer


def record(offset, key, *, topic="orders", value=None, partition=0):
    """A record of a log."""
    return KafkaRecord(topic=topic, partition=partition, offset=offset, key=key, value=value, value_id=offset)


EMPTY = SimpleNamespace(operations=(), events=())


def test_a_healthy_run_passes_every_assertion():
    """Rule: nothing is found where nothing is wrong, also under a lost answer to an idempotent producer; each
    pass says what was exercised."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("t")
        with producer(kafka, enable_idempotence=True, key_serializer=None) as client:
            kafka.lose_answer("Produce", "t")
            produce(client, range(10))
            with consumer(kafka, "g") as reader:
                assert reader.read(10) == set(range(10))
        passes = [
            kafka.assert_no_loss(),
            kafka.assert_order("t"),
            kafka.assert_no_duplicates("t"),
            kafka.assert_delivered("t"),
            kafka.assert_processed_once("t", "t", group="g"),
        ]
        assert set(passes) == {kafka.assert_ok()}
        assert "acknowledged) and" in passes[0] and "; 1 lost answer; " in passes[0]
        assert [one.offset for one in kafka.records("t")] == list(range(10))


def test_a_retry_without_idempotence_is_a_duplicate_and_an_unread_record_is_not_delivered(tmp_path):
    """Rule: the failure names the record, its offsets, the operation, the fault and the seed; the trace is
    kept."""
    with fencepost.kafka.cluster(brokers=1, seed=3) as kafka:
        kafka.create_topic("t")
        kafka.lose_answer("Produce", "t")
        with producer(kafka, enable_idempotence=False) as client:
            produce(client, [7])
        with pytest.raises(RunFailedError) as caught:
            kafka.assert_no_duplicates("t", folder=tmp_path)
        text = str(caught.value)
        assert "was sent 1 time (in 2 attempts) and is in the log at offsets 0, 1" in text
        assert "op 2000000" in text and "lose_answer" in text and "seed 3" in text and "1 lost answer" in text
        assert (tmp_path / "trace.jsonl").exists() and (tmp_path / "report.txt").read_text().startswith(text)
        with pytest.raises(RunFailedError, match="was acknowledged and read by no client"):
            kafka.assert_delivered("t")


def test_a_planted_loss_is_found():
    """Rule: assert_no_loss is the judges' verdict on loss: a record that was acknowledged and that a later
    read beyond its offset does not have."""
    where = {"topic": "t", "partition": 0, "isolation": "read_uncommitted"}
    written = (Record(topic="t", partition=0, offset=0, value=7, leader_epoch=0),)
    rows = (
        make_operation(
            op_id=1, process=1_000, function=Function.APPEND, invoke_time=0, completion_time=10, acks=-1,
            outcome=Outcome.OK, topic="t", partition=0, offset=0, leader_epoch=0, records=written,
        ),
        make_operation(
            op_id=2, process=1_001, function=Function.POLL, invoke_time=20, completion_time=30,
            outcome=Outcome.OK, offset=0, end_offset=1, leader_epoch=1, records=(), **where,
        ),
    )  # fmt: skip
    trace = Trace(
        trace_id=1, plan="", seed=1, software_version="0", operations=rows, concurrent_processes=True
    )
    with pytest.raises(RunFailedError, match="assert_no_loss"):
        judged(trace, "assert_no_loss", LOSS, None)


def test_a_record_that_a_power_loss_took_is_lost():
    """Rule: where no guarantee of Kafka holds, no judge convicts the cluster; a service that was given the
    acknowledgement has lost its record all the same."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("t")
        with producer(kafka) as client:
            produce(client, range(3))
        kafka.power_off(1)
        kafka.restart(1)
        kafka.wait_until_healthy()
        kafka.end()
        assert kafka.verdict().decision is Decision.OK
        with pytest.raises(RunFailedError, match="t-0 offset 2 was acknowledged and is gone"):
            kafka.assert_no_loss()


@pytest.mark.parametrize(
    ("sink", "committed", "says"),
    [
        ([b"a", b"b"], 2, []),
        ([b"a", b"b"], 1, []),
        ([b"a", b"b", b"c"], 2, []),
        ([b"a"], 2, ["its result is missing: expected 1, saw 0"]),
        ([b"a", b"b", b"b"], 2, ["its result was written too often: expected 1, saw 2"]),
        ([b"a", b"b", b"z"], 2, ["has a key that no record of the source has"]),
        ([], 0, []),
    ],
)
def test_processed_once(sink, committed, says):
    """Rule: one result for each record below the committed offset, at most one for those above it, none
    without a record."""
    source = [record(place, key) for place, key in enumerate((b"a", b"b", b"c"))]
    results = [record(place, key, topic="invoices") for place, key in enumerate(sink)]
    found = not_processed_once(EMPTY, source, results, {("orders", 0): committed}, lambda one: one.key)
    assert len(found) == len(says)
    for problem, words in zip(found, says, strict=True):
        assert words in problem.says


def test_two_inputs_of_one_key_want_two_results():
    """Rule: keys are counted."""
    source = [record(0, b"a"), record(1, b"a")]
    for count, problems in ((1, 1), (2, 0), (3, 1)):
        results = [record(place, b"a", topic="invoices") for place in range(count)]
        found = not_processed_once(EMPTY, source, results, {("orders", 0): 2}, lambda one: one.key)
        assert len(found) == problems


def test_a_retry_that_overtakes_is_out_of_order():
    """Rule: the order of first requests of a connection is the order in the log."""

    def append(op, time, value):
        row = Record(topic="orders", partition=0, offset=-1, value=value, leader_epoch=-1)
        return SimpleNamespace(
            op_id=op, process=1_000, function=Function.APPEND, outcome=Outcome.OK, invoke_time=time,
            topic="orders", partition=0, records=(row,),
        )  # fmt: skip

    trace = SimpleNamespace(operations=(append(1, 10, 5), append(2, 20, 4)), events=())
    stands = [record(4, b"k"), record(5, b"k")]
    (problem,) = out_of_order(trace, stands, None)
    assert problem.operations == (1, 2) and "was sent before" in problem.says
    assert out_of_order(trace, stands, b"other") == []
    trace.operations = trace.operations[::-1]
    trace.operations[0].invoke_time = 5
    assert out_of_order(trace, stands, None) == []


def test_records_cross_the_pipe_as_they_are():
    """Rule: bytes are bytes, null is null."""
    for one in (record(0, None), record(1, b"\xff\x00", value=b"")):
        assert from_json(to_json(one)) == one


@pytest.mark.parametrize("idempotent", [True, False])
def test_order_counts_what_a_fault_keeps_from_the_broker(idempotent):
    """Rule: a record that was answered with an error in place of the broker was sent, too. librdkafka sends
    what follows it meanwhile: with idempotence the order is kept, without it the record comes late."""
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("t")
        settings = {"acks": "all", "linger.ms": 0, "batch.num.messages": 1, "retry.backoff.ms": 50}
        client = Producer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "enable.idempotence": idempotent,
                "log_level": 0,
                **settings,
            }
        )
        client.produce("t", b"first")
        assert client.flush(120) == 0
        kafka.answer_with("NOT_LEADER_OR_FOLLOWER", "Produce", "t")
        for number in range(20):
            client.produce("t", key=b"k", value=b"v%d" % number)
        assert client.flush(120) == 0
        values = [record.value for record in kafka.records("t")[1:]]
        kept = values == [b"v%d" % number for number in range(20)]
        assert kept or not idempotent
        with nullcontext() if kept else pytest.raises(RunFailedError, match="is after it in the log"):
            kafka.assert_order("t", key="k")


def test_two_equal_results_are_two_operations_of_the_certificate():
    """Rule: a certificate cites the write of each record that it names, found by its offset: two results that
    are alike are two operations, and both are marked in the timeline, which folds neither."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        for topic in ("orders", "invoices", "noise"):
            kafka.create_topic(topic)
        with producer(kafka) as client:
            client.send("orders", key=b"a", value=b"one").get(60)
            for _ in range(2):
                client.send("invoices", key=b"a", value=b"paid").get(60)
                produce(client, range(100), "noise")
        committed = {("orders", 0): 1}
        trace = kafka.end()
        orders, invoices = kafka.records("orders"), kafka.records("invoices")
        (problem,) = not_processed_once(trace, orders, invoices, committed, lambda one: one.key)
        assert [(row.topic, row.offset) for row in trace.operations if row.op_id in problem.operations] == [
            ("orders", 0),
            ("invoices", 0),
            ("invoices", 1),
        ]
        with pytest.raises(RunFailedError) as caught:
            check(trace, "assert_processed_once", "each has one result", [problem], None)
        assert "append “a: paid” to invoices-0" in str(caught.value)
        assert "kafka-python" in str(caught.value), "a client has its own name"
        for op in problem.operations:
            assert any(
                line.startswith(">>>") and f"op {op}:" in line for line in str(caught.value).splitlines()
            )


def test_a_result_without_an_input_is_cited():
    """Rule: a problem names its record and the operation that wrote it, whatever the problem is."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("invoices")
        with producer(kafka) as client:
            client.send("invoices", key=b"z", value=b"paid").get(60)
        (problem,) = not_processed_once(kafka.end(), [], kafka.records("invoices"), {}, lambda one: one.key)
        assert len(problem.operations) == 1 and problem.records == tuple(kafka.records("invoices"))

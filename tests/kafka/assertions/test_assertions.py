"""Assertions on a service: each holds on a healthy run and fails on a planted fault."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from attrs import evolve
from confluent_kafka import Producer

import fencepost.kafka
from fencepost.campaign.failure import RunFailedError
from fencepost.checkers import invariants
from fencepost.checkers.invariants.marked import mark_of
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision
from fencepost.kafka.assertions.log_assertions import LOSS, judged, not_processed_once, out_of_order
from fencepost.kafka.assertions.problems import Problem, check
from fencepost.kafka.assertions.rules import Output, contradictions, not_as_the_rule_says
from fencepost.kafka.topic_records import KafkaRecord, from_json, to_json
from fencepost.traces.anomalies import ASSERTION_FAILED
from fencepost.traces.errors import PlanError
from fencepost.traces.events import ASSERTED, Event, Name
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.operations import Function, Outcome, Record, make_operation
from fencepost.traces.trace import Trace
from tests.kafka.clients import consumer, produce, producer
from tests.services.promises import NOTHING


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


# Assertions of a test's own: a rule from source to sink, and a function of records.


def log(*results, topic="orders", partition=0):
    """The records of a partition. results: each a key and a value, one letter each, "a1"."""
    return [
        KafkaRecord(
            topic=topic,
            partition=partition,
            offset=offset,
            key=result[:1].encode(),
            value=result[1:].encode(),
            value_id=offset,
        )
        for offset, result in enumerate(results)
    ]


def same(records):
    """A rule: each record as it is."""
    return [(one.key, one.value) for one in records]


def said(inputs, results, due=None, **options):
    """The sentences of an output that is not as the rule `same` says."""
    output = Output(**{"rule": same, **options})
    found = not_as_the_rule_says(EMPTY, output, inputs, inputs if due is None else due, results)
    return [problem.says for problem in found]


@pytest.mark.parametrize(
    ("sink", "wrong"),
    [
        ("a1 b2 a3", {}),
        ("a3 b2 a1", {}),
        ("a1 b2", {"exactly": "is missing", "at_least": "is missing"}),
        ("a1 b2 a3 a3", {"exactly": "was written too often", "at_most": "was written too often"}),
        ("a1 b2 a3 z9", dict.fromkeys(("exactly", "at_least", "at_most"), "is none of the rule's results")),
        ("", {"exactly": "is missing", "at_least": "is missing"}),
    ],
)
@pytest.mark.parametrize("how", ["exactly", "at_least", "at_most"])
def test_results_are_counted(sink, wrong, how):
    """Rule: exactly allows neither a missing result nor one too many, at least the one, at most the other;
    none allows a result that is none of the rule's."""
    found = said(log("a1", "b2", "a3"), log(*sink.split(), topic="invoices"), how=how)
    assert bool(found) == (how in wrong)
    assert all(wrong[how] in sentence for sentence in found)


def test_equal_results_are_counted():
    """Rule: two results that are alike are two."""
    assert said(log("a1", "a1"), log("a1", topic="invoices"), how="at_least")
    assert not said(log("a1", "a1"), log("a1", "a1", topic="invoices"))


@pytest.mark.parametrize(
    ("sink", "wrong"),
    [("a1 b2 a3", 0), ("b2 a1 a3", 0), ("a3 b2 a1", 1), ("a1 b2 a1 a3", 0), ("a1 a3 a1 b2", 0)],
)
def test_the_order_of_a_key(sink, wrong):
    """Rule: with order="key" the results of a key come in the rule's order; repetitions do not count, nor
    does the order of two keys."""
    found = said(log("a1", "b2", "a3"), log(*sink.split(), topic="invoices"), how="at_least", order="key")
    assert len(found) == wrong
    assert all("in the other order" in sentence for sentence in found)


def test_partitions_of_a_sink_have_no_order_among_them():
    """Rule: what nobody orders convicts nobody."""
    apart = [*log("a3", topic="invoices"), *log("a1", topic="invoices", partition=1)]
    assert not said(log("a1", "a3"), apart, order="key")


def test_what_is_not_due_may_be_missing_and_may_be_there():
    """Rule: of records above the committed offset a result may be there once."""
    source = log("a1", "b2")
    for sink, wrong in (("a1", 0), ("a1 b2", 0), ("b2", 1), ("a1 b2 b2", 1)):
        assert len(said(source, log(*sink.split(), topic="invoices"), source[:1])) == wrong


def test_a_problem_names_the_record_that_it_follows_from():
    """Rule: a missing result names the record of the source that asks for it, also if a result is made of
    several; a rule that cannot bear fewer records names none."""

    def total(records):
        return [
            ("all", str(sum(int(one.value) for one in records[: place + 1]))) for place in range(len(records))
        ]

    source, sink = log("a1", "a2", "a4"), log()
    assert "the result of orders-0 offset 1" in said(source, sink, rule=total)[1]

    def strict(records):
        assert len(records) == 3
        return total(records)

    assert "the result of" not in said(source, sink, rule=strict)[1]


def test_an_output_that_is_not_as_the_rule_says_is_a_finding(tmp_path):
    """Rule: the failure is a verdict with a finding for each problem, whose operations wrote the records that
    it names, and its trace and page are kept; only committed records count, with their headers."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        for topic in ("orders", "invoices"):
            kafka.create_topic(topic)
        with producer(kafka) as client:
            for number in (b"1", b"2"):
                client.send("orders", key=b"k", value=number, headers=[("euro", number)]).get(60)
            for text in (b"due 1", b"due 2", b"due 2"):
                client.send("invoices", key=b"k", value=text).get(60)

        def invoice(orders):
            return [(one.key, b"due " + dict(one.headers)["euro"]) for one in orders]

        assert "5 appends" in kafka.assert_output("orders", "invoices", invoice, how="at_least")
        with pytest.raises(RunFailedError, match=r"due 2.*written too often: expected 1, saw 2") as caught:
            kafka.assert_output("orders", "invoices", invoice, folder=tmp_path)
        (finding,) = caught.value.verdict.findings
        written = {row.op_id: (row.topic, row.offset) for row in kafka.trace().operations}
        assert (finding.anomaly, finding.check) == (ASSERTION_FAILED, "assert_output")
        assert [written[op] for op in finding.operations] == [("orders", 1), ("invoices", 1), ("invoices", 2)]
        assert finding.places == (("orders", 0, 1), ("invoices", 0, 1), ("invoices", 0, 2))
        assert (tmp_path / "trace.html").exists()
        (kept,) = read_traces(tmp_path / "trace.jsonl")
        assert [one for verdict in judge(kept) for one in verdict.findings] == [finding]
        assert str(tmp_path / "trace.jsonl") in str(caught.value)

        kafka.assert_that("each order has a key", lambda orders: all(one.key for one in orders), "orders")
        with pytest.raises(RunFailedError, match="invoices-0 offset 2") as caught:
            kafka.assert_that(
                "no invoice is sent twice", lambda orders, invoices: invoices[2:], "orders", "invoices"
            )
        (finding,) = caught.value.verdict.findings
        assert finding.expected == "no invoice is sent twice"
        assert written[finding.operations[0]] == ("invoices", 2)


@pytest.mark.parametrize("detail", ["", "[", "{}", '{"check":"c","expected":"","seen":"","places":[1]}'])
def test_a_mark_of_another_tool_convicts_nobody(detail):
    """Rule: it has to say what was asserted."""
    mark = Event(time=1, name=Name.MARK, cause=ASSERTED, detail=detail)
    assert invariants.judge(evolve(NOTHING, events=(mark,))).findings == ()


def test_every_problem_is_kept():
    """Rule: also several of one partition; one without operations is shown by its mark, and one is told from
    another by what it says."""
    found = [Problem(says=f"{number} is bad").finding("assert_that", "all is well") for number in range(3)]
    marks = tuple(mark_of(5, one) for one in found)
    assert invariants.judge(evolve(NOTHING, events=marks)).findings == tuple(
        evolve(one, events=(place,)) for place, one in enumerate(found)
    )


def raises(records):
    """A function that asserts."""
    assert not records, "there are records"


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda records: None, []),
        (lambda records: True, []),
        (lambda records: [], []),
        (lambda records: False, ["it is not true that all is well"]),
        (lambda records: "one is bad", ["one is bad"]),
        (lambda records: records[1], ["orders-0 offset 1: key 'b', '2'"]),
        (lambda records: (f"{one.key!r} is bad" for one in records), ["b'a' is bad", "b'b' is bad"]),
        (lambda records: ("both are bad", *records), ["both are bad"]),
        (lambda records: [("this is bad", records[0])], ["this is bad"]),
        (raises, ["there are records"]),
    ],
)
def test_what_a_function_says(function, says):
    """Rule: True or nothing is no problem; False, sentences, records and both together are."""
    found = contradictions(EMPTY, "all is well", function, [log("a1", "b2")])
    assert [problem.says for problem in found] == says


def test_a_function_that_says_nothing_clear_is_refused():
    """Rule: one sentence says what was expected of it; its own mistakes are its own."""
    with pytest.raises(PlanError, match="True or nothing"):
        contradictions(EMPTY, "all is well", len, [log("a1")])
    with pytest.raises(PlanError, match="at least one topic"):
        contradictions(EMPTY, "all is well", len, [])
    with pytest.raises(TypeError, match="unsupported operand"):
        contradictions(EMPTY, "all is well", lambda records: 1 + None, [log("a1")])
    with pytest.raises(PlanError, match="pairs"):
        said(log("a1"), log(), rule=lambda records: records)
    with pytest.raises(PlanError, match="how= one of 'exactly', 'at_least', 'at_most'"):
        Output(rule=same, how="once")


def test_source_partitions_have_no_order_among_them():
    """Rule: what comes from two partitions of the source may come in any order; what comes from one may not.
    A rule that mixes partitions has no such order, and a test that asks for it is refused."""
    source = [*log("a1", "a2"), *log("a3", "a4", partition=1)]
    for sink, wrong in (("a3 a1 a4 a2", 0), ("a3 a2 a4 a1", 1), ("a4 a1 a2 a3", 1)):
        assert len(said(source, log(*sink.split(), topic="invoices"), order="key")) == wrong
    alike = [*log("a1", "a2"), *log("a1", partition=1)]
    assert not said(alike, log("a2", "a1", "a1", topic="invoices"), order="key")

    def mixed(records):
        return [("all", f"{len(records)}")]

    with pytest.raises(PlanError, match="order='key'"):
        said(source, [], rule=mixed, how="at_most", order="key")


def test_what_is_expected_at_most_is_said():
    """Rule: a result that came too often says how often it may be there, due or not."""
    source = log("a1", "b2")
    (sentence,) = said(source, log("a1", "b2", "b2", topic="invoices"), source[:1])
    assert "written too often: expected 1, saw 2" in sentence

"""Assertions of a test's own: a rule from source to sink, and a function of records."""

from types import SimpleNamespace

import pytest
from attrs import evolve

import fencepost.kafka
from fencepost.campaign.failure import RunFailedError
from fencepost.checkers import invariants
from fencepost.checkers.invariants.marked import mark_of
from fencepost.checkers.judges import judge
from fencepost.kafka.assertions.problems import Problem
from fencepost.kafka.assertions.rules import Output, contradictions, not_as_the_rule_says
from fencepost.kafka.topic_records import KafkaRecord
from fencepost.traces.anomalies import ASSERTION_FAILED
from fencepost.traces.errors import PlanError
from fencepost.traces.events import ASSERTED, Event, Name
from fencepost.traces.jsonlines import read_traces
from tests.kafka.clients import producer
from tests.services.promises import NOTHING

EMPTY = SimpleNamespace(operations=(), events=())


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

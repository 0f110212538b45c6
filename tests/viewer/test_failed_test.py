"""The page of a test that failed: it begins with what failed, names clients and records as people do, and
marks every record concerned."""

import json

import pytest
from attrs import evolve

from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.anomalies import ASSERTION_FAILED
from fencepost.traces.events import Event, Name
from fencepost.traces.kafka_names.contents import connection_opened, record_texts, texts_of
from fencepost.traces.operations import Function, Record
from fencepost.viewer.page_file import page_of
from fencepost.viewer.view import Shown, view_of
from tests.checkers import lab

HASHES = (1 << 62) + 1, (1 << 62) + 2
"""Value ids of two records."""
NASTY = "<script>alert(1)</script>\u202e"


def shown(assertion="assert_output"):
    """A test on orders and invoices that failed: one order has two invoices. A request was struck."""

    def append(op_id, at, topic, offset, value):
        record = Record(topic=topic, partition=0, offset=offset, value=value)
        return lab.operation(
            *(op_id, Function.APPEND, at, at + 5),
            process=1_000,
            acks=-1,
            topic=topic,
            partition=0,
            key="customer 1",
            offset=offset,
            records=(record,),
        )

    operations = (
        append(1, 10, "orders", 0, HASHES[0]),
        append(2, 30, "invoices", 0, HASHES[1]),
        append(3, 60, "invoices", 1, HASHES[1]),
        append(4, 90, "noise", 0, 7),
    )
    strike = {
        "fault": 1,
        "target": "Produce of shop at broker 2",
        "says": "lose answer to Produce, once",
        "broker": 2,
    }
    events = (
        connection_opened(5, connection=4, process=1_000, client="shop"),
        Event(time=40, name=Name.FAULT_BEGAN, cause="lose_answer", detail=json.dumps(strike)),
        Event(time=40, name=Name.FAULT_ENDED, cause="lose_answer", detail=json.dumps({"fault": 1})),
        *record_texts(100, {HASHES[0]: ("customer 1", NASTY), HASHES[1]: (None, "invoice for " + "x" * 60)}),
    )
    finding = Finding(
        anomaly=ASSERTION_FAILED,
        check=assertion,
        expected="invoices has exactly what the rule makes of orders",
        seen="'invoice' was written too often: expected 1, saw 2",
        topic="invoices",
        partition=0,
        offset=1,
        operations=(1, 2, 3),
        places=(("orders", 0, 0), ("invoices", 0, 0), ("invoices", 0, 1)),
    )
    trace = evolve(lab.trace(operations), events=events)
    verdict = Verdict(decision=Decision.ILLEGAL, check=assertion, findings=(finding,))
    return Shown(trace=trace, verdicts=(verdict,))


def test_the_page_names_what_failed_and_every_record():
    """Rule: the title is the assertion; the finding has the place of each record; the last moment that convicts
    is the second write."""
    view = view_of(shown())
    (finding,) = view["findings"]
    assert finding["title"] == "failed: assert_output"
    assert [[view["partitions"][number], offset] for number, offset in finding["records"]] == [
        ["orders-0", 0],
        ["invoices-0", 0],
        ["invoices-0", 1],
    ]
    last = finding["steps"][-1]
    operation = view["moments"]["ref"][last]
    assert view["names"][view["moments"]["name"][last]]["name"] == "answer"
    assert view["operations"]["id"][operation] == 3


def test_the_title_of_an_assertion_of_ones_own_is_its_description():
    """Rule: what a test says is true is what the page begins with."""
    (finding,) = view_of(shown("assert_that"))["findings"]
    assert finding["title"] == "not true: invoices has exactly what the rule makes of orders"


def test_clients_and_records_have_their_own_names():
    """Rule: a client has its client id, a record its key and value, bounded and escaped, in the words of
    operations too; the texts themselves are no moment of the run."""
    view = view_of(shown())
    labels = {lane["id"]: lane["label"] for lane in view["lanes"]}
    assert labels["c1000"] == "shop (1000)"
    assert view["contents"][str(HASHES[0])] == "customer 1: <script>alert(1)</script>\\u202e"
    assert view["contents"][str(HASHES[1])].startswith("invoice for xxx")
    assert not any(str(value) in text for value in HASHES for text in view["texts"])
    assert [one["key"] for one in view["operations"]["extras"]] == ["customer 1"] * 4
    assert any("invoice for" in text for text in view["texts"])
    names = {view["names"][number]["name"] for number in view["moments"]["name"]}
    assert "record_texts" not in names and "fault_began" in names
    assert "<script>alert" not in page_of([shown()])


@pytest.mark.parametrize("detail", ["", "nothing", "[1, 2]", '[["one"]]', "[[1, 2]]", '{"a": 1}'])
def test_texts_that_are_none_are_passed_over(detail):
    """Rule: a trace may come from anywhere."""
    assert texts_of([Event(time=1, name=Name.RECORD_TEXTS, values=(1, 2), detail=detail)]) == {}


def test_a_test_that_failed_by_itself():
    """Rule: where no judge finds anything, the page says what the test says, and opens at the last thing that
    a client heard."""
    view = view_of(evolve(shown(), verdicts=(), failure="AssertionError: 3 invoices, not 2"))
    assert view["failure"] == "AssertionError: 3 invoices, not 2" and view["findings"] == []
    (step,) = view["opens"]
    assert view["operations"]["id"][view["moments"]["ref"][step]] == 4
    assert view_of(evolve(shown(), verdicts=()))["opens"] == []
    assert view_of(shown())["opens"] == view_of(shown())["findings"][0]["steps"][-1:]

"""The findings of the exactly-once check in full, on histories by hand; and how places are numbered."""

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

from fencepost.checkers.exactly_once import judge_table, judge_trace, judge_traces
from fencepost.checkers.exactly_once import log_places as places
from fencepost.checkers.exactly_once.log_places import Named, places_of, sources_of
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Function, Outcome, Position, Record
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Claims, LossRange
from tests.checkers import lab

F, OK = Function, Outcome.OK


def row(op_id, function, at, until=None, outcome=OK, **columns):
    """An operation."""
    columns = {"process": 0, "outcome": outcome} | columns
    return lab.operation(op_id, function, at, at + 1 if until is None else until, **columns)


def records(topic, *pairs, partition=0):
    """Records as (offset, value)."""
    return tuple(Record(topic=topic, partition=partition, offset=at, value=value) for at, value in pairs)


def txn(op_id, at, until, outcome=OK, epoch=0, **columns):
    """A transaction of producer 7."""
    return row(op_id, F.TXN, at, until, outcome, producer_id=7, producer_epoch=epoch, **columns)


def append(op_id, at, offset, value, source=None, partition=0, epoch=0, outcome=OK, **columns):
    """A record of output."""
    return row(
        *(op_id, F.APPEND, at),
        outcome=outcome,
        topic="out",
        partition=partition,
        offset=offset,
        result=source,
        producer_id=7,
        producer_epoch=epoch,
        records=records("out", (offset, value), partition=partition),
        **columns,
    )


def commit(op_id, at, offset, outcome=OK, partition=3, **columns):
    """A commit of an input's offset in a transaction."""
    place = (Position(topic="in", partition=partition, offset=offset),)
    return row(op_id, F.COMMIT, at, outcome=outcome, argument="txn", positions=place, **columns)


def poll(op_id, at, start, *pairs, topic="out", partition=0, **columns):
    """A read of committed records."""
    columns = {"isolation": "read_committed", "process": 9} | columns
    shown = records(topic, *pairs, partition=partition)
    return row(op_id, F.POLL, at, topic=topic, partition=partition, offset=start, records=shown, **columns)


def trace(*rows, **claims):
    """A history."""
    return lab.trace(rows, trace_id=5, seed=0, claims=Claims(**claims))


def findings(*rows, **claims):
    """What is found, alike in both forms."""
    history = trace(*rows, **claims)
    found = judge_trace(history).findings
    table = tables_of([rows_of(history)]).operations
    assert tuple(each for _, verdict in judge_table(table, (history,)) for each in verdict.findings) == found
    return found


def said(found):
    """A finding in one value."""
    return found.anomaly, found.topic, found.partition, found.offset, found.operations


TORN = (
    txn(1, 0, 9),
    append(2, 1, 4, 40),
    append(3, 2, 6, 60, partition=1),
    poll(4, 20, 4, (4, 40)),
    poll(5, 21, 6, (7, 70), partition=1),
)


def test_a_torn_transaction():
    """Rule (KIP-98): the transaction, the append that was passed over, the one that was shown, and the poll
    that showed it."""
    (found,) = findings(*TORN)
    assert said(found) == ("torn_transaction", "out", 1, 6, (1, 3, 2, 4))
    assert found.expected == "all of transaction 1 or nothing of it for readers of committed records"
    assert found.seen == ("operation 4 was shown value 40 of out-0; value 60 of out-1 was passed over")


@pytest.mark.parametrize(
    "harmless",
    [
        poll(5, 21, 7, (7, 70), partition=1),
        poll(5, 21, 6, partition=1),
        poll(5, 21, 0, (5, 50), partition=1),
        poll(5, 21, 6, (7, 70), partition=1, isolation="read_uncommitted"),
        poll(5, 21, None, (7, 70), partition=1),
        poll(5, 21, 6, (7, 70), partition=2),
        evolve(TORN[4], outcome=Outcome.FAIL),
        evolve(TORN[4], topic=None),
    ],
)
def test_what_is_not_passed_over(harmless):
    """Rule (KIP-98): a reader of committed records went from at or below the record's offset to beyond it, in
    one poll of its partition."""
    assert findings(*TORN[:4], harmless) == ()
    assert (
        findings(*TORN[:2], evolve(TORN[2], records=records("out", (-1, 60), partition=1)), *TORN[3:]) == ()
    )
    assert findings(*TORN, compacted=("out",)) == ()


def test_what_no_transaction_wrote_is_not_torn():
    """Rule (KIP-98): records outside of transactions are visible one by one; a trace that reads nothing has
    nothing to show."""
    alone = [evolve(each, process=3) for each in TORN[1:3]]
    assert findings(TORN[0], *alone, *TORN[3:]) == ()
    assert findings(*TORN[:3]) == ()


def test_the_order_of_rows_says_nothing():
    """Rule: what counts is when operations began: the first poll that showed a record is the earliest."""
    again = poll(8, 30, 4, (4, 40))
    assert findings(again, *reversed(TORN)) == findings(*TORN)
    (found,) = findings(*reversed(TWICE))
    assert said(found) == ("output_twice", "in", 3, 5, (2, 3, 7, 8))


def test_where_a_record_is_visible_and_where_it_is_passed_over():
    """Rule (KIP-98): a value that is shown at another offset is not that record; a poll passes over nothing
    before its beginning, in whichever partition; one may begin at the first offset of all."""
    assert findings(*TORN[:3], poll(4, 20, 4, (5, 40)), TORN[4]) == ()
    rows = (TORN[0], append(3, 2, 6, 60, partition=1), poll(4, 20, 6, (6, 60), partition=1))
    assert findings(*rows, append(2, 1, 2, 40), poll(5, 21, 4, (5, 50))) == ()
    assert findings(*rows, append(2, 1, 0, 40), poll(5, 21, 0, (1, 50))) != ()


def test_polls_without_a_beginning_pass_over_nothing():
    """Rule (KIP-98): a poll that shows records and does not say where it began, and one that says so and
    shows none."""
    shown = poll(4, 20, None, (4, 40), (9, 90))
    assert findings(*TORN[:2], append(3, 2, 6, 60), shown, poll(5, 21, 0)) == ()


def test_a_poll_of_several_partitions():
    """Rule (KIP-98): its positions say where it began; what the row says of its own partition wins."""
    began = tuple(Position(topic="out", partition=number, offset=at) for number, at in ((0, 4), (1, 6)))
    both = records("out", (4, 40)) + records("out", (7, 70), partition=1)
    one = row(4, F.POLL, 20, process=9, isolation="read_committed", positions=began, records=both)
    assert [said(each) for each in findings(*TORN[:3], one)] == [
        ("torn_transaction", "out", 1, 6, (1, 3, 2, 4))
    ]
    assert findings(*TORN[:3], evolve(one, topic="out", partition=1, offset=7)) == ()
    # a poll that returns the partitions in turns ends where the last record of each is
    turns = (
        records("out", (7, 70), partition=1) + records("out", (4, 40)) + records("out", (6, 1), partition=1)
    )
    assert findings(*TORN[:3], evolve(one, records=turns)) != ()
    # no partition is the first one
    swapped = (poll(4, 20, 6, (6, 60), partition=1), evolve(poll(5, 21, 4, (5, 50)), partition=None))
    assert [said(each) for each in findings(*TORN[:3], *swapped)] == [
        ("torn_transaction", "out", 0, 4, (1, 2, 3, 4))
    ]
    assert findings(*TORN[:3], *swapped, compacted=("out",)) == ()


def test_a_zombie():
    """Rule (KIP-98): the append, the earliest transaction of a later epoch, and the poll."""
    rows = (
        txn(1, 0, 30),
        txn(2, 5, 8, epoch=2, process=1),
        txn(3, 6, 9, epoch=1, process=2),
        append(4, 7, 0, 10),
        append(5, 8, 1, 11),
        append(6, 4, 2, 12),
        poll(7, 40, 0, (0, 10), (1, 11), (2, 12)),
    )
    (found,) = findings(*rows)
    assert said(found) == ("zombie_write", "out", 0, 0, (4, 2, 7))
    assert found.expected == (
        "nothing visible that producer 7 sent in epoch 0 after transaction 2 had begun in epoch 2"
    )
    assert found.seen == "operation 7 was shown value 10 of append 4, which began later"
    assert findings(*rows[:3], append(6, 5, 2, 12), poll(7, 40, 0, (2, 12))) == ()
    first = [evolve(each, producer_id=0) if each.producer_id == 7 else each for each in rows]
    assert [said(each) for each in findings(*first)] == [said(found)]
    other = evolve(rows[1], producer_id=8), evolve(rows[2], producer_id=8)
    assert findings(rows[0], *other, *rows[3:]) == ()


TWICE = (
    txn(1, 0, 9),
    append(2, 1, 0, 10, "in-3@5"),
    append(3, 2, 1, 11, "in-3@5"),
    append(4, 3, 2, 12, "in-3@6"),
    append(5, 4, 3, 13, "in-3@6"),
    commit(6, 5, 7),
    poll(7, 20, 0, (0, 10)),
    poll(8, 21, 1, (1, 11), (2, 12), (3, 13)),
)


def test_an_output_that_is_there_twice():
    """Rule (KIP-447): both appends and both polls; at most one finding for each log of input."""
    (found,) = findings(*TWICE)
    assert said(found) == ("output_twice", "in", 3, 5, (2, 3, 7, 8))
    assert found.expected == "one visible record of output for in-3@5"
    assert found.seen == "2: of appends 2 and 3"
    assert findings(*TWICE[:2], *TWICE[5:7]) == ()


def test_an_output_without_a_commit():
    """Rule (KIP-447): no transaction committed the offset after its input, not even perhaps."""
    rows = (txn(1, 0, 9), append(2, 1, 0, 10, "in-3@5"), poll(7, 20, 0, (0, 10)))
    (found,) = findings(*rows, commit(3, 2, 5), commit(4, 3, 9, Outcome.FAIL), commit(5, 4, 9, partition=2))
    assert said(found) == ("output_without_commit", "in", 3, 5, (2, 7))
    assert found.expected == (
        "the offset after in-3@5 committed by some transaction, as its output is visible"
    )
    assert found.seen == "offsets below 5 only"
    assert findings(*rows)[0].seen == "offsets below 0 only"
    for outcome in (OK, Outcome.UNKNOWN):
        assert findings(*rows, commit(3, 2, 6, outcome)) == ()


def test_an_output_that_is_missing():
    """Rule (KIP-447): the poll that consumed the input and the first commit of the highest offset; an output
    that may yet become visible excuses, one that was passed over does not."""
    consumed = poll(9, 0, 4, (4, 1), (5, 2), topic="in", partition=3)
    rows = (consumed, txn(1, 1, 9), append(2, 2, 0, 10, "in-3@5"), commit(3, 3, 6), commit(4, 4, 6))
    seen = poll(7, 20, 0, (0, 10))
    (found,) = findings(*rows, seen)
    assert said(found) == ("output_missing", "in", 3, 4, (9, 3))
    assert found.expected == (
        "a record of output for in-3@4 in a transaction that did not abort, as commit 3 of offset 6 counts"
    )
    assert found.seen == "none, or one that readers of committed records passed over"
    nowhere = evolve(consumed, records=records("in", (-1, 1), (5, 2), partition=3))
    assert findings(nowhere, *rows[1:], seen) == ()
    also = append(5, 5, 1, 11, "in-3@4")
    assert findings(*rows, also, seen) == ()
    assert findings(*rows, evolve(also, outcome=Outcome.FAIL), seen) != ()
    assert findings(*rows, also, seen, poll(8, 21, 1, (2, 12))) != ()
    assert findings(*rows, seen, retention=True) == findings(*rows, seen, compacted=("in",)) == ()
    assert findings(*rows[:3], commit(3, 3, 6, Outcome.UNKNOWN), seen) == ()
    shown = poll(7, 20, 0, (0, 10), (1, 11))  # what is visible is there, whatever its producer heard
    assert findings(shown, *rows, evolve(also, outcome=Outcome.FAIL)) == ()
    assert findings(consumed, txn(1, 1, 9), commit(3, 3, 6)) == ()  # nothing was made from this log


def test_each_trace_has_its_own_verdict():
    """Rule: several traces in one call; one with loss that its claims allow, or without transactions, is not
    asked."""
    second = evolve(trace(*TORN[:4]), trace_id=6)
    loss = LossRange(topic="other", partition=0, start=0, end=9, reason="a power loss")
    lossy = evolve(trace(*TORN, loss=(loss,)), trace_id=9)
    third = evolve(trace(*TORN), trace_id=7)
    lone = evolve(trace(TORN[3]), trace_id=8)
    told = dict(judge_traces((lossy, trace(*TORN), second, third, lone)))
    assert set(told) == {5, 7} and told[5] == told[7]
    broken = evolve(third, claims=Claims(assumption_broken="no cluster"))
    table = tables_of([rows_of(trace(*TORN)), rows_of(lone), rows_of(broken)]).operations
    assert [number for number, _ in judge_table(table, (broken, lone, trace(*TORN)))] == [7, 5]
    assert [number for number, _ in judge_table(table)] == [5, 7]


def test_places_that_fit_no_product():
    """Rule: a number orders by log and offset, whatever the offsets and partitions are; a partition that
    Kafka cannot have names no log."""
    most = (1 << 63) - 2
    named = Named(
        trace=np.array([1, 0, 0, 0, 0, 0]),
        topic=np.array([0, 0, 1, 0, 0, -1]),
        partition=np.array([0, 7, 0, 0, 1 << 31, 0]),
        offset=np.array([0, 3, most, -1, 0, 0]),
        topics=("b", "a"),
    )
    small = evolve(named, partition=named.partition % 8, offset=named.offset % 5)
    for each in (named, small):
        logs, (places,) = places_of((each,))
        assert [logs.named(int(log)) for log in places.log[:4]] == [
            *((1, "b", 0), (0, "b", 7), (0, "a", 0), (0, "b", 0))
        ]
        assert np.argsort(places.key[:4]).tolist() == [2, 3, 1, 0]
        if each is named:
            assert places.log[4:].tolist() == [-1, -1]


def test_places_that_nearly_fit_a_product():
    """Rule: topics count, too: four of them make the product too large. A negative partition names no log."""
    far, most = 1 << 30, (1 << 31) - 1
    named = Named(
        trace=np.zeros(6, np.int64),
        topic=np.array([3, 3, 2, 1, 0, 1]),
        partition=np.array([most, most, most, most, 0, -1]),
        offset=np.array([far, far - 1, far, 0, far, 0]),
        topics=("a", "b", "c", "d"),
    )
    logs, (places,) = places_of((named,))
    assert [logs.named(int(log)) for log in places.log[:5]] == [
        *((0, name, most) for name in "ddcb"),
        (0, "a", 0),
    ]
    assert np.argsort(places.key[:5]).tolist() == [4, 3, 2, 1, 0] and places.log[5] == -1


def test_long_lineage_is_split_in_parts(monkeypatch):
    """Rule: parts of lineage that are split one after the other name what the whole names."""
    texts = [None, "t-0@5", "u-1@6 t-2@7", "t-0", "u-0@1", "", "v-3@9"]
    rows, counts = np.array([1, 2, 3, 4, 5, 6, 1]), np.array([1, 2, 1, 1, 0, 1, 1])
    expected = [("t", 0, 5), ("u", 1, 6), ("t", 2, 7), None, ("u", 0, 1), ("v", 3, 9), ("t", 0, 5)]
    for at_once in (1, 2, 3, 100):
        monkeypatch.setattr(places, "AT_ONCE", at_once)
        *columns, topics = sources_of(pa.array(texts), rows, counts)
        found = zip(*(column.tolist() for column in columns), strict=True)
        assert [(topics[name], *place) if name >= 0 else None for name, *place in found] == expected


def test_lineage_that_names_no_place():
    """Rule: a topic may have the signs of lineage in its name; what is no lineage names nothing, and neither
    does lineage of another length than the records."""
    texts = [
        "t-0@5 a-b@c-12@7", None, "t-0@5", "t@5 -0@5 t-@5", "t-0@ t-0 @5", "t-x@5 t-0@x", "t-0@" + "9" * 19,
        "t-0@" + "9" * 18, "", "t-1000000000@5",
    ]  # fmt: skip
    counts = np.array([2, 1, 2, 3, 3, 2, 1, 1, 0, 1])
    topic, partition, offset, topics = sources_of(pa.array(texts), np.arange(len(texts)), counts)
    named = [
        (topics[name], number, at)
        for name, number, at in zip(topic.tolist(), partition.tolist(), offset.tolist(), strict=True)
        if name >= 0
    ]
    assert named == [("t", 0, 5), ("a-b@c", 12, 7), ("t", 0, int("9" * 18))]
    assert len(topic) == counts.sum() and topic[0] >= 0 and topic[1] >= 0 and topic[14] >= 0

"""Transactions on a page: begin, end, fate and records are those of the trace."""

import json

import msgspec
import pytest
from attrs import evolve

from fencepost.checkers.log import log_transactions as judge
from fencepost.traces.operations import Function, Outcome, Record
from fencepost.viewer.known.client_knowledge import ACKNOWLEDGED, HOWS
from fencepost.viewer.moments import moments_of
from fencepost.viewer.transaction_fates import Fate, found_transactions
from fencepost.viewer.view import Shown, view_of


@pytest.fixture
def trace(shown):
    """Committed, aborted, open, and one that commits above the open one."""
    return shown("transactions").trace


def told(trace):
    """(op id, fate, time of its end, op ids of its parts) of each transaction."""
    moments = moments_of(trace)
    return [
        (
            trace.operations[one.operation].op_id,
            one.fate,
            None if one.ended is None else moments.all[one.ended].time,
            [trace.operations[index].op_id for index in one.parts],
        )
        for one in found_transactions(trace, moments)
    ]


def test_fates_and_parts_are_those_of_the_trace(trace):
    """Each `txn` row is a transaction with the rows that its times contain; an unknown outcome has no end."""
    assert told(trace) == [
        (1, Fate.COMMITTED, 30, [2]),
        (3, Fate.ABORTED, 70, [4]),
        (5, Fate.OPEN, None, [6]),
        (7, Fate.COMMITTED, 110, [8]),
    ]


def test_an_unknown_end_is_a_commit_from_the_read_that_shows_it(trace):
    """A read_committed read of one of its records proves that the transaction committed; another isolation
    does not."""
    last = trace.operations[-1]
    seen = evolve(last, records=(*last.records, Record(topic="t", partition=0, offset=5, value=30)))
    for isolation, expected in (
        ("read_committed", (Fate.COMMITTED, 124)),
        ("read_uncommitted", (Fate.OPEN, None)),
    ):
        changed = evolve(trace, operations=(*trace.operations[:-1], evolve(seen, isolation=isolation)))
        assert next(one[1:3] for one in told(changed) if one[0] == 5) == expected


def test_a_membership_that_is_lost_is_noticed(trace, monkeypatch):
    """The comparison above fails where the judge's rule calls nothing a part."""

    def none(operations, txn):
        return judge.np.full(len(operations.op_id), judge.NONE)

    monkeypatch.setattr(judge, "_containing", none)
    assert all(parts == [] for _, _, _, parts in told(trace))


def test_a_window_keeps_what_still_marks_records(trace):
    """After a cut, records of open and of aborted transactions that lie before the window are still known."""
    many = [
        evolve(
            trace.operations[-1],
            op_id=1000 + number,
            invoke_time=200 + 10 * number,
            completion_time=205 + 10 * number,
        )
        for number in range(400)
    ]
    longer = evolve(trace, operations=(*trace.operations, *many))
    whole = view_of(Shown(trace=longer))
    part = view_of(Shown(trace=longer), most_bytes=len(msgspec.json.encode(whole)) * 2 // 3)
    assert part["window"]["first"] > 40
    rows = dict(zip(part["transactions"]["id"], part["transactions"]["records"], strict=True))
    assert rows == {3: [[0, 3, [20, 2]]], 5: [[0, 5, [30, 1]]]}
    assert sorted(whole["transactions"]["id"]) == [1, 3, 5, 7]


def test_records_that_an_aborted_transaction_was_told_of_are_on_the_page(trace):
    """A history without events, as Jepsen's Kafka workload tells it: an append of an aborted transaction is a
    failure with an offset, and its record stands in the log that clients know."""
    rows = tuple(evolve(one, outcome=Outcome.FAIL) if one.op_id == 4 else one for one in trace.operations)
    view = view_of(Shown(trace=evolve(trace, operations=rows, events=())))
    known = view["clients"][0]["known"]
    assert [3, [20, 2], HOWS.index(ACKNOWLEDGED)] in [
        list(row) for row in zip(known["base"], known["values"], known["how"], strict=True)
    ]


def test_words_say_what_became_of_a_transaction(trace):
    """The events' list names begin, commit and abort, and the last stable offset that a read was shown."""
    view = view_of(Shown(trace=trace))
    texts = json.dumps(view["texts"])
    assert '"transaction"' in texts and '"committed"' in texts and '"aborted"' in texts
    assert "end 6, last stable offset 3" in texts


def test_a_trace_without_transactions_has_none(shown):
    """Nothing is looked for, and the page has no panel."""
    view = view_of(shown("kip_101"))
    assert view["transactions"]["id"] == []
    assert not any(one.function is Function.TXN for one in shown("kip_101").trace.operations)

"""Corners of the kafka check, each found by a fault that nothing else noticed: what convicts there, and what
does not."""

import pytest
from attrs import evolve
from kafka_histories import FAIL, OK, UNKNOWN, assign, moved, op, poll, send, subscribe, trace, txn

from fencepost.checkers.kafka import judge_trace, kafka_columns_of_traces, measure_trace
from fencepost.traces.operations import Function, Position
from fencepost.traces.trace import LossRange, Trace
from tests.checkers import lab

THREE = (send(1, 10, 0), send(2, 20, 1), send(3, 30, 2))


def at_positions(op_id: int, *positions: tuple[int, int, int | None], **more) -> Position:
    """A poll of nothing that names (partition, offset, log start) of each log."""
    named = tuple(
        Position(topic="t", partition=p, offset=offset, log_start_offset=start)
        for p, offset, start in positions
    )
    return poll(op_id, more.pop("records", []), positions=named, **more)


def starts(op_id: int, topic: str, offset: int):
    """Somebody is told where a log begins."""
    return op(
        op_id,
        Function.LIST_OFFSETS,
        7,
        (10 * op_id, 10 * op_id + 5),
        topic=topic,
        partition=0,
        offset=9,
        log_start_offset=offset,
    )


UNREAD = (send(1, 10, 0), send(2, 20, 1), poll(3, [(1, 20)]))
"""Nobody reads what stands at 0, though somebody is beyond it."""
SOUGHT = (send(1, 10, 0), assign(2, 0, argument="seek_to_beginning"), poll(3, []))
"""Nobody reads it, though somebody looked for it from the beginning."""

# what it is about, what is found, the history
CASES: list[tuple[str, set[str], Trace]] = [
    (
        "a failed append of an open transaction is not there",
        set(),
        trace(
            txn(1, UNKNOWN, send(2, 10, None), send(3, 20, 1, outcome=FAIL)),
            send(5, 30, 2),
            poll(6, [(0, 10), (2, 30)], process=2),
        ),
    ),
    (
        "nobody waits for the rest of an aborted transaction",
        set(),
        trace(
            txn(1, FAIL, send(2, [10, 11], 0, outcome=UNKNOWN)),
            send(5, 30, 2),
            poll(6, [(0, 10), (2, 30)], process=2),
        ),
    ),
    (
        "what is in no transaction is not committed by one",
        set(),
        trace(
            send(1, 10, 0),
            send(2, 20, 1, acks=1),
            send(3, 30, 2),
            txn(4, OK, poll(5, [(0, 10)])),
            poll(6, [(2, 30)], process=2),
            send(9, 90, None),
        ),
    ),
    (
        "a crash that is said to have failed is one",
        set(),
        trace(
            *THREE, poll(4, [(0, 10), (1, 20)]), moved(5, Function.CRASH, outcome=FAIL), poll(6, [(0, 10)])
        ),
    ),
    (
        "who names offsets in positions reads where it likes, first of all too",
        set(),
        trace(at_positions(9, (0, 5, None), records=[(5, 60)]), send(1, 10, 0), send(2, 60, 5)),
    ),
    ("no claim: what was looked for from the beginning is missing", {"unseen"}, trace(*SOUGHT)),
    ("retention excuses what was looked for", set(), trace(*SOUGHT, retention=True)),
    (
        "acknowledged while the assignment was made",
        set(),
        trace(send(1, 10, 0, at=(10, 22)), assign(2, 0, argument="seek_to_beginning"), poll(3, [])),
    ),
    (
        "a poll of which nothing was heard has not looked",
        set(),
        trace(send(1, 10, 0), assign(2, 0, argument="seek_to_beginning"), poll(3, [], outcome=UNKNOWN)),
    ),
    (
        "a poll right after the assignment has looked",
        {"unseen"},
        trace(
            send(1, 10, 0), assign(2, 0, argument="seek_to_beginning", at=(20, 30)), poll(3, [], at=(30, 35))
        ),
    ),
    (
        "a poll during the assignment has not",
        set(),
        trace(
            send(1, 10, 0),
            assign(2, 0, argument="seek_to_beginning", at=(20, 30)),
            poll(3, [], at=(25, 35)),
            txn(9, OK),
        ),
    ),
    (
        "steps where loss is allowed everywhere",
        set(),
        trace(poll(1, [(0, 10)]), poll(2, [(3, 20)]), loss=(0, 99)),
    ),
    ("no claim: it is lost", {"lost_write"}, trace(*UNREAD)),
    ("content by epoch: loss is allowed everywhere", set(), trace(*UNREAD, content_by_epoch=True)),
    (
        "a log start of another topic is another log's",
        {"lost_write"},
        trace(*UNREAD, starts(4, "t", 0), starts(5, "u", 5), retention=True),
    ),
    (
        "the highest log start counts",
        set(),
        trace(
            *UNREAD,
            at_positions(4, (0, 9, 0), process=7),
            at_positions(5, (0, 9, 1), process=7),
            retention=True,
        ),
    ),
    (
        "a log start at the record keeps it",
        {"lost_write"},
        trace(*UNREAD, at_positions(4, (0, 9, 0), process=7), retention=True),
    ),
    (
        "members that name their offsets are consumers all the same",
        {"poll_skip"},
        trace(
            *THREE,
            *(
                poll(op_id, records, **lab.T0, offset=records[0][0], group="g", member="m", generation=1)
                for op_id, records in ((4, [(0, 10)]), (5, [(2, 30)]))
            ),
        ),
    ),
    (
        "producer 0 numbers what it sends too",
        {"nonmonotonic_send"},
        trace(
            send(1, 10, None, producer_id=0, producer_epoch=0),
            send(2, 20, 0, producer_id=0, producer_epoch=0),
            poll(3, [(0, 20), (1, 10)]),
        ),
    ),
    (
        "the first transaction of all",
        {"skipped_offset", "lost_write"},
        trace(txn(1, OK, poll(2, [(0, 10)]), poll(3, [(2, 30)])), send(5, 20, 1)),
    ),
    (
        "a tombstone may be gone",
        set(),
        trace(send(1, 10, 0, key="a", argument="tombstone"), *UNREAD[1:], compacted=("t",)),
    ),
    (
        "a record of the key that may stand above",
        set(),
        trace(send(1, 10, 0, key="a"), *UNREAD[1:], send(4, 40, None, key="a"), compacted=("t",)),
    ),
    (
        "of a torn append the highest record counts",
        {"int_nonmonotonic_send"},
        trace(
            txn(1, OK, send(2, [10, 11], None, acks=1, outcome=OK), send(3, 20, None, acks=1, outcome=OK)),
            poll(4, [(1, 11)], process=2),
            poll(5, [(2, 20), (3, 10)], process=3),
        ),
    ),
    ("records without a key replace none", {"lost_write"}, trace(*UNREAD, compacted=("t",))),
    (
        "the last record of its key stays",
        {"lost_write"},
        trace(send(1, 10, 0, key="a"), *UNREAD[1:], compacted=("t",)),
    ),
]


@pytest.mark.parametrize(("_", "anomalies", "history"), CASES)
def test_corners(_: str, anomalies: set[str], history: Trace) -> None:
    """Rule: exactly this is found."""
    assert {finding.anomaly for finding in judge_trace(history).findings} == anomalies


def test_nothing_has_no_processes() -> None:
    """Rule: the relations of no operations are empty."""
    assert len(kafka_columns_of_traces((trace(),)).process) == 0


def test_a_skip_that_is_a_finding_is_not_counted_as_allowed() -> None:
    """Rule: only a subscribed consumer's skips are allowed; an assigned one's are findings."""
    steps = (poll(5, [(0, 10)]), poll(6, [(2, 30)]))
    assert measure_trace(trace(*THREE, assign(4, 0), *steps)).allowed == {}
    assert measure_trace(trace(*THREE, subscribe(4, 0), *steps)).allowed == {"poll_skip": 1}


def test_a_transaction_moves_its_consumer_when_it_commits() -> None:
    """Rule: what an aborted transaction polled moves nobody, wherever in the history it stands."""
    for first in ((), (send(1, 10, 0),)):
        told = [
            measure_trace(trace(*first, txn(2, outcome, poll(3, [(0, 10)])), send(4, 20, 1), poll(5, [])))
            for outcome in (OK, FAIL)
        ]
        assert told[0].lags.at_least_ns.tolist() != told[1].lags.at_least_ns.tolist()


def test_producer_zero_keeps_its_order_too() -> None:
    """Rule: producer ids begin at 0."""
    sends = [
        evolve(send(n, 10 * n, offset, at=(10, 50 + n)), producer_id=0, producer_epoch=0)
        for n, offset in ((1, 5), (2, 3))
    ]
    sends[1] = evolve(sends[1], invoke_time=20)
    history = trace(*sends, poll(9, [(3, 20), (5, 10)]), txn(12, OK))
    assert {finding.anomaly for finding in judge_trace(history).findings} == {"nonmonotonic_send"}


def test_a_poll_that_names_a_log_alone_goes_on_where_it_was() -> None:
    """Rule: only an offset says where a poll began; its lag is that of a poll that names nothing."""
    told = [
        measure_trace(trace(*THREE, poll(4, [(0, 10)]), poll(5, [], **more))).lags
        for more in ({}, {**lab.T0})
    ]
    assert told[0].at_least_ns.tolist() == told[1].at_least_ns.tolist() != []


@pytest.mark.parametrize(("first", "anomalies"), [(2, set()), (3, {"position_regressed"}), (5, set())])
def test_beginning_anew_looks_at_its_own_log(first: int, anomalies: set[str]) -> None:
    """Rule: a consumer whose position was lost begins at the first record of that very log, or where the loss
    began."""
    history = trace(
        poll(1, [(0, 0, 1), (0, 1, 2)]),
        poll(2, [(1, 2, 20), (1, 3, 30), (1, 5, 50)]),
        poll(3, [(1, first, 10 * first)]),
    )
    lost = LossRange(topic="t", partition=1, start=5, end=9, reason="a test")
    history = evolve(history, claims=evolve(history.claims, loss=(lost,)))
    assert {finding.anomaly for finding in judge_trace(history).findings} == anomalies


def test_of_two_consumers_the_first_is_named() -> None:
    """Rule: one finding for each log, of the process with the lowest number."""
    steps = [
        poll(op_id, rows, process=p)
        for p in (1, 2)
        for op_id, rows in ((3 + 2 * p, [(0, 10)]), (4 + 2 * p, [(2, 30)]))
    ]
    found = judge_trace(trace(*THREE, *steps)).findings[-1]
    assert (found.anomaly, found.operations) == ("poll_skip", (6, 5, 2))

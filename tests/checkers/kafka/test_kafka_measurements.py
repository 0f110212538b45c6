"""What is no violation is measured: unseen records over time, realtime lag as a range, and what the claims
allowed."""

from random import Random

import numpy as np
from attrs import evolve
from kafka_histories import FAIL, OK, UNKNOWN, assign, poll, send, subscribe, trace, txn

from fencepost.checkers.kafka import kafka_columns_of_traces, measure_columns, measure_trace
from tests.checkers import lab


def series(history):
    return [
        (u.partition, list(zip(u.times.tolist(), u.counts.tolist(), strict=True)), u.left)
        for u in measure_trace(history).unseen
    ]


def lags(history):
    found = measure_trace(history).lags
    return list(
        zip(
            found.op_id.tolist(),
            found.partition.tolist(),
            found.at_least_ns.tolist(),
            found.at_most_ns.tolist(),
            strict=True,
        )
    )


def test_unseen_counts_what_was_acknowledged_and_not_yet_shown() -> None:
    """The count rises with an acknowledgement and falls with the first poll that shows the record; acks=0,
    unknown and failed appends do not count."""
    history = trace(
        send(1, [10, 11], 0),
        poll(2, [(0, 10)]),
        send(3, 30, None, acks=0, outcome=OK),
        send(4, 40, None),
        send(5, 50, None, outcome=FAIL),
        poll(6, [(0, 10)]),
        send(7, 70, 0, partition=1),
    )
    assert series(history) == [(0, [(15, 2), (25, 1)], (1,)), (1, [(75, 1)], (7,))]


def test_an_append_that_tells_its_records_offsets_shows_nothing() -> None:
    """Some histories name the offset in the records of an append too; only a poll shows a record."""
    append = send(1, 10, 0)
    told = evolve(append, records=tuple(evolve(record, offset=0) for record in append.records))
    assert series(trace(told)) == [(0, [(15, 1)], (1,))]


def test_a_record_shown_before_its_acknowledgement_was_never_unseen() -> None:
    """What a poll showed before the producer heard of it counts at no time."""
    assert series(trace(send(1, 10, 0, at=(10, 50)), poll(2, [(0, 10)]))) == [(0, [], ())]


def test_lag_is_a_range_around_the_moment_at_which_the_log_grew() -> None:
    """At least since somebody proved a record beyond the consumer, at most since the latest append that is
    known to stand below its place began."""
    history = trace(
        assign(1, 0),
        poll(2, []),  # nothing is there yet: the append begins later
        send(3, 10, 0),  # [30, 35]
        poll(4, []),  # stands at 0: the log grew between 30 and 35
        send(5, 20, 1),  # [50, 55]
        poll(6, []),  # still at 0
        poll(7, [(0, 10)]),  # stands at 1: the log grew between 50 and 55
        poll(8, [(1, 20)]),  # the end
    )
    assert lags(history) == [(2, 0, 0, 0), (4, 0, 5, 15), (6, 0, 25, 35), (7, 0, 15, 25), (8, 0, 0, 0)]


def test_lag_follows_assignments() -> None:
    """A partition that is kept goes on, a new one starts at the beginning, a subscription is known by what it
    shows, an aborted poll moves nothing."""
    sends = (send(1, 10, 0), send(2, 20, 1))
    assert lags(trace(*sends, assign(3, 0), poll(4, [(0, 10)]), assign(5, 0), poll(6, [])))[-1] == (
        6,
        0,
        35,
        45,
    )
    assert lags(trace(*sends, assign(3, 0), poll(4, [(0, 10)]), assign(5, 1), assign(6, 0), poll(7, []))) == [
        (4, 0, 15, 25),
        (7, 0, 55, 65),
    ]
    assert lags(trace(*sends, assign(3, 0), subscribe(5, 0), poll(6, []))) == []
    aborted = trace(*sends, assign(3, 0), txn(4, UNKNOWN, poll(5, [(0, 10)])), poll(6, []))
    assert lags(aborted) == [(5, 0, 15, 25), (6, 0, 45, 55)]


def test_who_names_the_offset_lags_from_there() -> None:
    """A poll that says where it began and brought nothing stands there, and nowhere else."""
    history = trace(send(1, 10, 0), send(2, 20, 0, partition=1), poll(3, [], **lab.T0, offset=0))
    assert lags(history) == [(3, 0, 15, 25)]


def test_what_is_allowed_is_counted_by_its_name() -> None:
    """Skips and steps back of subscribed consumers, and records between those of one transaction, are counted
    and not convicted."""
    three = (send(1, 10, 0), send(2, 20, 1), send(3, 30, 2))
    seen = poll(4, [(0, 10), (1, 20)], process=2)
    steps = trace(*three, seen, subscribe(5, 0), poll(6, [(0, 10)]), poll(7, [(2, 30)]), poll(8, [(0, 10)]))
    assert measure_trace(steps).allowed == {"poll_skip": 1, "position_regressed": 1}
    between = trace(txn(1, OK, send(2, 10, 0), send(3, 20, 2)), send(4, 15, 1))
    assert measure_trace(between).allowed == {"int_send_skip": 1}
    side_by_side = trace(txn(1, OK, send(2, 10, 0), send(3, 20, 2)))
    assert measure_trace(side_by_side).allowed == {}


def naive_lag(history, poll_id: int, stands: int) -> tuple[int, int]:
    """The range as its definition reads, for a trace of one partition with acknowledged single-record appends
    and explicit polls."""
    asked = next(o for o in history.operations if o.op_id == poll_id)
    appends = [o for o in history.operations if o.function == "append"]
    polls = [o for o in history.operations if o.function == "poll"]
    proofs = [o.completion_time for o in appends if o.offset >= stands]
    proofs += [o.completion_time for o in polls if any(r.offset >= stands for r in o.records)]
    if not proofs:
        return 0, 0
    latest = max([o.invoke_time for o in appends if o.offset <= stands], default=0)
    start = min(o.invoke_time for o in history.operations)
    least = max(0, asked.invoke_time - min(proofs))
    return least, max(least, asked.completion_time - max(latest, start))


def test_lag_agrees_with_its_definition_on_random_histories() -> None:
    """The range from running bounds is the range as the definition reads, stacked with other traces or
    alone."""
    random = Random(6)
    traces = []
    for number in range(60):
        offsets = sorted(random.sample(range(12), random.randint(1, 8)))
        operations, op_id = [], 0
        for offset in offsets:
            op_id += 1
            at = random.randint(0, 100)
            operations.append(send(op_id, 100 + offset, offset, at=(at, at + random.randint(0, 30))))
        for _ in range(5):
            op_id += 1
            at, begin = random.randint(0, 120), random.randint(0, 12)
            shown = [(o, 100 + o) for o in offsets if o >= begin][: random.randint(0, 4)]
            operations.append(poll(op_id, shown, at=(at, at + random.randint(0, 30)), **lab.T0, offset=begin))
        traces.append(trace(*operations, trace_id=number))
    for history, measured in zip(traces, measure_columns(kafka_columns_of_traces(traces)), strict=True):
        found = measured.lags
        for op_id, least, most in zip(found.op_id, found.at_least_ns, found.at_most_ns, strict=True):
            asked = next(o for o in history.operations if o.op_id == op_id)
            stands = asked.records[-1].offset + 1 if asked.records else asked.offset
            assert (least, most) == naive_lag(history, op_id, stands)
        assert np.all(found.at_least_ns <= found.at_most_ns)
        assert len(found.op_id) == 5


def test_a_trace_without_operations_measures_nothing() -> None:
    """Where nothing was sent there is nothing unseen and no lag (found by drawing an empty trace)."""
    measured = measure_trace(lab.trace(trace_id=1))
    assert (measured.unseen, len(measured.lags.time), measured.allowed) == ((), 0, {})

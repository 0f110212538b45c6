"""Producers with several sends in flight: an idempotent one keeps the order of sending, any other keeps only
what it knew the end of."""

from attrs import evolve
from kafka_histories import FAIL, OK, poll, send, trace
from kafka_naive import Naive

from fencepost.checkers.kafka import judge_trace
from fencepost.traces.trace import Trace

NUMBERED = {"producer_id": 7, "producer_epoch": 0}


def found(history: Trace) -> set[tuple[str, int]]:
    """What the check finds in a trace of pipelined producers; the definitions, read literally, find the
    same."""
    history = evolve(history, concurrent_processes=True)
    said = {(one.anomaly, one.topic, one.partition) for one in judge_trace(history).findings}
    assert said == Naive(history).anomalies()
    return {(anomaly, partition) for anomaly, _, partition in said}


def in_flight(first: int, second: int, **more: object) -> Trace:
    """Two sends of one producer, acknowledged while both were in flight, at these offsets."""
    return trace(
        send(1, 10, first, at=(10, 60), **more),
        send(2, 20, second, at=(20, 50), **more),
        poll(9, sorted([(first, 10), (second, 20)]), at=(90, 95)),
    )


def test_an_idempotent_producer_keeps_the_order_in_flight() -> None:
    """Rule (KAFKA-5494, KAFKA-8484): what it sent later stands higher, though nobody had answered the earlier
    send yet."""
    assert found(in_flight(1, 0, **NUMBERED)) == {("nonmonotonic_send", 0)}
    assert found(in_flight(0, 1, **NUMBERED)) == set()


def test_without_numbers_batches_in_flight_may_overtake_each_other() -> None:
    """Rule: Kafka promises no order to retries of a producer that is not idempotent."""
    assert found(in_flight(1, 0)) == set()


def test_an_unknown_send_that_was_read_counts() -> None:
    """Rule: its number leaves it no later place than what was sent after it."""
    history = trace(
        send(1, 10, None, at=(10, None), **NUMBERED),
        send(2, 20, 0, at=(20, 50), **NUMBERED),
        poll(9, [(0, 20), (1, 10)], at=(90, 95)),
    )
    assert found(history) == {("nonmonotonic_send", 0)}


def test_another_epoch_or_producer_is_another_order() -> None:
    """Rule: numbers are compared within one epoch of one producer."""
    for other in ({"producer_id": 7, "producer_epoch": 1}, {"producer_id": 8, "producer_epoch": 0}):
        history = trace(
            send(1, 10, 1, at=(10, 60), **NUMBERED),
            send(2, 20, 0, at=(20, 50), **other),
            poll(9, [(0, 20), (1, 10)], at=(90, 95)),
        )
        assert found(history) == set()


def test_sends_of_one_instant_are_in_no_order() -> None:
    """Rule: equal times are concurrent, also for one that comes after both."""
    history = trace(
        send(1, 10, 1, at=(10, 60), **NUMBERED),
        send(2, 20, 0, at=(10, 50), **NUMBERED),
        send(3, 30, 2, at=(20, 70), **NUMBERED),
        poll(9, [(0, 20), (1, 10), (2, 30)], at=(90, 95)),
    )
    assert found(history) == set()


def test_a_long_send_hides_no_other() -> None:
    """Rule: without numbers what ended before the next send began is earlier, though a third one was in
    flight all the time."""
    for ended, anomalies in ((29, {("nonmonotonic_send", 0)}), (30, set())):
        history = trace(
            send(1, 10, 5, at=(10, ended), acks=1),
            send(2, 20, 9, at=(15, 100), acks=1),
            send(3, 30, 3, at=(30, 40), acks=1),
            poll(12, [(3, 30), (5, 10), (9, 20)]),
        )
        assert found(history) == anomalies


def test_the_highest_of_those_that_ended_is_held_against_the_next() -> None:
    """Rule: of sends that overlapped the highest counts, whichever ended last; of two at one place the first
    to end is named."""
    ended = [send(1, 10, 5, at=(10, 20), acks=1), send(2, 20, 2, at=(15, 25), acks=1)]
    last = send(3, 30, 3, at=(30, 40), acks=1)
    assert found(trace(*ended, last, poll(9, [(2, 20), (3, 30), (5, 10)]))) == {("nonmonotonic_send", 0)}
    one_place = [poll(8, [(5, 10)]), poll(9, [(3, 30)], process=2), poll(10, [(5, 20)], process=3)]
    history = evolve(trace(*ended, last, *one_place), concurrent_processes=True)
    assert [
        one.operations for one in judge_trace(history).findings if one.anomaly == "nonmonotonic_send"
    ] == [(3, 1)]


def test_only_what_stands_is_in_an_order() -> None:
    """Rule: failed sends and such that nobody acknowledges are not asked; of a batch the first record counts,
    wherever the rest stands."""
    earlier = send(1, 10, 1, acks=1)
    for more in ({"outcome": FAIL}, {"acks": 0, "outcome": OK}):
        history = trace(earlier, send(2, 20, None, **more), poll(9, [(0, 20), (1, 10)]))
        assert "nonmonotonic_send" not in {anomaly for anomaly, _ in found(history)}
    torn = trace(
        send(1, 10, None, acks=1, outcome=OK),
        send(2, [20, 21], None, acks=1, outcome=OK),
        poll(9, [(2, 20), (3, 10), (5, 21)]),
    )
    assert found(torn) == {("nonmonotonic_send", 0)}
    assert [one.offset for one in judge_trace(torn).findings if one.anomaly == "nonmonotonic_send"] == [2]

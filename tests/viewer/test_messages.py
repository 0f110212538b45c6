"""Arrows: each rule of messages.py by a trace of a few lines, and what holds for all of them in real runs."""

import pytest
from attrs import evolve

from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Outcome
from fencepost.viewer.messages import Fate, MessageKind, messages_of
from fencepost.viewer.moments import moments_of
from tests.checkers import lab

MS = 1_000_000
T0 = {"topic": "t", "partition": 0}


def found(*events, operations=()):
    """The messages of a small trace, with times in place of steps."""
    trace = lab.trace(operations, trace_id=1, events=events)
    moments = moments_of(trace)
    return [
        evolve(one, sent=moments.all[one.sent].time // MS, arrived=moments.all[one.arrived].time // MS)
        for one in messages_of(trace, moments)
    ]


def append(outcome, completion, acks=-1):
    """An append of two records, invoked at 10 ms."""
    records = lab.records(*(5, 6), begin=-1)
    return lab.operation(
        *(1, Function.APPEND, 10 * MS, completion),
        process=4,
        outcome=outcome,
        acks=acks,
        offset=0,
        records=records,
        **T0,
    )


def appended(at, node=1, cause="leader"):
    """The records of `append` reach a log."""
    return lab.event(at * MS, Name.APPENDED, node, offset=0, values=(5, 6), leader_epoch=0, cause=cause, **T0)


def mark(at, high_watermark):
    """The leader's high watermark moves."""
    return lab.event(at * MS, Name.HIGH_WATERMARK, 1, high_watermark=high_watermark, cause="leader", **T0)


def ways(messages):
    """Who, from when to when, and what became of it."""
    return [(one.source, one.sent, one.target, one.arrived, one.fate) for one in messages]


def test_a_produce_request_and_the_answer_that_waits_for_the_high_watermark():
    """With acks=all the answer leaves as the high watermark passes the records, with acks=1 at the append."""
    events = (appended(12), mark(15, 1), mark(20, 2))
    both = ways(found(*events, operations=(append(Outcome.OK, 22 * MS),)))
    assert both == [("c4", 10, "b1", 12, Fate.ARRIVED), ("b1", 20, "c4", 22, Fate.ARRIVED)]
    leader_only = ways(found(*events, operations=(append(Outcome.OK, 22 * MS, acks=1),)))
    assert leader_only[-1] == ("b1", 12, "c4", 22, Fate.ARRIVED)


def test_an_unknown_append_lost_its_request_or_its_answer():
    """No leader took it: the request is lost. One did: the answer is."""
    other = evolve(appended(12), values=(1,))
    assert ways(found(other, operations=(append(Outcome.UNKNOWN, None),))) == [("c4", 10, "", 10, Fate.LOST)]
    taken = ways(found(appended(12), operations=(append(Outcome.UNKNOWN, None),)))
    assert taken == [("c4", 10, "b1", 12, Fate.ARRIVED), ("b1", 12, "c4", 12, Fate.LOST)]


def test_where_no_append_of_any_leader_is_recorded_nothing_is_called_lost():
    """A trace without appends says nothing of what became of a request."""
    assert found(mark(15, 0), operations=(append(Outcome.UNKNOWN, None),)) == []


def test_a_copy_leaves_when_the_leader_held_it_and_the_follower_followed():
    """Both bounds count, the later one wins; the arrow is not sure."""
    follows = Event(time=14 * MS, name=Name.BECAME_FOLLOWER, node=2, leader=1, leader_epoch=0, **T0)
    (copy,) = found(appended(12), follows, appended(30, node=2, cause="follower"))
    assert (copy.kind, copy.source, copy.sent, copy.target, copy.arrived, copy.sure) == (
        MessageKind.COPY,
        "b1",
        14,
        "b2",
        30,
        False,
    )


def test_a_leader_and_isr_leaves_after_the_write_and_may_be_late():
    """It is drawn from the state's write to where it is obeyed; more than a second is late."""
    elected = Event(time=1 * MS, name=Name.CONTROLLER_ELECTED, node=3, controller_epoch=7)
    state = lab.event(
        5 * MS, Name.PARTITION_STATE, 3, leader=1, leader_epoch=4, controller_epoch=7, isr=(1,), **T0
    )
    obeys = lab.event(
        2000 * MS, Name.CONTROL_REQUEST_APPLIED, 1, controller_epoch=7, cause="LeaderAndIsrRequest"
    )
    leads = Event(time=2000 * MS, name=Name.BECAME_LEADER, node=1, leader_epoch=4, **T0)
    control = [one for one in found(elected, state, obeys, leads) if one.kind is MessageKind.CONTROL]
    assert ways(control) == [("b3", 5, "b1", 2000, Fate.LATE)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("propose commit update", [("b1", 10, "zk", 12, Fate.ARRIVED), ("zk", 12, "b1", 14, Fate.ARRIVED)]),
        ("propose refuse", [("zk", 10, "b1", 14, Fate.REFUSED)]),
        ("propose", [("b1", 10, "zk", 10, Fate.LOST)]),
        ("propose commit", [("b1", 10, "zk", 12, Fate.ARRIVED), ("zk", 12, "b1", 12, Fate.LOST)]),
    ],
)
def test_an_isr_change_and_what_became_of_it(events, expected):
    """Proposal, commit and answer make two arrows; what is missing is lost."""
    leader = {"node": 1, "leader_epoch": 0, "isr": (1, 2), **T0}
    made = {
        "propose": Event(time=10 * MS, name=Name.ISR_PROPOSED, cause="shrink", **leader),
        "commit": Event(time=12 * MS, name=Name.PARTITION_STATE, leader=1, controller_epoch=1, **leader),
        "update": Event(time=14 * MS, name=Name.ISR_UPDATED, cause="shrink", **leader),
        "refuse": Event(time=14 * MS, name=Name.ISR_REFUSED, **leader),
    }
    assert ways(found(*(made[name] for name in events.split()))) == expected


@pytest.mark.parametrize("kind", ["kip_101", "fenced_controller", "group", "producer"])
def test_in_real_runs_no_message_arrives_before_it_left(kind, shown):
    """Every arrow goes forward in time, ends on a lane, and most kinds occur."""
    trace = shown(kind).trace
    moments = moments_of(trace)
    messages = messages_of(trace, moments)
    lanes = (
        {"zk", ""}
        | {f"b{event.node}" for event in trace.events}
        | {f"c{one.process}" for one in trace.operations}
    )
    assert all(0 <= one.sent <= one.arrived < len(moments.all) for one in messages)
    assert {one.source for one in messages} | {one.target for one in messages} <= lanes
    assert {one.kind for one in messages} == set(MessageKind)
    copies = [
        event
        for event in trace.events
        if event.name is Name.APPENDED and event.cause == "follower" and event.values
    ]
    assert len([one for one in messages if one.kind is MessageKind.COPY]) == len(copies)

"""A run asks its brokers what no client sees, over its own simulated network."""

import json

from attrs import evolve

from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name, Question
from fencepost.traces.plan import Plan, PlannedOperation

OPERATIONS = tuple(
    PlannedOperation(op_id=number, process=0, at_ms=number * 40, function="append")
    for number in range(1, 101)
)
PLAN = Plan(seed=7, safety_ms=8_000, operations=OPERATIONS)


def asked(plan: Plan, *questions: Question) -> list[Event]:
    """The answers of a run to these questions, or to all."""
    events = (event for event in run(plan).events if event.name is Name.ASKED)
    return [event for event in events if not questions or event.cause in questions]


def test_every_broker_says_who_leads_and_every_replica_where_its_log_ends():
    """After the final reads all brokers name one leader, and all replicas have all records, the probe too."""
    last = [event for event in asked(PLAN) if event.time > 8_000_000_000]
    brokers = [event for event in last if event.cause == Question.BROKERS][-3:]
    assert [event.node for event in brokers] == [1, 2, 3]
    assert {event.replicas for event in brokers} == {(1, 2, 3)}
    view = [event for event in last if event.cause == Question.PARTITION][-1]
    assert (view.topic, view.partition, view.isr) == ("t", 0, (1, 2, 3))
    assert sorted([view.node, *json.loads(view.detail)["same"]]) == [1, 2, 3]
    logs = [event for event in last if event.cause == Question.LOG][-3:]
    assert [(event.node, event.log_start_offset, event.end_offset) for event in logs] == [
        (1, 0, 101),
        (2, 0, 101),
        (3, 0, 101),
    ]
    assert [event.high_watermark for event in logs if event.node == view.leader] == [101]


def test_an_answer_says_when_it_was_asked_for():
    """The question left before the answer came, and after the one before it."""
    events = asked(PLAN, Question.LOG)
    assert events and all(0 < json.loads(event.detail)["asked"] < event.time for event in events)


def test_a_plan_can_leave_asking_out():
    """Nothing is asked then, and what clients see is the same."""
    assert asked(evolve(PLAN, asking="never")) == []


def test_a_tenth_of_the_runs_is_not_asked_before_its_faults_are_over():
    """Asking cannot heal there what it looks for."""
    for seed, early in ((7, True), (10, False)):
        events = run(evolve(PLAN, seed=seed)).events
        healed = next(event.time for event in events if event.cause == "heal")
        assert any(event.name is Name.ASKED and event.time < healed for event in events) == early


def test_a_short_run_is_asked_less():
    """At most a tenth of its rows; what was left out is said, and the next round begins with it."""
    trace = run(evolve(PLAN, operations=OPERATIONS[:5]))
    answers = [event for event in trace.events if event.name is Name.ASKED]
    rows = len(trace.events) + len(trace.operations)
    assert 0 < 12 * len(answers) <= rows + 12 * 3  # each of three rounds may say that it was cut
    notes = [json.loads(event.detail) for event in answers if "NO_ROOM" in event.detail]
    assert notes and all(note["left_out"] for note in notes)

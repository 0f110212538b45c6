"""A run of a real system asks its brokers, in calm moments of its safety phase, once it is healed, and at
its end."""

import json

import pytest
from attrs import evolve

from fencepost.campaign.workers.plans import plan_of as plan_of_job
from fencepost.campaign.workers.results import Job
from fencepost.run import rounds as rounds_of_runs
from fencepost.traces.events import Name, Question
from tests.run.real.small_plans import plan_of


@pytest.fixture
def roomy(monkeypatch):
    """There is room for every round, however few rows a busy machine makes."""
    monkeypatch.setattr(rounds_of_runs, "within_share", lambda asked, rows: True)


def rounds(trace):
    """The phase in which each round began."""
    found, phase = [], ""
    for event in trace.events:
        if event.name is Name.PHASE:
            phase = event.cause
        elif event.cause == Question.BROKERS and event.node == 1:
            found.append(phase)
    return found


def test_a_run_is_asked_four_times(made, roomy):
    """In the middle and at the end of its safety phase, while it makes progress, and after the final reads,
    with the content of replicas; topics have the plan's names, and everything is answered."""
    _, trace = made(evolve(plan_of(), seed=1))
    assert len(rounds(trace)) == 4 and rounds(trace)[0] == "safety" and rounds(trace)[-1] == "final"
    asked = [event for event in trace.events if event.name is Name.ASKED]
    assert {event.topic for event in asked} == {None, "t"}
    assert not any('"error"' in event.detail for event in asked)
    content = [event for event in asked if event.cause == Question.CONTENT]
    assert {event.node for event in content} == {1, 2, 3}
    first = {json.loads(event.detail)["ranges"][0][2] for event in content if event.partition == 0}
    assert len(first) == 1


def test_a_tenth_of_the_runs_is_asked_only_once_it_is_healed(made, roomy):
    """As in the simulation."""
    _, trace = made(evolve(plan_of(), seed=10))
    assert rounds(trace) == ["liveness", "final"]


def test_a_short_run_is_asked_less_until_its_last_round(made):
    """A round without room says what it left out, and no row beyond the share but these comes from asking.
    The last round is whole."""
    _, trace = made(evolve(plan_of(), seed=1))
    last = max(at for at, event in enumerate(trace.events) if event.cause == "final")
    asked = [event for event in trace.events[:last] if event.name is Name.ASKED]
    notes = [event for event in asked if "NO_ROOM" in event.detail]
    rows = last + len(trace.operations)
    assert notes and 12 * (len(asked) - len(notes)) <= rows
    whole = [event for event in trace.events[last:] if event.name is Name.ASKED]
    assert {Question.EPOCHS, Question.CONTENT} <= {event.cause for event in whole}
    assert not any("NO_ROOM" in event.detail for event in whole)


def test_a_campaign_can_leave_asking_out(made):
    """`--no-asking` is a field of every plan of the campaign."""
    assert plan_of_job(Job(asking=False), 1).asking == "never"
    assert plan_of_job(Job(), 1).asking == "always"
    _, trace = made(evolve(plan_of(), asking="never"))
    assert not any(event.name is Name.ASKED for event in trace.events)

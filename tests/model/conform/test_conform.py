"""model/conform: TLC, on the guards of the TLA+ twin, stops at the very event at which the Python map of
refinement stops."""

import inspect
from random import Random

import pytest

from fencepost.checkers import conformance
from fencepost.checkers.conformance import unclean_topics
from fencepost.model.conform import recorded, validate
from fencepost.model.tlc import RunLimits, RunOptions, RunOutcome
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Name
from fencepost.traces.trace import Trace
from tests.checkers import test_conformance, test_conformance_logs
from tests.checkers.conformance_by_hand import START
from tests.checkers.conformance_variants import stories, variants
from tests.checkers.traces_by_hand import appends, shows, starts, trace

BENT = 5
"""Variants of each stored story."""


def both(traces: list[Trace]) -> list[tuple[int, int, str]]:
    """(position by Python, position by TLC, guard) of each partition of each trace; -1: explained."""
    runs, expected = [], []
    for one in traces:
        found = {
            (finding.topic, finding.partition): finding.events[-1]
            for finding in conformance.judge(one).findings
        }
        for run in recorded(one, unclean_topics(one), one.claims.compacted):
            runs.append(run)
            expected.append(found.get((run.topic, run.partition), -1))
    answers = validate(runs).answers
    return [
        (ours, -1 if answer.explained else run.positions[answer.step], answer.guard)
        for run, ours, answer in zip(runs, expected, answers, strict=True)
    ]


def by_hand(monkeypatch) -> list[Trace]:
    """Every trace that the tests of conformance convict or accept."""
    collected = []
    judge = conformance.judge

    def judging(one):
        collected.append(one)
        return judge(one)

    monkeypatch.setattr(conformance, "judge", judging)
    for module in (test_conformance, test_conformance_logs):
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_") and not inspect.signature(test).parameters:
                test()
    monkeypatch.setattr(conformance, "judge", judge)
    return [
        one
        for one in collected
        if one.plan != "{"
        and not one.claims.assumption_broken
        and Name.PARTITION_STATE in {event.name for event in one.events}
    ]


def test_tlc_and_the_python_map_stop_at_the_same_event(monkeypatch):
    """Rule: the two agree on every trace made by hand, on stored runs, and on runs bent in a seeded place:
    verdict and index of the first unexplained event."""
    traces = by_hand(monkeypatch)
    assert len(traces) > 60
    for story in stories():
        bent = list(variants(story))
        traces += [story, *Random(story.trace_id).sample(bent[1:], BENT)]
    told = both(traces)
    assert [ours for ours, _, _ in told] == [theirs for _, theirs, _ in told]
    guards = {guard for _, theirs, guard in told if theirs >= 0}
    assert len(guards) >= 15, sorted(
        guards
    )  # each guard that is never the one is a guard that was never seen to fail
    assert sum(theirs < 0 for _, theirs, _ in told) > 40


def test_hosts_values_and_stutters():
    """Rule: brokers and values become small numbers, what happens to a host happens to each partition, and
    the rest is counted as stutters."""
    huge = 2**62
    (run,) = recorded(trace(*START, appends(1, 0, 2, huge), starts(2)))
    names = [step["name"] for step in run.steps]
    assert names[-2:] == ["appended", "started"]
    assert run.steps[-2]["records"][0][1] < 10 and run.brokers == 3
    assert len(run.steps) + run.stutters == len(START) + 2


def test_numbers_beyond_tlcs_are_refused():
    """Rule: an offset that TLC cannot hold is the caller's trouble, told in one sentence."""
    with pytest.raises(TraceError, match="TLC's largest integer"):
        recorded(trace(*START, shows(1, 0, 2**31)))


def test_a_limit_leaves_the_question_open():
    """Rule: a run of TLC that was stopped answers nothing."""
    found = validate(recorded(trace(*START)), RunOptions(limits=RunLimits(seconds=0.05)))
    assert (found.answers, found.last.outcome, found.decided) == ((), RunOutcome.UNDECIDED, False)

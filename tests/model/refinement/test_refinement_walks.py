"""The refinement map against the model itself: whatever the model does, the map explains; what a variant does
wrong, it does not."""

from collections.abc import Iterator

import pytest
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fencepost.checkers import conformance, invariants
from fencepost.checkers.verdict import Decision
from fencepost.model.explore import After, Step, explore
from fencepost.model.replication.replication_state import Constants
from fencepost.model.replication.replication_system import Replication
from fencepost.traces.events import Name
from tests.model.replication.test_replication import CASES, SAFE
from tests.model.walks import trace_of, walk

LARGE = {"log_size": 6, "epochs": 5, "values": 10}


@pytest.mark.parametrize(("crashes", "losses"), [(0, 0), (2, 0), (2, 2)])
def test_every_path_of_the_model_is_explained(crashes: int, losses: int) -> None:
    """Rule: the map accepts each behaviour of a correct Kafka, crashes and lost tails included."""
    system = Replication(Constants(crashes=crashes, losses=losses, **LARGE))
    for seed in range(60):
        verdict = conformance.judge(trace_of(system, walk(system, seed, 120)))
        assert verdict.decision is Decision.OK, (seed, verdict.findings)


@pytest.mark.parametrize("crashes", [0, 2])
def test_no_path_of_the_model_breaks_an_invariant(crashes: int) -> None:
    """Rule: without loss the event invariants have no finding on any path of the fully protected model."""
    system = Replication(Constants(crashes=crashes, **LARGE))
    for seed in range(60):
        verdict = invariants.judge(trace_of(system, walk(system, seed, 120)))
        assert verdict.decision is Decision.OK, (seed, verdict.findings)


ANOMALIES = {
    "truncate_by_epoch": "committed_record_lost",
    "truncate_below_own_epoch": "log_divergence",
    "assign_epoch_on_election": "committed_record_lost",
    "fetch_fencing": "log_divergence",
    "isr_expand_after_epoch_start": "committed_record_lost",
    "leader_epoch_fencing": "leader_epoch_regressed",
}


@pytest.mark.parametrize("protection", CASES)
def test_each_counterexample_of_the_model_convicts_its_trace(protection: str) -> None:
    """Rule: the same history that breaks the model is a finding of the event invariants, and no behaviour of
    the map."""
    _, epochs, prefix, _ = CASES[protection]
    checks = SAFE if protection != "leader_epoch_fencing" else ("EPOCH-MONO",)
    system = Replication(Constants(epochs=epochs, drop={protection}), checks)
    trace = trace_of(system, list(_whole_path(system, prefix)))
    verdict = invariants.judge(trace)
    assert verdict.anomaly == ANOMALIES[protection], verdict.findings
    assert conformance.judge(trace).decision is Decision.ILLEGAL


def _whole_path(system: Replication, prefix: tuple) -> Iterator[Step]:
    """The prefix, step by step, then the counterexample."""
    (state,) = system.initial()
    yield Step(("init",), state)
    for action in prefix:
        state = system.apply(state, action)
        yield Step(action, state)
    yield from explore(After(system, prefix)).path[1:]


@given(st.integers(0, 50), st.data())
@settings(max_examples=60, deadline=None)
def test_judges_answer_on_nonsense(seed: int, data: st.DataObject) -> None:
    """Rule: a verdict, never an exception: whatever order, loss or repetition of events a trace shows."""
    system = Replication(Constants(crashes=2, losses=2, **LARGE))
    trace = trace_of(system, walk(system, seed, 60))
    order = data.draw(st.lists(st.integers(0, len(trace.events) - 1), max_size=60))
    nonsense = evolve(trace, events=tuple(trace.events[position] for position in order))
    for judge in (conformance.judge, invariants.judge):
        assert isinstance(judge(nonsense).decision, Decision)


@given(st.integers(0, 200), st.data())
@settings(max_examples=80, deadline=None)
def test_a_forged_append_is_never_explained(seed: int, data: st.DataObject) -> None:
    """Rule: one wrong value, offset or epoch in any append of a walk is a mismatch, at that event or at the
    first that depends on it."""
    system = Replication(Constants(**LARGE))
    trace = trace_of(system, walk(system, seed, 80))
    copied = [
        position
        for position, event in enumerate(trace.events)
        if event.name is Name.APPENDED and event.cause == "follower"
    ]
    assume(copied)
    position = data.draw(st.sampled_from(copied))
    event = trace.events[position]
    forged = data.draw(
        st.sampled_from(
            [
                evolve(event, values=(event.values[0] + 1000,)),
                evolve(event, offset=event.offset + 1),
                evolve(event, leader_epoch=event.leader_epoch + 1),
            ]
        )
    )
    events = (*trace.events[:position], forged, *trace.events[position + 1 :])
    verdict = conformance.judge(evolve(trace, events=events))
    assert verdict.decision is Decision.ILLEGAL
    assert verdict.findings[0].events[-1] == position

"""A run: deterministic, whole, and never crying wolf."""

import pytest
from attrs import evolve

from fencepost.campaign.run.run import FINAL_OPERATION, run
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.sim.network import Network
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import BudgetOptions, Fault, Plan


def phases(trace) -> list[str]:
    """The phases that a trace went through."""
    return [event.cause for event in trace.events if event.name is Name.PHASE]


def test_a_calm_run_keeps_every_promise(small_plan):
    """Nothing breaks, so every append is acknowledged, every record is read in the end, and no judge
    objects."""
    trace = run(small_plan())
    assert phases(trace) == ["safety", "heal", "liveness", "final", "end"]
    assert combine(judge(trace)).decision is Decision.OK
    appends = [operation for operation in trace.operations if operation.function is Function.APPEND]
    assert all(operation.outcome is Outcome.OK for operation in appends)
    sent = {record.value for operation in appends for record in operation.records}
    reader = [operation for operation in trace.operations if operation.op_id > FINAL_OPERATION]
    read = {
        record.value
        for operation in reader
        if operation.function is Function.POLL
        for record in operation.records
    }
    assert read == sent


def test_the_same_plan_gives_the_same_trace():
    """A run is a function of its plan: digest, operations and events are equal."""
    first, second = run(swarm(12)), run(swarm(12))
    assert first == second
    assert first.digest == second.digest != run(swarm(13)).digest


@pytest.mark.parametrize("removed", [4, 21, 37])
def test_removing_an_operation_leaves_the_delays_of_other_operations(removed, small_plan, monkeypatch):
    """Randomness is keyed by cause: without one operation, every message of every other operation takes as
    long as before."""

    def delays(plan: Plan) -> dict[tuple[object, ...], int]:
        taken: dict[tuple[object, ...], int] = {}
        original = Network.send

        def send(self, source, target, message, cause=()):
            def at(time, function, *args):
                if source >= 1000 or target >= 1000:
                    key = (source, target, type(message).__name__, cause, self.sent if not cause else 0)
                    taken[key] = time - self._scheduler.now
                return original_at(time, function, *args)

            original_at = self._scheduler.at
            self._scheduler = _At(self._scheduler, at)
            try:
                original(self, source, target, message, cause)
            finally:
                self._scheduler = self._scheduler.scheduler

        monkeypatch.setattr(Network, "send", send)
        run(plan)
        monkeypatch.setattr(Network, "send", original)
        return taken

    plan = small_plan()
    without = evolve(plan, operations=tuple(o for o in plan.operations if o.op_id != removed))
    before, after = delays(plan), delays(without)
    gone = {key for key in before if key not in after}
    assert gone and all(key[3][0] >> 8 == removed for key in gone)
    assert {key: before[key] for key in after if key in before} == {
        key: after[key] for key in after if key in before
    }
    assert len(after) > 60


class _At:
    """A scheduler whose `at` is watched."""

    def __init__(self, scheduler, at):
        self.scheduler, self.at = scheduler, at

    @property
    def now(self):
        return self.scheduler.now


def test_a_cluster_that_never_comes_up_is_an_assumption_broken(small_plan, monkeypatch):
    """A run that could not begin says nothing about the implementation: it is neither Ok nor a finding."""
    monkeypatch.setattr("fencepost.campaign.run.run.SETUP_MS", 1)
    assert combine(judge(run(small_plan()))).decision is Decision.ASSUMPTION_BROKEN


def test_what_never_heals_is_no_progress(small_plan, monkeypatch):
    """The liveness phase can fail: a broker that is kept down after the faults is found."""
    from fencepost.campaign.run.cluster import FaultyCluster

    plan = small_plan(
        liveness_ms=20_000,
        faults=(Fault(fault_id=0, kind="crash", at_ms=2_000, duration_ms=1_000_000, target="broker 2"),),
    )
    assert combine(judge(run(plan))).decision is Decision.OK
    monkeypatch.setattr(FaultyCluster, "_restart", lambda self, node: None)
    verdict = combine(judge(run(plan)))
    assert verdict.anomaly == "no_progress"


def test_a_fault_outside_the_budget_is_skipped_and_recorded(small_plan):
    """The budget is applied at onset: with one broker down, a second crash is skipped and the trace says
    why."""
    faults = tuple(
        Fault(
            fault_id=number,
            kind="crash",
            at_ms=1_000 + number,
            duration_ms=4_000,
            target=f"broker {number + 1}",
        )
        for number in range(2)
    )
    trace = run(small_plan(faults=faults, budget=BudgetOptions(brokers_down=1)))
    began = [event.node for event in trace.events if event.name is Name.FAULT_BEGAN]
    skipped = [event.detail for event in trace.events if event.name is Name.FAULT_SKIPPED]
    assert began == [1]
    assert len(skipped) == 1 and "1 brokers are down, at most 1 may be" in skipped[0]


def test_loss_of_every_disk_turns_no_loss_into_loss_allowed(small_plan):
    """Claims follow from recorded facts: when every ISR member loses its unsynced tail the loss is allowed,
    and named; without the claim it is a finding."""
    faults = tuple(
        Fault(
            fault_id=number, kind="power_loss", at_ms=5_000, duration_ms=1_000, target=f"broker {number + 1}"
        )
        for number in range(3)
    )
    plan = small_plan(seed=0, faults=faults, budget=BudgetOptions(brokers_down=3, isr_disks_lost=3))
    trace = run(plan)
    assert trace.claims.loss and trace.claims.reasons
    assert combine(judge(trace)).decision is Decision.OK
    strict = evolve(trace, claims=evolve(trace.claims, loss=(), content_by_epoch=False))
    assert combine(judge(strict, ("log", "invariants"))).decision is Decision.ILLEGAL


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_healthy_seeds_find_nothing(first):
    """The unmodified implementation never shows an anomaly under the general swarm (the long sweep runs 2,000
    seeds)."""
    for seed in range(first, first + 15):
        verdict = combine(judge(run(swarm(seed))))
        assert verdict.decision is Decision.OK, (seed, verdict)

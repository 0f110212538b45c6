"""Rates: a candidate counts if enough of its runs show the anomaly; time and runs are bounded."""

from collections import Counter
from types import SimpleNamespace

import pytest
from attrs import evolve

from fencepost.campaign.shrink.oracle import OutOfTimeError, Target, key_of
from fencepost.campaign.shrink.rates import (
    MOST_A_CANDIDATE,
    MOST_RUNS,
    RATES,
    Rate,
    RateOracle,
    Repeater,
    as_often,
    rate_of,
    shows,
    shrink_by_rate,
    target_of,
)
from fencepost.campaign.swarm.real_systems import swarm_for_real
from fencepost.campaign.workers.real_worker import FINDINGS, checked
from fencepost.campaign.workers.real_worker import PLAN as PLAN_FILE
from fencepost.campaign.workers.results import Job, RunResult
from fencepost.checkers.verdict import Decision, Finding
from fencepost.cli.campaign.again import _plan
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import Fault, Plan, PlannedOperation
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.store import TraceStore
from tests.run.real.small_plans import KEEPS, plan_of

PLAN = Plan(
    seed=1,
    operations=tuple(
        PlannedOperation(op_id=number, process=0, at_ms=number, function="append") for number in range(1, 9)
    ),
    faults=tuple(
        Fault(fault_id=number, kind=kind, at_ms=number, target="broker 1")
        for number, kind in enumerate(("crash", "pause", "crash"))
    ),
)


def result(anomaly=None):
    """Of one run."""
    decision = Decision.ILLEGAL if anomaly else Decision.OK
    return RunResult(seed=1, decision=decision, anomaly=anomaly)


def oracle(story, **given):
    """An oracle over runs that `story` makes of a plan and the number of its run."""
    seen = {}

    def once(plan):
        key = (plan.operations, plan.faults)
        seen[key] = seen.get(key, 0) + 1
        return result(story(plan, seen[key]))

    return RateOracle(target=Target(anomaly="lost_write"), once=once, **{"rate": 0.5} | given)


def test_a_candidate_is_run_until_the_answer_is_known():
    """Shown at once: two runs. Never shown: two where the plan shows it nearly always, more where it shows
    it every second time. What is known is not run again."""
    always = oracle(lambda plan, number: "lost_write")
    assert always.first([PLAN]) == 0 and always.runs == 2
    for rate, runs in ((0.83, 2), (0.5, 4)):
        never = oracle(lambda plan, number: None, rate=rate)
        assert never.first([PLAN]) is None and never.runs == runs
        assert never.first([PLAN]) is None and never.runs == runs, "known already"
    every_second = oracle(lambda plan, number: "lost_write" if number % 2 == 0 else None)
    assert every_second.first([PLAN]) == 0 and every_second.runs == 6


@pytest.mark.parametrize("rate", [RATES[0], 0.5, 0.83, RATES[1]])
def test_the_sequential_test_ends_and_errs_as_seldom_as_it_says(rate):
    """Exactly, over all stories of a candidate: one with the plan's own rate is refused in a fifth of the
    cases at most, one with a quarter of it is kept in a fifth at most, and neither takes more runs than the
    bound."""

    def kept(chance, shown=0, runs=0):
        decided = as_often(rate, shown, runs)
        if decided is not None:
            return float(decided)
        assert runs < MOST_A_CANDIDATE
        return chance * kept(chance, shown + 1, runs + 1) + (1 - chance) * kept(chance, shown, runs + 1)

    assert kept(rate) > 0.8 and kept(rate / 4) < 0.2
    assert rate_of(0, 4) == RATES[0] and rate_of(9, 9) == RATES[1] and rate_of(2, 4) == 0.5


def test_another_anomaly_does_not_count():
    """Only what the shrink is about."""
    assert oracle(lambda plan, number: "duplicate").first([PLAN]) is None


def test_time_and_runs_are_bounded():
    """Whatever is left to try."""
    with pytest.raises(OutOfTimeError):
        oracle(lambda plan, number: None, seconds=-1.0).first([PLAN])
    with pytest.raises(OutOfTimeError):
        oracle(lambda plan, number: None, runs=MOST_RUNS).first([PLAN])


def test_a_finding_of_a_real_run_gets_smaller_within_a_few_runs(tmp_path):
    """In the embedded cluster: a leader stands still, and clients send again what was not answered. Half of
    the operations is left out after six runs, in one cluster that outlives its findings."""
    impatient = evolve(KEEPS, request_timeout_ms=100, retry_unknown=True)
    plan = checked(plan_of(("pause", 100, 500, "leader of t-0"), client=impatient, count=80))
    with Repeater(Job(system="embedded", control="duplicates"), tmp_path) as repeater:
        again = RateOracle(
            target=Target(anomaly="duplicate"),
            rate=rate_of(4, 4),
            once=repeater.once,
            most=6,
            rates={key_of(plan): (4, 4)},
        )
        small = shrink_by_rate(plan, again, on_better=lambda plan: None, on_progress=lambda progress: None)
        assert repeater.worker.clusters.started == 1
    assert small.runs == 6 and len(small.plan.operations) <= len(plan.operations) // 2 + 1


def test_a_plan_shrinks_to_what_shows_the_anomaly_often_enough():
    """It takes the last crash and one operation; a fault that makes it likelier than every second run is not
    kept."""

    def story(plan, number):
        kinds = [fault.fault_id for fault in plan.faults]
        needed = 2 in kinds and any(one.op_id == 5 for one in plan.operations)
        return "lost_write" if needed and (number % 2 == 0 or 1 in kinds) else None

    kept = []
    small = shrink_by_rate(PLAN, oracle(story), on_better=kept.append, on_progress=lambda progress: None)
    assert [fault.fault_id for fault in small.plan.faults] == [2]
    assert [one.op_id for one in small.plan.operations] == [5]
    assert small.finished and kept[-1] == small.plan


def test_a_plan_that_seldom_shows_it_is_refused():
    """In one sentence."""
    once_in_ten = oracle(lambda plan, number: "lost_write" if number == 10 else None)
    with pytest.raises(FencepostError, match="a run that shows lost_write again"):
        shrink_by_rate(
            evolve(PLAN, seed=2), once_in_ten, on_better=lambda plan: None, on_progress=lambda progress: None
        )


def test_a_run_shows_what_any_of_its_findings_says():
    """One lost record may name the run, and what another reader saw of it the other finding."""
    finding = Finding(check="log", anomaly="inconsistent_offsets", expected="", seen="")
    both = evolve(result("lost_write"), findings=(finding,))
    assert shows(both, "lost_write") and shows(both, "inconsistent_offsets") and not shows(both, "duplicate")
    assert not shows(result(), "lost_write")


def test_what_is_run_again_is_what_was_run(tmp_path, monkeypatch):
    """The kept plan of a finding; of another run the swarm's plan, as it was steered then."""
    job, kept = Job(system="embedded", faults=("crash", "pause")), tmp_path / FINDINGS / "5" / PLAN_FILE
    kept.parent.mkdir(parents=True)
    kept.write_text(plan_to_json(evolve(PLAN, cluster=swarm_for_real(5).cluster)))
    assert _plan(tmp_path, job, 5, None).faults == PLAN.faults
    named = "strong+leader_changed+pause"
    stored = SimpleNamespace(read=lambda seed: SimpleNamespace(profile=named))
    monkeypatch.setattr(TraceStore, "open", lambda folder: stored)
    assert _plan(tmp_path, job, 6, None) == swarm_for_real(6, job.faults, profile=named)


def test_a_plan_is_shrunk_to_what_it_shows_now():
    """The recorded anomaly if it shows often enough; else the most frequent one; the recorded one if there is
    nothing at all, which the shrink refuses."""

    def rate(*names):
        results = tuple(result(name) for name in names)
        return Rate(
            runs=len(names), anomalies=dict(Counter(filter(None, names))), undecided=0, results=results
        )

    lost, other = "lost_write", "inconsistent_offsets"
    assert target_of(lost, rate(lost, other, lost, other)) == (lost, 2)
    assert target_of(lost, rate(lost, other, other, None)) == (other, 2)
    assert target_of(lost, rate(None, None)) == (lost, 0)

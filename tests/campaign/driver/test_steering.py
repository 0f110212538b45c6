"""Steering: what was not reached yet becomes likelier, and a steered campaign can be repeated, resumed and
spread like any other."""

import json
import os
import random

import pytest
from attrs import evolve

from fencepost.campaign.driver import steering
from fencepost.campaign.driver.campaign_driver import Campaign, drive
from fencepost.campaign.driver.steering import Steering
from fencepost.campaign.swarm.mark_weights import marks_possible
from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.campaign.swarm.real_systems import features_of
from fencepost.campaign.swarm.schedules import ORDERS
from fencepost.campaign.swarm.swarm import swarm
from fencepost.campaign.workers.plans import plan_of
from fencepost.campaign.workers.results import Job, RunResult
from fencepost.processes import forking
from fencepost.traces.errors import FencepostError
from fencepost.traces.store import TraceStore

JOB = Job(steer_from=0)
POSSIBLE = marks_possible(PROFILES["default"])
WORKER = "tests.campaign.driver.story_worker"


def result(seed: int, *marks: str) -> RunResult:
    """Of a run that reached these marks."""
    return RunResult(seed=seed, marks=marks)


def test_a_round_leans_toward_what_no_earlier_round_reached():
    """The profile of a seed names the marks that are missing from the rounds before its own, and waits until
    they have ended."""
    state = Steering(JOB, range(300))
    assert state.profile_of(0) == state.profile_of(49) == "default"
    for seed in range(49):
        state.add(result(seed, *POSSIBLE[:-2]))
    assert state.profile_of(50) is None
    state.add(result(49))
    assert state.profile_of(50) == state.profile_of(99) == "default+" + "+".join(POSSIBLE[-2:])
    for seed in range(50, 100):
        state.add(result(seed, POSSIBLE[-1]))
    assert state.profile_of(100) == f"default+{POSSIBLE[-2]}"
    assert state.missing() == (POSSIBLE[-2],)
    for seed in range(100, 150):
        state.add(result(seed, POSSIBLE[-2]))
    assert state.profile_of(150) == "default"


def test_the_order_in_which_runs_end_is_of_no_account():
    """Weights are a function of results, not of which process was quicker."""
    results = [result(seed, POSSIBLE[seed % 7]) for seed in range(100)]
    told = []
    for shuffle in range(3):
        random.Random(shuffle).shuffle(results)
        state = Steering(JOB, range(200))
        for each in results:
            state.add(each)
        told.append([state.profile_of(seed) for seed in range(0, 150, 50)])
    assert told[0] == told[1] == told[2] and told[0][1] == told[0][2] != "default"


def test_a_campaign_that_is_not_steered_knows_what_is_missing_all_the_same():
    """Without --steer every seed has the job's profile; with a plan of one's own nothing is missing, as no
    swarm was asked."""
    state = Steering(Job(), range(100))
    assert state.profile_of(99) == "default" and state.missing() == POSSIBLE
    assert Steering(Job(plan="{}", steer_from=0), range(9)).missing() == ()


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """A maker of steered campaigns of nine seeds in rounds of three, in which seed 0 and seed 4 reach a mark
    each."""
    monkeypatch.setattr(steering, "ROUND", 3)
    story = json.dumps({0: "expired", 4: "refused"})
    for variable, value in (("STORY", story), ("MARKS", tmp_path), ("DRIVER", os.getpid())):
        monkeypatch.setenv(variable, str(value))

    def make(name: str, jobs: int = 1) -> Campaign:
        out, command = tmp_path / name, (*forking.BEGIN, WORKER)
        return Campaign(seeds=range(9), job=JOB, jobs=jobs, out=out, command=command, recheck_one_in=2)

    return make


def profiles(campaign: Campaign) -> dict[int, tuple[str, str]]:
    """By seed: of what the run was made, and its digest."""
    store = TraceStore.open(campaign.out)
    traces = [store.read(seed) for seed in sorted(store.trace_ids())]
    return {trace.trace_id: (trace.profile, trace.digest) for trace in traces}


def test_a_steered_campaign_is_the_same_in_parallel_and_after_an_interruption(campaign, monkeypatch):
    """One process, two, or a Ctrl-C in the second round and --resume: each seed has the same plan, each run
    the same digest, repeats included."""
    alone, together, broken = campaign("alone"), campaign("together", 2), campaign("broken", 2)
    whole = drive(alone)
    assert not whole.disagreeing and whole.rechecked > 2
    assert whole.marks == {"session_expired": 1, "isr_change_refused": 1}
    assert set(whole.never_reached) == set(POSSIBLE) - set(whole.marks)
    drive(together)
    monkeypatch.setenv("STORY", json.dumps({0: "expired", 4: "interrupted, refused"}))
    assert drive(broken).interrupted
    after = drive(evolve(broken, resume=True))
    assert after.marks == whole.marks and after.never_reached == whole.never_reached and not after.disagreeing
    assert profiles(alone) == profiles(together) == profiles(broken)
    made = {seed: profile for seed, (profile, _) in profiles(alone).items()}
    assert [made[seed] for seed in range(3)] == ["default"] * 3
    assert "session_expired" not in made[3] and "+isr_change_refused" in made[3] == made[5]
    assert "isr_change_refused" not in made[6] and made[6] == made[8]
    assert swarm(8, made[8]).profile == made[8]


def test_a_steered_campaign_is_resumed_from_its_first_seed_only(campaign):
    """Rounds begin at the first seed: a campaign that began elsewhere would have other plans under the same
    seeds, and is refused."""
    begun = campaign("begun")
    drive(evolve(begun, seeds=range(3)))
    with pytest.raises(FencepostError, match="steer_from"):
        drive(evolve(begun, seeds=range(3, 9), job=evolve(JOB, steer_from=3), resume=True))
    assert drive(evolve(begun, resume=True)).finished == 9


REAL = Job(system="embedded", profile="strong", faults=("crash", "pause"), steer_from=0)


def real_state(reaching) -> Steering:
    """Of a real campaign whose first round has ended. reaching: whether a run reaches the rare mark, by what
    its plan has."""
    state = Steering(REAL, range(100))
    for seed in range(steering.REAL_ROUND):
        had = features_of(seed, REAL.faults, "", "strong")
        marks = [mark for mark in state.possible if mark != "written_between" or reaching(had)]
        state.add(result(seed, *marks))
    return state


def test_a_real_campaign_learns_what_plans_with_a_rare_mark_had():
    """After the first round the profile names the order or the kinds of the plans that reached a mark which
    few reached, and no mark that was reached. A plan with that name exists, in the same process or another.
    Nobody says beforehand which order it is."""
    orders = [
        next(iter(features_of(seed, REAL.faults, "", "strong") & set(ORDERS)), None)
        for seed in range(steering.REAL_ROUND)
    ]
    (wanted, *_) = [order for order in orders if order and orders.count(order) == 1]
    state = real_state(lambda had: wanted in had)
    base, *names = state.profile_of(steering.REAL_ROUND).split("+")
    assert base == "strong" and wanted in names and not set(names) & {"written_between", "leader_changed"}
    plan = plan_of(REAL, 15, state.profile_of(15))
    assert plan.profile == state.profile_of(15) and plan == plan_of(REAL, 15, plan.profile)
    never = real_state(lambda had: False)
    assert "written_between" in never.profile_of(steering.REAL_ROUND).split("+")
    always = real_state(lambda had: True)
    assert always.profile_of(steering.REAL_ROUND) == "strong"
    assert always.profile_of(2 * steering.REAL_ROUND) is None


def test_a_real_campaign_that_is_not_steered_counts_marks():
    """Without --steer, with a plan of one's own and with a control."""
    assert Steering(evolve(REAL, steer_from=-1), range(9)).profile_of(8) == "strong"
    assert "leader_changed" in Steering(evolve(REAL, steer_from=-1), range(9)).possible
    assert not Steering(evolve(REAL, control="acks-1"), range(9)).on
    assert Steering(Job(system="embedded"), range(9)).profile_of(3) == "real"

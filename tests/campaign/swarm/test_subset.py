"""The one swarm: a plan has a random part of everything, one schedule at most, and what is asked for."""

from collections import Counter
from itertools import pairwise

import pytest

from fencepost.campaign.swarm.bounds import PERCENTAGES
from fencepost.campaign.swarm.draws import Draws
from fencepost.campaign.swarm.profiles import FORMER, PROFILES, profile_named
from fencepost.campaign.swarm.subset import CROWDS, NEEDS, SCHEDULES, needs_of, subset_of
from fencepost.campaign.swarm.swarm import swarm
from fencepost.sim.randomness import Randomness

EVERYTHING = PROFILES["default"]
FEATURES = sorted({*SCHEDULES, *CROWDS, *NEEDS, "unclean", "producers"})


@pytest.mark.parametrize("feature", FEATURES)
def test_a_named_feature_is_in_every_plan(feature: str) -> None:
    """Rule: with all that it needs; where it asks for a schedule no other one takes its place."""
    profile = profile_named(f"default+{feature}")
    for seed in range(60):
        bounds = subset_of(profile, Draws(Randomness(seed)))
        for one in (feature, *needs_of(feature)):
            assert getattr(bounds, one), (seed, one)


def test_names_of_the_first_version_still_draw() -> None:
    """Rule: for one version, with the features that they were about."""
    assert profile_named("relays") == profile_named("default+relayed")
    assert all(swarm(1, name).faults is not None for name in FORMER)


def test_every_feature_is_on_in_some_plans_and_off_in_others() -> None:
    """Rule: on or off for the plan; one schedule, or none."""
    drawn = [subset_of(EVERYTHING, Draws(Randomness(seed))) for seed in range(400)]
    on = Counter(one for bounds in drawn for one in PERCENTAGES if getattr(bounds, one))
    unconditional = ("calm", "gentle", "named", "busy", "other_ends", "indexed", "rests")
    unconditional += ("seeking", "resubscribing", "standalone", "managed", "cooperative", "subscriptions")
    assert all(0 < on[one] < 400 for one in PERCENTAGES if one not in unconditional)
    assert all(sum(bool(getattr(bounds, one)) for one in SCHEDULES) <= 1 for bounds in drawn)
    assert any(bounds.faults == (0, 0) for bounds in drawn)
    assert not any(bounds.mixed for bounds in drawn)


def test_lone_faults_do_not_meet() -> None:
    """Rule: each fault comes when the one before it has ended, and lasts longer than a session."""
    plans = [
        plan
        for seed in range(60)
        if subset_of(EVERYTHING, Draws(Randomness(seed))).lone and (plan := swarm(seed, "default")).faults
    ]
    assert plans
    for plan in plans:
        faults = sorted((one for one in plan.faults if one.fault_id < 1_000), key=lambda one: one.at_ms)
        for one, other in pairwise(faults):
            assert one.at_ms + one.duration_ms < other.at_ms
            assert one.duration_ms >= plan.cluster.zookeeper_session_timeout_ms
        assert plan.network.loss_ppm == 0


def test_kinds_can_be_chosen() -> None:
    """Rule: `--faults` cuts the one swarm down, too."""
    for seed in range(30):
        bounds = subset_of(profile_named("default", ("crash",)), Draws(Randomness(seed)))
        assert bounds.kinds == ("crash",)
        assert {fault.kind for fault in swarm(seed, "default", faults=("crash",)).faults} <= {"crash"}

"""The one swarm: a plan has a random part of everything, one schedule at most, and every named profile is a
part of what it can draw."""

from collections import Counter
from itertools import pairwise

import pytest

from fencepost.campaign.swarm.bounds import PERCENTAGES
from fencepost.campaign.swarm.draws import Draws
from fencepost.campaign.swarm.profiles import PROFILES, profile_named
from fencepost.campaign.swarm.subset import SCHEDULES, subset_of
from fencepost.campaign.swarm.swarm import swarm
from fencepost.sim.randomness import Randomness
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC

EVERYTHING = PROFILES["everything"]


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_named_profile_is_a_part(name: str) -> None:
    """Rule: what a profile can have, the one swarm can."""
    profile = PROFILES[name]
    assert {*profile.kinds} <= {*EVERYTHING.kinds}
    assert {*profile.request_kinds} <= {*EVERYTHING.request_kinds}
    assert {one for one in PERCENTAGES if getattr(profile, one)} <= {
        one for one in PERCENTAGES if getattr(EVERYTHING, one)
    }


def test_every_feature_is_on_in_some_plans_and_off_in_others() -> None:
    """Rule: on or off for the plan; one schedule, or none."""
    drawn = [subset_of(EVERYTHING, Draws(Randomness(seed))) for seed in range(400)]
    on = Counter(one for bounds in drawn for one in PERCENTAGES if getattr(bounds, one))
    unconditional = ("calm", "gentle", "named", "busy", "other_ends", "indexed", "rests")
    assert all(0 < on[one] < 400 for one in PERCENTAGES if one not in unconditional)
    assert all(sum(bool(getattr(bounds, one)) for one in SCHEDULES) <= 1 for bounds in drawn)
    assert any(bounds.faults == (0, 0) for bounds in drawn)
    assert not any(bounds.mixed for bounds in drawn)


def test_a_named_profile_is_what_it_was() -> None:
    """Rule: only the mixture draws its bounds."""
    assert subset_of(PROFILES["storage"], Draws(Randomness(3))) is PROFILES["storage"]


def test_lone_faults_do_not_meet() -> None:
    """Rule: each fault comes when the one before it has ended, and lasts longer than a session."""
    plans = [
        plan
        for seed in range(60)
        if subset_of(EVERYTHING, Draws(Randomness(seed))).lone and (plan := swarm(seed, "everything")).faults
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
        bounds = subset_of(profile_named("everything", ("crash",)), Draws(Randomness(seed)))
        assert bounds.kinds == ("crash",)
        assert {fault.kind for fault in swarm(seed, "everything", faults=("crash",)).faults} <= {"crash"}


def test_groups_have_names_of_any_script() -> None:
    """Rule: in a part of the plans, and then the offsets topic has one to five partitions, so that the hash
    of a name matters; all lives of one group keep its name."""
    drawn = [swarm(seed, "everything") for seed in range(300)]
    plans = [plan for plan in drawn if any(one.function == "subscribe" for one in plan.operations)]
    names = [{one.key for one in plan.operations if one.function == "subscribe"} for plan in plans]
    named = [one for one in names if not one & {"g1", "g2"}]
    assert 0 < len(named) < len(plans)
    assert all(len(one) <= 2 for one in names)
    assert any(not name.isascii() for one in named for name in one)
    assert {1, 2, 3, 4, 5} == {
        topic.partitions for plan in plans for topic in plan.cluster.topics if topic.name == OFFSETS_TOPIC
    }

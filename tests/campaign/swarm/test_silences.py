"""Brokers that fall silent before anybody replaces them: the profile `silences`, which was made to reach
KAFKA-7128 (tests/bugs/test_bugs.py)."""

from functools import cache

import pytest
from alone import alone

from fencepost.campaign.swarm.chain_rows import OWED
from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import run
from fencepost.traces.plan import Fault, Plan


@cache
def plans() -> list[Plan]:
    return [alone(seed, "silenced") for seed in range(20)]


def falls(plan: Plan) -> list[Fault]:
    """Without the links that are slow for the whole plan."""
    return [fault for fault in plan.faults if fault.kind != "slow_link"]


def test_a_leader_is_cut_off_behind_a_step_of_the_protocol_and_loses_its_session_later() -> None:
    """Rule: the end of a session follows the same event as the silence of the same leader, not before it;
    every step is followed, in plans of four brokers or more that all have a replica."""
    for plan in plans():
        silent = {fault.fault_id: fault for fault in falls(plan) if fault.kind == "partition"}
        for end in (fault for fault in falls(plan) if fault.kind == "expire_session"):
            cut = silent[end.fault_id - 1]
            assert (end.target, end.follows, end.at_ms) == (cut.target, cut.follows, cut.at_ms)
            assert end.target == "leader of t-0" and end.delay_ms >= cut.delay_ms
        assert len({fault.fault_id for fault in plan.faults}) == len(plan.faults)
        assert plan.cluster.topics[0].replication_factor == plan.cluster.brokers >= 4
    assert {fault.follows for plan in plans() for fault in falls(plan)} == {"", *OWED}


def test_a_follower_is_silent_for_so_long_that_it_leaves_the_isr() -> None:
    """Rule: the faults at a time of their own hit followers, for replica.lag.time.max.ms at least; most rows
    have one."""
    followers = [(plan, fault) for plan in plans() for fault in falls(plan) if not fault.follows]
    assert all(fault.target.startswith("follower ") for _, fault in followers)
    assert all(fault.duration_ms >= plan.cluster.replica_lag_time_max_ms for plan, fault in followers)
    assert len(followers) > 2 * len(plans())


def test_some_pairs_of_brokers_are_far() -> None:
    """Rule: a pair is far for the whole plan and by name, so that two followers hear their leader at
    different times; in some plans none is."""
    far = [[fault for fault in plan.faults if fault.kind == "slow_link"] for plan in plans()]
    assert sum(bool(links) for links in far) > 0 and all(
        (fault.at_ms, fault.duration_ms) == (0, plan.safety_ms) and fault.target < fault.other
        for plan, links in zip(plans(), far, strict=True)
        for fault in links
    )


@pytest.mark.parametrize(("asked", "left"), [("crash", {"crash"}), ("partition", {"partition"})])
def test_fewer_kinds_may_be_asked_for(asked: str, left: set[str]) -> None:
    """Rule: --faults narrows the profile; without links that break there are no silences."""
    assert {
        fault.kind for seed in range(4) for fault in alone(seed, "silenced", faults=(asked,)).faults
    } == left


def test_nothing_is_found_in_a_healthy_cluster() -> None:
    """Rule: silences show nothing where no protection is missing."""
    for seed in (0, 1):
        assert not [one for verdict in judge(run(alone(seed, "silenced"))) for one in verdict.findings], seed

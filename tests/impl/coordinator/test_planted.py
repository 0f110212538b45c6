"""Protections whose absence a directed history shows, where a swarm would need luck: each is missed when it
is taken away."""

from attrs import evolve
from group_lab import REBALANCE_MS, GroupLab

from fencepost.campaign.bugs.groups.members import ReplacesOnlyWhenStable, WaitsForTheAssignment
from fencepost.impl.broker.parts import Parts
from fencepost.impl.coordinator.states import GroupPhase


def lab_with(part: type) -> GroupLab:
    """A coordinator whose members are handled by this part."""
    return GroupLab(parts=evolve(Parts(), group_membership=part))


def test_a_static_member_that_is_replaced_only_when_stable_stands_beside_itself() -> None:
    """Rule (KAFKA-8500): during a rebalance, too, an instance is one member."""
    lab = lab_with(ReplacesOnlyWhenStable)
    lab.join(1, instance="i")
    lab.join(1, instance="i")
    instances = [member.group_instance_id for member in lab.groups(1)["g"].members.values()]
    assert instances == ["i", "i"]


def test_an_assignment_that_is_waited_for_without_end_blocks_the_group() -> None:
    """Rule (KAFKA-12890): without its timer the group stays in CompletingRebalance while the leader's
    heartbeats go on."""
    lab = lab_with(WaitsForTheAssignment)
    joined = lab.enter(1, "a").answer
    for _ in range(3 * REBALANCE_MS // 1_000):
        lab.heartbeat(1, joined)
        lab.rest(1_000)
    assert lab.groups(1)["g"].phase is GroupPhase.COMPLETING

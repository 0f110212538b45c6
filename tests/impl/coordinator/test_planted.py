"""Protections whose absence a directed history shows, where a swarm would need luck: each is missed when it
is taken away."""

import pytest
from attrs import evolve
from group_lab import REBALANCE_MS, SESSION_MS, GroupLab

from fencepost.bugs.groups.static_member_bugs import (
    KeepsFormerTimeouts,
    ReplacesOnlyWhenStable,
    WaitsForTheAssignment,
)
from fencepost.impl.broker.parts import Parts
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.coordinator.member_requests import GroupMembership


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


@pytest.mark.parametrize("phase", ["PreparingRebalance", "CompletingRebalance", "Stable"])
@pytest.mark.parametrize("part", [GroupMembership, KeepsFormerTimeouts])
def test_a_static_member_that_keeps_its_former_time_outs_outlives_its_session(
    part: type[GroupMembership], phase: str
) -> None:
    """Rule (KAFKA-14009): a static member that is back has the time-outs that it names now, in each phase,
    and at the next coordinator too. Planted: its session lasts as long as that of its former process."""
    longer = (4 * SESSION_MS, 4 * REBALANCE_MS)
    lab = lab_with(part)
    joined = lab.join(1, instance="i", timeouts_ms=longer).answer
    if phase == "Stable":
        lab.sync(1, joined, {joined.member_id: b"mine"}, instance="i")
        lab.rest()
    elif phase == "PreparingRebalance":
        lab.enter(1, "b")
    group = lab.groups(1)["g"]
    assert group.phase == phase
    back = lab.join(1, instance="i")
    lab.rest()
    member = next(one for one in lab.groups(1)["g"].members.values() if one.group_instance_id == "i")
    known = (member.session_timeout_ms, member.rebalance_timeout_ms)
    assert known == ((SESSION_MS, REBALANCE_MS) if part is GroupMembership else longer)
    if phase != "Stable":
        return
    assert back.answer.generation_id == joined.generation_id
    lab.elect(2, 1).rest(SESSION_MS + 500)
    assert (lab.groups(2)["g"].phase is GroupPhase.EMPTY) is (part is GroupMembership)

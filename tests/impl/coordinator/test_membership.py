"""Members and generations at one coordinator, its time-outs, and what survives it."""

from typing import Any

import pytest
from group_lab import REBALANCE_MS, SESSION_MS, GroupLab
from msgspec import structs

from fencepost.impl.coordinator.group_log import GroupLog
from fencepost.impl.coordinator.group_states import GROUP_TRANSITIONS, GroupPhase
from fencepost.traces.kafka_names.outcomes import ErrorCode

NONE = ErrorCode.NONE


def test_a_group_of_one(lab: GroupLab) -> None:
    """Rule (P3): Empty, PreparingRebalance, CompletingRebalance, Stable; an id is given out first (KIP-394),
    the assignment is told once it is durable."""
    told = lab.join(1, client="a").answer
    assert (told.error, told.member_id.startswith("a-")) == (ErrorCode.MEMBER_ID_REQUIRED, True)
    joined = lab.join(1, told.member_id).answer
    assert (joined.error, joined.generation_id, joined.leader) == (NONE, 1, told.member_id)
    assert joined.members == ((told.member_id, b"t"),)
    synced = lab.sync(1, joined, {told.member_id: b"all of it"})
    assert synced.answer is None, "nobody is told what the next coordinator would not know"
    lab.rest()
    assert synced.answer.assignment == b"all of it"
    assert lab.phases() == ["PreparingRebalance", "CompletingRebalance", "Stable"]
    assert lab.heartbeat(1, joined) is NONE
    assert lab.leave(1, joined) is NONE
    assert lab.phases()[-2:] == ["PreparingRebalance", "Empty"]


def test_a_second_member_makes_everybody_join_again(lab: GroupLab) -> None:
    """Rule (P3): a rebalance waits for all members; the generation grows; the leader alone is told who is in
    it."""
    (first,) = lab.stable(1, "a")
    second = lab.enter(1, "b")
    assert second.answer is None
    assert lab.heartbeat(1, first) is ErrorCode.REBALANCE_IN_PROGRESS
    again = lab.join(1, first.member_id)
    assert (again.answer.generation_id, second.answer.generation_id) == (2, 2)
    assert (len(again.answer.members), len(second.answer.members)) == (2, 0)
    waits = lab.sync(1, second.answer)
    lab.sync(1, again.answer, {first.member_id: b"x", second.answer.member_id: b"y"})
    lab.rest()
    assert waits.answer.assignment == b"y"
    assert lab.heartbeat(1, first) is ErrorCode.ILLEGAL_GENERATION


def test_who_does_not_join_in_time_is_out(lab: GroupLab) -> None:
    """Rule (P3): the rebalance time-out ends PreparingRebalance without those who have not joined, if their
    session lasts so long."""
    (first,) = lab.stable(1, "a")
    second = lab.enter(1, "b")
    for _ in range(REBALANCE_MS // 1_000):
        lab.rest(1_000)
        lab.heartbeat(1, first)
    lab.rest(300)
    assert (second.answer.generation_id, second.answer.leader) == (2, second.answer.member_id)
    assert lab.heartbeat(1, first) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_out(lab: GroupLab) -> None:
    """Rule (P3): a session that ends in silence is a member that left."""
    first, second = lab.stable(1, "a", "b")
    for _ in range(SESSION_MS // 1_000 + 1):
        assert lab.heartbeat(1, first) in (NONE, ErrorCode.REBALANCE_IN_PROGRESS)
        lab.rest(1_000)
    assert lab.heartbeat(1, second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(lab.groups(1)["g"].members) == [first.member_id]


def test_an_assignment_that_never_comes_is_not_waited_for(lab: GroupLab) -> None:
    """Rule (KAFKA-12890): CompletingRebalance ends by a time-out, though the leader's heartbeats go on."""
    joined = lab.enter(1, "a").answer
    for _ in range(REBALANCE_MS // 1_000):
        assert lab.heartbeat(1, joined) is NONE
        lab.rest(1_000)
    lab.rest(300)
    assert lab.groups(1)["g"].phase is GroupPhase.EMPTY


def test_an_empty_group_waits_for_more_members() -> None:
    """Rule (KIP-134): the first rebalance is delayed while members come, so that they are in one
    generation."""
    lab = GroupLab(groups={"initial_rebalance_delay_ms": 1_000})
    first = lab.enter(1, "a")
    lab.rest(600)
    second = lab.enter(1, "b")
    lab.rest(600)
    assert first.answer is None
    lab.rest(1_000)
    assert (first.answer.generation_id, second.answer.generation_id) == (1, 1)


def test_the_generation_survives_the_coordinator(lab: GroupLab) -> None:
    """Rule (P4): the next coordinator knows members, generation and assignment; a generation that was not
    written is not known."""
    (first,) = lab.stable(1, "a")
    lab.elect(2, 1).rest()
    assert lab.heartbeat(1, first) is ErrorCode.NOT_COORDINATOR
    assert lab.heartbeat(2, first) is NONE
    assert lab.sync(2, first).answer.assignment == first.member_id.encode()
    unwritten = lab.join(2, first.member_id).answer
    assert unwritten.generation_id == 2
    lab.elect(1, 2).rest()
    assert lab.heartbeat(1, unwritten) is ErrorCode.ILLEGAL_GENERATION
    assert lab.heartbeat(1, first) is NONE


@pytest.mark.parametrize("phase", ["PreparingRebalance", "CompletingRebalance"])
def test_who_waits_is_told_when_the_coordinator_goes(phase: str, lab: GroupLab) -> None:
    """Rule (P3): JoinGroup and SyncGroup that wait are answered NOT_COORDINATOR when the partition moves."""
    first, second = lab.stable(1, "a", "b")
    waits = lab.join(1, first.member_id)
    if phase == "CompletingRebalance":
        lab.join(1, second.member_id)
        waits = lab.sync(1, waits.answer)
    assert lab.groups(1)["g"].phase == phase
    lab.elect(2, 1).rest()
    assert waits.answer.error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("leads_on", [False, True])
def test_a_static_leader_comes_back_without_a_rebalance(leads_on: bool, lab: GroupLab) -> None:
    """Rule (KIP-345, KAFKA-10284): the same instance under a new id keeps its assignment; its old id is
    fenced, at the next coordinator too. Since version 9 (KIP-814) it leads on: it hears who is in the group,
    and that nothing is to be assigned."""
    before = lab.join(1, instance="i").answer
    lab.sync(1, before, {before.member_id: b"mine"}, instance="i")
    lab.rest()
    back = lab.join(1, instance="i", may_skip_assignment=leads_on)
    lab.rest()
    after = back.answer
    assert (after.error, after.generation_id, after.skip_assignment) == (NONE, 1, leads_on)
    assert (after.leader == after.member_id, len(after.members)) == (leads_on, int(leads_on))
    assert lab.sync(1, after, instance="i").answer.assignment == b"mine"
    assert lab.heartbeat(1, before, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    lab.elect(2, 1).rest()
    assert lab.heartbeat(2, before, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert lab.heartbeat(2, after, instance="i") is NONE


def test_each_process_of_a_static_member_waits_for_its_own_id(
    monkeypatch: pytest.MonkeyPatch, lab: GroupLab
) -> None:
    """Rule (KAFKA-10284): a third process is neither answered nor refused when the second one's id is in the
    log, or is not."""
    first = lab.join(1, instance="i").answer
    lab.sync(1, first, {first.member_id: b"mine"}, instance="i")
    lab.rest()
    written: list[Any] = []
    monkeypatch.setattr(GroupLog, "store", lambda log, group, epoch, assignments, done: written.append(done))
    second, third = lab.join(1, instance="i"), lab.join(1, instance="i")
    fourth = lab.join(1, instance="i")
    assert second.answer.error is third.answer.error is ErrorCode.FENCED_INSTANCE_ID
    of_second, of_third, of_fourth = written
    of_second(NONE, 3)
    of_third(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    member = next(iter(lab.groups(1)["g"].members.values()))
    assert fourth.answer is None and member.join is not None
    of_fourth(NONE, 5)
    assert member.join is None


@pytest.mark.parametrize("phase", ["PreparingRebalance", "CompletingRebalance"])
def test_a_static_member_takes_its_own_place_in_any_phase(phase: str, lab: GroupLab) -> None:
    """Rule (KAFKA-8500): never two members of one instance."""
    first = lab.join(1, instance="i")
    assert lab.groups(1)["g"].phase is GroupPhase.COMPLETING
    if phase == "PreparingRebalance":
        lab.enter(1, "b")
        assert lab.groups(1)["g"].phase is GroupPhase.PREPARING
    lab.join(1, instance="i")
    members = lab.groups(1)["g"].members.values()
    assert [member.group_instance_id for member in members].count("i") == 1
    assert first.answer.member_id not in lab.groups(1)["g"].members


def test_an_operator_removes_a_static_member_by_its_name_alone(lab: GroupLab) -> None:
    """Rule (KIP-345): LeaveGroup with an instance id and no member id means whoever has it; a wrong member id
    stays fenced."""
    joined = lab.join(1, instance="i").answer
    assert joined.instances == ((joined.member_id, "i"),), "the leader learns who is static"
    other = structs.replace(joined, member_id="other")
    assert lab.leave(1, other, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert lab.leave(1, instance="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.leave(1, instance="i") is NONE
    assert not lab.groups(1)["g"].members and not lab.groups(1)["g"].static


def test_protocols_that_do_not_fit_are_refused(lab: GroupLab) -> None:
    """Rule (P3): every member knows one common assignor; a group id and a session time-out within bounds are
    demanded."""
    lab.stable(1, "a")
    assert lab.join(1, protocols=("sticky",)).answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert lab.join(1, group="").answer.error is ErrorCode.INVALID_GROUP_ID
    strict = GroupLab(groups={"min_session_timeout_ms": SESSION_MS + 1})
    assert strict.join(1).answer.error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_the_common_protocol_with_most_votes_wins(lab: GroupLab) -> None:
    """Rule (P3): each member votes for the first one that everybody knows."""
    first = lab.join(1, client="a").answer
    second = lab.join(1, client="b").answer
    lab.join(1, first.member_id, protocols=("sticky", "range"))
    lab.join(1, second.member_id, protocols=("round_robin", "range"))
    again = lab.join(1, first.member_id, protocols=("sticky", "range"))
    assert again.answer.protocol_name == "range"


def test_an_id_that_never_joins_blocks_nobody(lab: GroupLab) -> None:
    """Rule (KAFKA-7909): a rebalance waits for ids that were given out, but no longer than their session."""
    lab.join(1, client="lost")
    waits = lab.enter(1, "a")
    assert waits.answer is None
    lab.rest(SESSION_MS + 100)
    assert waits.answer.error is NONE


def test_every_phase_is_reached_and_left() -> None:
    """Rule (P3): the table has all five states; only Dead ends."""
    assert set(GROUP_TRANSITIONS) == set(GroupPhase)
    assert [phase for phase, behind in GROUP_TRANSITIONS.items() if not behind] == [GroupPhase.DEAD]

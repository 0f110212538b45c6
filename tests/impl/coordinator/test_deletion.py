"""DeleteGroups and OffsetDelete at a coordinator (KIP-229, KIP-496), and what DescribeGroups says of
members."""

from typing import Any

import pytest
from attrs import evolve
from group_lab import T0, T1, Asked, GroupLab

from fencepost.impl.coordinator.committed_offsets import EXPIRY_TIMER, GroupOffsets
from fencepost.impl.core.core_interface import TimerFired
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.consumer_protocol import Subscription, encode_subscription
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.run.simulated.observed_groups import GroupFacts
from fencepost.traces.events import OFFSET_DELETED, Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.kafka_names.outcomes import ErrorCode

E = ErrorCode


def known(lab: GroupLab, *keys: TopicPartition) -> GroupLab:
    """A lab of which metadata knows these partitions."""
    for key in keys:
        lab.lead(1, 0, isr=(1,), replicas=(1,), live=(1, 2), key=key)
    return lab.rest()


def delete(lab: GroupLab, node: int = 1, group: str = "g") -> Asked:
    """DeleteGroups of one group."""
    return lab.send(node, kafka.DeleteGroupRequest(correlation_id=lab.number(), group_id=group))


def forget(lab: GroupLab, *keys: TopicPartition, node: int = 1, group: str = "g") -> Asked:
    """OffsetDelete."""
    return lab.send(
        node, kafka.OffsetDeleteRequest(correlation_id=lab.number(), group_id=group, partitions=keys)
    )


def described(lab: GroupLab, node: int = 1, group: str = "g") -> Any:
    """DescribeGroups of one group."""
    return lab.send(node, kafka.DescribeGroupRequest(correlation_id=lab.number(), group_id=group)).answer


# ---- groups


@pytest.mark.parametrize("with_members_before", [False, True])
def test_an_empty_group_is_deleted_with_its_offsets(with_members_before, lab):
    """Rule (KIP-229): the answer comes when it is durable; the next coordinator knows neither the group nor
    its offsets."""
    if with_members_before:
        for joined in lab.stable(1, "c"):
            lab.leave(1, joined)
        lab.rest()
    lab.commit_and_rest(1, 7)
    asked = delete(lab)
    assert asked.answer is None
    lab.rest()
    assert asked.answer.error is E.NONE
    assert lab.committed(1) == -1 and lab.groups(1) == {} and described(lab).state == "Dead"
    lab.elect(2, 1).rest()
    assert lab.committed(2) == -1 and lab.groups(2) == {}
    assert [event.cause for event in lab.recorded(Name.GROUP_OFFSET_EXPIRED)] == [OFFSET_DELETED]
    assert len(lab.recorded(Name.GROUP_REMOVED, 1)) == with_members_before


def test_groups_that_are_not_deleted(lab):
    """Rule (KIP-229): one that has members stays; one that is not there is not found; another broker does not
    coordinate it."""
    lab.stable(1, "c")
    assert delete(lab).answer.error is E.NON_EMPTY_GROUP
    assert delete(lab, group="none").answer.error is E.GROUP_ID_NOT_FOUND
    assert delete(lab, node=2).answer.error is E.NOT_COORDINATOR
    assert described(lab).state == "Stable"


def test_nobody_joins_a_group_that_is_being_deleted(lab):
    """Rule (KIP-229): a member that comes meanwhile is sent away for a moment; then it begins a new group of
    that name."""
    lab.commit_and_rest(1, 7)
    asked = delete(lab)
    assert lab.join(1).answer.error is E.COORDINATOR_NOT_AVAILABLE
    assert delete(lab).answer.error is E.GROUP_ID_NOT_FOUND
    lab.rest()
    assert asked.answer.error is E.NONE
    assert lab.join(1).answer.error is E.MEMBER_ID_REQUIRED


@pytest.mark.parametrize("planted", [False, True])
def test_a_deletion_that_could_not_be_written_is_made_up_for(planted, monkeypatch):
    """Rule: the client hears that it failed; at the next look for expired offsets all of the group goes, so
    that no part of it comes back. Planted: without the offsets' tombstones a later coordinator finds them
    again."""
    if planted:

        def without_offsets(self, group, done=lambda error, base: None):
            kept, group.offsets = group.offsets, {}
            remove(self, group, done)
            group.offsets = kept

        remove = GroupOffsets.remove
        monkeypatch.setattr(GroupOffsets, "remove", without_offsets)
    lab = GroupLab()
    for joined in lab.stable(1, "c"):
        lab.leave(1, joined)
    lab.commit_and_rest(1, 7)
    strict = evolve(lab.options.topics[0], min_insync_replicas=2)
    lab.core(1).broker_context.configured[OFFSETS_TOPIC] = strict
    (partition,) = lab.core(1).replicas.partitions.values()
    isr, partition.isr = partition.isr, (1,)
    assert delete(lab).answer.error is E.COORDINATOR_NOT_AVAILABLE
    lab.core(1).broker_context.configured.clear()
    partition.isr = isr
    lab.step(1, TimerFired(EXPIRY_TIMER))
    lab.rest()
    lab.elect(2, 1).rest()
    assert (lab.committed(2) == -1) is not planted


# ---- offsets


def test_offsets_are_deleted_one_by_one():
    """Rule (KIP-496): those named go, for good; one that there was not is as good as gone; the others
    stay."""
    lab = known(GroupLab(), T0, T1)
    lab.commit(1, 7)
    lab.commit_and_rest(1, 9, key=T1)
    asked = forget(lab, T1, TopicPartition("none", 0))
    assert asked.answer is None
    lab.rest()
    assert asked.answer.error is E.NONE
    assert dict(asked.answer.results) == {T1: E.NONE, TopicPartition("none", 0): E.UNKNOWN_TOPIC_OR_PARTITION}
    assert (lab.committed(1), lab.committed(1, T1)) == (7, -1)
    again = forget(lab, T1).answer
    assert dict(again.results) == {T1: E.NONE}
    lab.elect(2, 1).rest()
    assert (lab.committed(2), lab.committed(2, T1)) == (7, -1)


def test_an_offset_that_is_committed_meanwhile_stays():
    """Rule (KIP-496): of a deletion and a commit the one later in the log counts."""
    lab = known(GroupLab(), T0)
    lab.commit_and_rest(1, 7)
    asked = forget(lab, T0)
    lab.commit_and_rest(1, 8)
    assert asked.answer.error is E.NONE and lab.committed(1) == 8


def test_offsets_of_what_members_consume_stay():
    """Rule (KIP-496): a partition of a topic that the group consumes keeps its offset, others need not; a
    group of another kind with members keeps all."""
    lab = known(GroupLab(), T0, TopicPartition("u", 0))
    subscription = encode_subscription(Subscription(topics=("t",)))
    member = lab.join(1).answer.member_id
    joined = lab.join(1, member, subscription=subscription).answer
    lab.sync(1, joined, {member: b""})
    lab.rest()
    lab.commit(1, 7, joined)
    lab.commit_and_rest(1, 9, joined, key=TopicPartition("u", 0))
    asked = forget(lab, T0, TopicPartition("u", 0))
    lab.rest()
    assert dict(asked.answer.results) == {T0: E.GROUP_SUBSCRIBED_TO_TOPIC, TopicPartition("u", 0): E.NONE}
    assert lab.committed(1) == 7 and lab.committed(1, TopicPartition("u", 0)) == -1
    lab.groups(1)["g"].protocol_type = "connect"
    assert forget(lab, T0).answer.error is E.NON_EMPTY_GROUP


def test_offsets_of_groups_that_there_are_not():
    """Rule (KIP-496): an error of the group is the answer's own."""
    lab = known(GroupLab(), T0)
    assert forget(lab, T0).answer.error is E.GROUP_ID_NOT_FOUND
    assert forget(lab, T0, group="").answer.error is E.INVALID_GROUP_ID
    assert forget(lab, T0, node=2).answer.error is E.NOT_COORDINATOR


def test_the_judge_of_offsets_is_told_of_a_deletion():
    """Rule: an offset that somebody had deleted may be read back as none, whenever that was; the record says
    so, where an offset that expired too early does not."""
    lab = known(GroupLab(), T0)
    lab.commit_and_rest(1, 7)
    forget(lab, T0)
    lab.rest()
    facts = GroupFacts(10**18)
    for event in lab.events:
        facts.learn(event)
    (row,) = facts.rows
    assert (row.group, row.topic, row.partition, row.offset) == ("g", "t", 0, None)


# ---- describe


def test_members_are_described_as_they_joined(lab):
    """Rule (KafkaApis): while the group is stable, with subscription, assignment and where they are; else
    without."""
    request = kafka.JoinGroupRequest(
        correlation_id=lab.number(),
        group_id="g",
        client_id="c",
        session_timeout_ms=3_000,
        rebalance_timeout_ms=5_000,
        member_id="",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=(("range", b"sub"),),
        client_host="/127.0.0.1",
    )
    joined = lab.send(1, request).answer
    (member,) = described(lab).members
    assert (member.subscription, member.assignment, member.client_host) == (b"", b"", "/127.0.0.1")
    lab.sync(1, joined, {joined.member_id: b"mine"}, instance="i")
    lab.rest()
    (member,) = described(lab).members
    assert (member.subscription, member.assignment, member.group_instance_id) == (b"sub", b"mine", "i")
    lab.elect(2, 1).rest()
    (member,) = described(lab, node=2).members
    assert (member.subscription, member.client_host) == (b"sub", "/127.0.0.1")

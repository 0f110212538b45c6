"""Cooperative rebalances (KIP-429), as one member does them."""

from hypothesis import given, settings

from fencepost.impl.client.consumer.assignors import assign_sticky, given_up
from fencepost.impl.messages.consumer_protocol import Subscription, decode_subscription
from fencepost.impl.messages.group_api import (
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import COOPERATIVE, LOST, Function
from tests.impl.client.consumer.test_assignors import COUNTS, MEMBERS, told
from tests.impl.client.consumer_lab import T0, T1, ConsumerLab

REBALANCE = [ErrorCode.REBALANCE_IN_PROGRESS]


def lab_of(**options: str) -> ConsumerLab:
    """A member that has both partitions and has read them."""
    lab = ConsumerLab(assignor="cooperative_sticky", **options)
    lab.diary.entries.clear()
    lab.asked.clear()
    return lab


def owned(lab: ConsumerLab) -> list[tuple[TopicPartition, ...]]:
    """What each JoinGroup said that the member has."""
    told = [decode_subscription(request.protocols[0][1]) for request in lab.requests(JoinGroupRequest)]
    return [one.owned for one in told if one is not None]


def test_a_member_gives_up_only_what_it_loses_and_joins_again_at_once() -> None:
    """Rule (KIP-429): it tells what it has, commits and revokes what it loses, and joins again; what stays is
    neither revoked nor read from a committed offset again."""
    lab = lab_of(commit="auto")
    lab.share, lab.errors[HeartbeatRequest] = (T1,), list(REBALANCE)
    lab.advance(3_300)
    assert lab.diary.entries == [("revoked", (T0,)), ("assigned", ()), ("assigned", ())]
    assert owned(lab) == [(T0, T1), (T1,)]
    commits = [{each.partition for each in one.offsets} for one in lab.requests(OffsetCommitRequest)]
    assert commits[:2] == [{T0, T1}, {T0}]
    assert not lab.requests(OffsetFetchRequest)
    lab.logs[T1] = 3
    lab.advance(200)
    assert lab.diary.got() == [("t-1", 2)]
    assert {row.argument for row in lab.rows if row.function is Function.JOIN} == {COOPERATIVE}


def test_a_member_reads_on_while_its_group_rebalances_and_commits_nothing() -> None:
    """Rule (KIP-429): until the answer to SyncGroup its partitions are its own; a commit would be of a
    generation that is over (Kafka's RebalanceInProgressException)."""
    lab = lab_of()
    lab.errors |= {HeartbeatRequest: list(REBALANCE), JoinGroupRequest: [None]}
    lab.advance(3_100)
    lab.logs[T0] = 4
    lab.advance(200)
    assert lab.diary.got() == [("t-0", 3)]
    assert lab.rows[-1].generation == 1
    lab.use(lambda consumer: consumer.commit_sync({T0: 4}))
    assert lab.diary.entries[-1] == ("committed", ErrorCode.REBALANCE_IN_PROGRESS)
    assert not lab.requests(OffsetCommitRequest)


def test_a_member_that_missed_a_generation_has_lost_what_it_had() -> None:
    """Rule (KAFKA-12983): others may have had its partitions; it begins at what they committed."""
    for missed in (True, False):
        lab = lab_of()
        lab.generation += missed
        lab.errors[HeartbeatRequest] = list(REBALANCE)
        lab.advance(3_300)
        assert [("revoked", (T0, T1)) in lab.diary.entries, bool(lab.requests(OffsetFetchRequest))] == [
            missed,
            missed,
        ]
        assert any(row.argument == LOST for row in lab.rows) == missed


def test_what_was_claimed_and_lost_is_set_free() -> None:
    """Rule (KIP-429): the leader has withheld what a JoinGroup named, though its member lost it since: that
    member joins again, or nobody ever gets it."""
    lab = lab_of()
    lab.generation += 1
    lab.share, lab.errors[HeartbeatRequest] = (T1,), list(REBALANCE)
    lab.advance(3_300)
    assert owned(lab) == [(T0, T1), (T1,)]


def test_one_eager_assignor_makes_a_member_eager() -> None:
    """Rule (KIP-429): a member that also names an eager assignor, as in a rolling upgrade, gives everything
    up before it joins, and tells the cooperative assignor that it has nothing."""
    lab = lab_of(second_assignor="range")
    lab.errors[HeartbeatRequest] = list(REBALANCE)
    lab.advance(3_300)
    assert lab.diary.entries[0] == ("revoked", (T0, T1))
    assert owned(lab) == [()]


@settings(max_examples=60)
@given(before=MEMBERS, after=MEMBERS, counts=COUNTS)
def test_nobody_gets_what_another_member_has(before: dict, after: dict, counts: dict) -> None:
    """Rule (KAFKA-15170): what moves is withheld, and free in the next rebalance, which completes the
    assignment."""
    had = assign_sticky(told(before), counts)
    now = {member: Subscription(topics=topics, owned=had.get(member, ())) for member, topics in after.items()}
    wanted = assign_sticky(now, counts)
    first = given_up(now, wanted)
    for member, keys in first.items():
        others = {key for other in now for key in had.get(other, ()) if other != member}
        assert not others & set(keys)
        assert set(first[member]) <= set(wanted[member])
    then = {member: Subscription(topics=after[member], owned=keys) for member, keys in first.items()}
    second = assign_sticky(then, counts)
    assert given_up(then, second) == second or any(
        set(first[member]) - set(second[member]) for member in first
    )

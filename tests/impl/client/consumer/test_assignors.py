"""Assignors: every partition has one owner, shares are equal, and a sticky one moves no more than it must."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.client.consumer.assignors import (
    ASSIGNORS,
    Assignment,
    assign_range,
    assign_round_robin,
    assign_sticky,
)
from fencepost.impl.messages.consumer_protocol import Subscription
from fencepost.impl.messages.topic_partition import TopicPartition

TOPICS = ("a", "b", "c")
MEMBERS = st.dictionaries(
    st.sampled_from(["m1", "m2", "m3", "m4", "m5"]),
    st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3, unique=True).map(tuple),
    min_size=1,
)
COUNTS = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})


def told(members: dict[str, tuple[str, ...]], owned: Assignment | None = None) -> dict[str, Subscription]:
    return {
        member: Subscription(topics=topics, owned=(owned or {}).get(member, ()))
        for member, topics in members.items()
    }


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=40)
@given(members=MEMBERS, counts=COUNTS)
def test_every_partition_has_one_owner_who_wants_it(name: str, members: dict, counts: dict) -> None:
    """Rule (P5): each partition of a topic that anybody subscribes to goes to exactly one of those members,
    and nothing else is given out."""
    shares = ASSIGNORS[name](told(members), counts)
    given_out = [key for keys in shares.values() for key in keys]
    wanted = {topic for topics in members.values() for topic in topics}
    expected = {TopicPartition(topic, number) for topic in wanted for number in range(counts[topic])}
    assert sorted(given_out) == sorted(expected)
    assert all(key.topic in members[member] for member, keys in shares.items() for key in keys)
    assert set(shares) == set(members)


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=40)
@given(members=MEMBERS, counts=COUNTS, order=st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(name: str, members: dict, counts: dict, order) -> None:
    """Rule (P5): whoever leads, and in whatever order he hears of the others, the assignment is the same."""
    shuffled = list(members.items())
    order.shuffle(shuffled)
    assert ASSIGNORS[name](told(members), counts) == ASSIGNORS[name](told(dict(shuffled)), counts)


@pytest.mark.parametrize("assign", [assign_round_robin, assign_sticky])
@settings(max_examples=40)
@given(count=st.integers(1, 5), partitions=st.integers(0, 20))
def test_equal_subscriptions_get_equal_shares(assign, count: int, partitions: int) -> None:
    """Rule (P5): with one subscription for all, shares differ by one partition at most; range keeps that
    within each topic only."""
    members = {f"m{number}": ("a", "b") for number in range(count)}
    for chosen, counts in ((assign, {"a": partitions, "b": 3}), (assign_range, {"a": partitions})):
        sizes = [len(keys) for keys in chosen(told(members), counts).values()]
        assert max(sizes) - min(sizes) <= 1


@settings(max_examples=40)
@given(members=MEMBERS, counts=COUNTS, leaver=st.integers(0, 4))
def test_who_stays_keeps_everything_when_somebody_leaves(members: dict, counts: dict, leaver: int) -> None:
    """Rule (P5, sticky): a leaving member's partitions are given out; those who stay lose none while shares
    are equal enough without."""
    before = assign_sticky(told(members), counts)
    gone = sorted(members)[leaver % len(members)]
    staying = {member: topics for member, topics in members.items() if member != gone}
    if not staying:
        return
    after = assign_sticky(told(staying, before), counts)
    if len({tuple(sorted(topics)) for topics in members.values()}) == 1:
        assert all(set(before[member]) <= set(after[member]) for member in staying)


@settings(max_examples=40)
@given(count=st.integers(1, 4), partitions=st.integers(1, 20))
def test_a_newcomer_takes_only_its_share(count: int, partitions: int) -> None:
    """Rule (P5, sticky): when a member joins, only as many partitions move as it gets."""
    members = {f"m{number}": ("a",) for number in range(count)}
    before = assign_sticky(told(members), {"a": partitions})
    after = assign_sticky(told(members | {"new": ("a",)}, before), {"a": partitions})
    moved = sum(len(set(before[member]) - set(after[member])) for member in members)
    assert moved == len(after["new"])


def test_claims_that_contradict_each_other_count_for_nobody() -> None:
    """Rule (P5, sticky): of two members that say they owned the same partition, after a generation was
    missed, none keeps it by that."""
    both = {member: Subscription(topics=("a",), owned=(TopicPartition("a", 0),)) for member in ("m1", "m2")}
    shares = assign_sticky(both, {"a": 1})
    assert sorted(len(keys) for keys in shares.values()) == [0, 1]

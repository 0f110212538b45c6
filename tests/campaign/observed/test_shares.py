"""What the leader of a generation assigns: each strategy's promise, and what breaks it."""

from typing import Any

import pytest

from fencepost.campaign.observed.shares import places_in, refuted, subscription_in
from fencepost.impl.client.consumer.assignors import ASSIGNORS
from fencepost.impl.messages.consumer_protocol import (
    Subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.impl.messages.topic_partition import TopicPartition

T = [TopicPartition("t", number) for number in range(7)]


def subscriptions(owned: dict[str, list[TopicPartition]]) -> dict[str, Subscription]:
    return {name: Subscription(topics=("t",), owned=tuple(keys)) for name, keys in owned.items()}


def said(strategy: str, owned: dict[str, list[TopicPartition]], shares: dict[str, Any]) -> list[Any]:
    """What the rules say, by way of the bytes that members send."""
    subscribed = {
        name: subscription_in(encode_subscription(one)) for name, one in subscriptions(owned).items()
    }
    read = {name: places_in(encode_assignment(tuple(keys))[2:])[0] for name, keys in shares.items()}
    return list(refuted(strategy, subscribed, read, {"t": 7}))


@pytest.mark.parametrize("strategy", sorted(ASSIGNORS))
def test_what_the_client_assigns_is_right(strategy: str) -> None:
    """Rule (ANSWERED): and with one partition less, twice, or at another member it is refuted."""
    owned = {"a": T[:2], "b": T[2:6], "c": [T[6]]}
    shares = {name: list(keys) for name, keys in ASSIGNORS[strategy](subscriptions(owned), {"t": 7}).items()}
    assert said(strategy, owned, shares) == []
    first, last = min(shares), max(shares)
    less = {**shares, first: shares[first][1:]}
    twice = {**shares, last: [*shares[last], shares[first][0]]}
    moved = {**less, last: [*shares[last], shares[first][0]]}
    assert all(said(strategy, owned, one) for one in (less, twice))
    unequal = {name: [] if name == first else keys for name, keys in moved.items()}
    unequal[last] = sorted({*T} - {key for name, keys in unequal.items() if name != last for key in keys})
    assert said(strategy, owned, unequal)


def test_a_sticky_share_keeps_what_it_had() -> None:
    """Rule (ANSWERED): partitions do not move without a need."""
    owned = {"a": T[:4], "b": T[4:]}
    assert said("sticky", owned, owned) == []
    assert said("sticky", owned, {"a": T[3:], "b": T[:3]})
    assert said("sticky", {"a": T, "b": []}, {"a": T[:4], "b": T[4:]}) == []

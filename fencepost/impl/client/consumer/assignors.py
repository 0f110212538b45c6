"""Assignors: how the leader of a generation assigns partitions (P5).

Owns the strategies as functions of the members' subscriptions and the topics' partitions. Must not know
groups. Each assigns every partition of a subscribed topic to exactly one member that subscribes to it,
independent of the order of members. What the cooperative one moves has to be given up first (KIP-429).
"""

from collections.abc import Callable, Mapping

from fencepost.impl.messages.consumer_protocol import Subscription
from fencepost.impl.messages.topic_partition import TopicPartition

Subscriptions = Mapping[str, Subscription]
"""Subscriptions by member id."""
Partitions = Mapping[str, int]
"""The number of partitions of each topic."""
Assignment = dict[str, tuple[TopicPartition, ...]]


def _wanted(members: Subscriptions, partitions: Partitions) -> list[str]:
    topics = {topic for subscription in members.values() for topic in subscription.topics}
    return sorted(topic for topic in topics if partitions.get(topic, 0))


def _assignment(members: Subscriptions, owner: Mapping[TopicPartition, str]) -> Assignment:
    shares: dict[str, list[TopicPartition]] = {member: [] for member in sorted(members)}
    for key in sorted(owner):
        shares[owner[key]].append(key)
    return {member: tuple(keys) for member, keys in shares.items()}


def assign_range(members: Subscriptions, partitions: Partitions) -> Assignment:
    """Topic by topic: contiguous partitions for each member, one more for the first ones."""
    owner = {}
    for topic in _wanted(members, partitions):
        takers = sorted(member for member, subscribed in members.items() if topic in subscribed.topics)
        share, more = divmod(partitions[topic], len(takers))
        number = 0
        for place, member in enumerate(takers):
            for _ in range(share + (place < more)):
                owner[TopicPartition(topic, number)] = member
                number += 1
    return _assignment(members, owner)


def assign_round_robin(members: Subscriptions, partitions: Partitions) -> Assignment:
    """All partitions in turn, each to the next member that subscribes to it."""
    owner, order, turn = {}, sorted(members), 0
    for topic in _wanted(members, partitions):
        for number in range(partitions[topic]):
            while topic not in members[order[turn % len(order)]].topics:
                turn += 1
            owner[TopicPartition(topic, number)] = order[turn % len(order)]
            turn += 1
    return _assignment(members, owner)


def assign_sticky(members: Subscriptions, partitions: Partitions) -> Assignment:
    """Each member keeps its partitions, and the others go to the members with the fewest. Then partitions
    move one at a time while that balances the shares."""
    everything = [
        TopicPartition(topic, number)
        for topic in _wanted(members, partitions)
        for number in range(partitions[topic])
    ]
    owner = _kept(members, everything)
    load = {member: sum(kept == member for kept in owner.values()) for member in sorted(members)}

    def least(key: TopicPartition) -> str:
        return min(
            (member for member in load if key.topic in members[member].topics),
            key=lambda member: load[member],
        )

    for key in everything:
        if key not in owner:
            owner[key] = least(key)
            load[owner[key]] += 1
    moved = True
    while moved:  # each move reduces the sum of the squares of the shares
        moved = False
        for key in everything:
            best = least(key)
            if load[owner[key]] > load[best] + 1:
                load[owner[key]] -= 1
                load[best] += 1
                owner[key], moved = best, True
    return _assignment(members, owner)


def _kept(members: Subscriptions, everything: list[TopicPartition]) -> dict[TopicPartition, str]:
    """The previous owner of each partition, if it still subscribes and no other member claims the
    partition."""
    claims: dict[TopicPartition, list[str]] = {}
    for member in sorted(members):
        for key in members[member].owned:
            if key.topic in members[member].topics:
                claims.setdefault(key, []).append(member)
    existing = set(everything)
    return {key: who[0] for key, who in sorted(claims.items()) if len(who) == 1 and key in existing}


def given_up(members: Subscriptions, shares: Assignment) -> Assignment:
    """The shares without what another member has at this time."""
    owners: dict[TopicPartition, set[str]] = {}
    for member, subscription in members.items():
        for key in subscription.owned:
            owners.setdefault(key, set()).add(member)
    return {
        member: tuple(key for key in keys if not owners.get(key, set()) - {member})
        for member, keys in shares.items()
    }


COOPERATIVE_STICKY = "cooperative_sticky"
ASSIGNORS: dict[str, Callable[[Subscriptions, Partitions], Assignment]] = {
    "range": assign_range,
    "round_robin": assign_round_robin,
    "sticky": assign_sticky,
    COOPERATIVE_STICKY: assign_sticky,
}

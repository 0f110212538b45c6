"""What the leader of a generation must assign: each partition once, as its strategy says.

Owns the strategies' promises in their plainest form, and a reader of subscriptions and assignments. Shares no
code with the client's own. Must not know when a SyncGroup arrives.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fencepost.campaign.observed.justified import Reason
from fencepost.traces.plan import Plan

COMPLETING = "CompletingRebalance"
Place = tuple[str, int]
"""Topic and partition number."""


def wrong_shares(core: Any, plan: Plan, request: Any) -> Iterator[Reason]:
    """What is wrong with the assignments in a SyncGroup.

    Args:
        core: the coordinator, before it handles the request.
        plan: of the run.
        request: of the leader; one of a member that does not lead has none.

    Yields:
        of what, expected, seen.
    """
    group = core.groups.table.groups.get(request.group_id)
    if not request.assignments or group is None or group.phase != COMPLETING:
        return
    if request.generation_id != group.generation or request.member_id != group.leader:
        return
    subscribed = {}
    for member in group.members.values():
        subscribed[member.member_id] = subscription_in(dict(member.protocols).get(group.protocol, b""))
    shares = {name: places_in(data[2:])[0] if data else [] for name, data in request.assignments}
    if any(member.group_instance_id is not None for member in group.members.values()):
        pass  # a static member that came back has another id since
    elif sorted(shares) != sorted(subscribed):
        yield "members", sorted(subscribed), sorted(shares)
    if sorted(shares) == sorted(subscribed):
        yield from refuted(group.protocol, subscribed, shares, _least(plan))


def _least(plan: Plan) -> dict[str, int]:
    """The partitions that each topic has at least. A topic that comes or goes has none for a while."""
    if any(one.kind in ("create_topic", "delete_topic") for one in plan.faults):
        return {}
    return {topic.name: topic.partitions for topic in plan.cluster.topics if not topic.created_later}


def refuted(
    strategy: str | None,
    subscribed: Mapping[str, tuple[list[str], list[Place]]],
    shares: Mapping[str, list[Place]],
    least: Mapping[str, int],
) -> Iterator[Reason]:
    """What is wrong with the shares of members.

    Args:
        strategy: range, round_robin or sticky.
        subscribed: by member: its topics, and what it owned.
        shares: by member.
        least: the partitions that a topic has at least.

    Yields:
        of what, expected, seen.
    """
    given = sorted(place for share in shares.values() for place in share)
    topics = sorted({topic for names, _ in subscribed.values() for topic in names})
    for topic in topics:
        numbers = [number for name, number in given if name == topic]
        count = max(len(set(numbers)), least.get(topic, 0))
        if numbers != list(range(count)):
            yield f"partitions of {topic}", f"0 to {count - 1}, each once", numbers
            return
    for name, share in shares.items():
        if not {topic for topic, _ in share} <= set(subscribed[name][0]):
            yield f"share of {name}", f"of {subscribed[name][0]}", share
    if len({tuple(sorted(names)) for names, _ in subscribed.values()}) > 1:
        return
    expected = _share_of(strategy, sorted(shares), topics, given)
    for name, share in sorted(shares.items()) if strategy != "sticky" else ():
        if sorted(share) != expected.get(name, []):
            yield f"{strategy} share of {name}", expected.get(name, []), sorted(share)
    if strategy == "sticky":
        yield from _sticky(subscribed, shares, given)


def _share_of(
    strategy: str | None, members: list[str], topics: list[str], given: list[Place]
) -> dict[str, list[Place]]:
    """Range: of each topic, the first members have one more. Round robin: all partitions in turn."""
    expected: dict[str, list[Place]] = {name: [] for name in members}
    if strategy == "round_robin":
        for turn, place in enumerate(given):
            expected[members[turn % len(members)]].append(place)
        return expected
    for topic in topics:
        rest = [place for place in given if place[0] == topic]
        for before, name in enumerate(members):
            size = -(-len(rest) // (len(members) - before))
            expected[name] += rest[:size]
            rest = rest[size:]
    return expected


def _sticky(
    subscribed: Mapping[str, tuple[list[str], list[Place]]],
    shares: Mapping[str, list[Place]],
    given: list[Place],
) -> Iterator[Reason]:
    """Shares differ by one at most, and each member keeps what it owned alone, up to the smallest share."""
    sizes = [len(share) for share in shares.values()]
    if max(sizes) - min(sizes) > 1:
        yield "sizes of sticky shares", "a difference of one at most", sorted(sizes)
    claims = [place for _, owned in subscribed.values() for place in owned]
    for name, (_, owned) in sorted(subscribed.items()):
        alone = {place for place in owned if claims.count(place) == 1 and place in given}
        kept = alone & set(shares[name])
        if len(kept) < min(len(alone), len(given) // len(shares)):
            yield f"what {name} keeps", sorted(alone), sorted(kept)


# ---- bytes (ConsumerProtocolSubscription 1, ConsumerProtocolAssignment 0)


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], signed=True)


def subscription_in(data: bytes) -> tuple[list[str], list[Place]]:
    """The topics of a subscription, and the partitions owned before.

    Args:
        data: a version, topics, user data, partitions from version 1 on.
    """
    at, topics = 6, []
    for _ in range(_number(data, 2, 4)):
        size = _number(data, at, 2)
        topics.append(data[at + 2 : at + 2 + size].decode())
        at += 2 + size
    at += 4 + max(0, _number(data, at, 4))
    return topics, places_in(data[at:])[0] if _number(data, 0, 2) >= 1 else []


def places_in(data: bytes) -> tuple[list[Place], int]:
    """The partitions in an array of topics, and where the array ends.

    Args:
        data: begins with the number of topics.
    """
    at, found = 4, []
    for _ in range(_number(data, 0, 4)):
        size = _number(data, at, 2)
        topic = data[at + 2 : at + 2 + size].decode()
        at += 2 + size
        count = _number(data, at, 4)
        found += [(topic, _number(data, at + 4 + 4 * nth, 4)) for nth in range(count)]
        at += 4 + 4 * count
    return found, at

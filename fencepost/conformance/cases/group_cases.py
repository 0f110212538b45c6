"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and what administrators
see."""

import asyncio
from functools import partial
from typing import Any

from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.cases.commit_cases import _offsets, commit
from fencepost.conformance.cases.membership_cases import join, join_alone, join_whole, subscription, sync
from fencepost.conformance.lab import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    LEAVE,
    LIST_GROUPS,
    Lab,
    outcome,
)
from fencepost.wire.client import Link

POLLS = 400
FIRST_LEAVE_OF_SEVERAL = 3


async def _join_version(version: int, lab: Lab) -> Facts:
    group, link = await lab.group()
    first = await join(lab, link, group, version)
    whole = await join_whole(lab, link, group, version, member_id=first["member_id"])
    leads = whole["leader"] == whole["member_id"] != ""
    answer = lab.facts(whole)
    return [first["error_code"], answer, leads, [each["metadata"] for each in whole["members"]]]


in_versions(
    "join_group.v%d",
    "A member of a new group, in version %d: asked twice with the id it got.",
    range(6),
    _join_version,
)


async def _join_with(values: dict[str, Any], lab: Lab) -> Facts:
    group, link = await lab.group()
    answer = await outcome(join(lab, link, group, **values))
    return answer if answer == "closed" else answer["error_code"]


JOINS: dict[str, tuple[str, dict[str, Any]]] = {
    "without_a_member_id": ("Without an id, in the version that asks for one.", {}),
    "unknown_member_id": ("With an id that no broker has given.", {"member_id": "nobody"}),
    "session_timeout_too_short": ("With a session time-out of 1 ms.", {"session_timeout": 1}),
    "session_timeout_too_long": ("With a session time-out of a month.", {"session_timeout": 2_000_000_000}),
    "negative_session_timeout": ("With a session time-out of -1 ms.", {"session_timeout": -1}),
    "no_protocol_type": ("With an empty protocol type.", {"protocol_type": ""}),
    "no_protocols": ("Without protocols.", {"protocols": []}),
    "protocol_without_name": ("With a protocol of no name.", {"protocols": [{"name": "", "metadata": b""}]}),
    "unreadable_subscription": (
        "With invalid consumer metadata.",
        {"protocols": [{"name": "range", "metadata": b"\xff"}]},
    ),
    "negative_rebalance_timeout": ("With a rebalance time-out of -5 ms.", {"rebalance_timeout": -5}),
}
for _name, (_what, _values) in JOINS.items():
    case(f"join_group.{_name}", f"{_what} The group is new.")(partial(_join_with, _values))


@case("join_group.empty_group_id", "The group of no characters.")
async def empty_group(lab: Lab) -> Facts:
    return (await lab.everywhere(lambda link: join(lab, link, "")))["error_code"]


@case("join_group.at_another_broker", "At a broker that does not coordinate the group.")
async def elsewhere(lab: Lab) -> Facts:
    group, link = await lab.group()
    return (await join(lab, await lab.other(link), group))["error_code"]


async def _second(values: dict[str, Any], lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_alone(lab, link, group)
    return (await join(lab, link, group, **values))["error_code"]


case("join_group.other_protocol_type", "Protocol type `connect` in a group of consumers.")(
    partial(_second, {"protocol_type": "connect"})
)
case("join_group.no_common_protocol", "The protocol `other` in a group whose member has `range` only.")(
    partial(_second, {"protocols": [{"name": "other", "metadata": subscription()}]})
)


async def _members(lab: Lab, names: tuple[str, ...] = ("", "")) -> tuple[str, list[Link], list[Any]]:
    """A group with two members that have joined; who leads is first. names: of static members."""
    group, first = await lab.group()
    links = [first, await _same(lab, first)]
    lone = await join_whole(lab, links[0], group, **_instance(names[0]))
    other = lab.begin(join_whole(lab, links[1], group, **_instance(names[1])))
    again: Any = None
    for _ in range(POLLS):
        if again is None or len(again["members"]) < 2:
            again = await join(lab, links[0], group, member_id=lone["member_id"], **_instance(names[0]))
        if other.done() and len(again["members"]) == 2:
            break
        await asyncio.sleep(0.02)
    return group, links, [again, await other]


def _instance(name: str) -> dict[str, Any]:
    return {"group_instance_id": name} if name else {}


async def _same(lab: Lab, link: Link) -> Link:
    """Another connection to the same broker."""
    (broker,) = (each for each, address in lab.run.brokers.items() if address == link.address)
    return await lab.link(broker)


@case("join_group.two_members", "Two members: which of them learns about the other, and their generation.")
async def two(lab: Lab) -> Facts:
    _, _, (leader, follower) = await _members(lab)
    return [
        leader["error_code"],
        follower["error_code"],
        len(leader["members"]),
        len(follower["members"]),
        leader["generation_id"] == follower["generation_id"],
        leader["protocol_name"],
        follower["leader"] == leader["member_id"],
    ]


@case("sync_group.two_members", "The leader assigns, the follower gets its part.")
async def assigns(lab: Lab) -> Facts:
    group, links, (leader, follower) = await _members(lab)
    generation = leader["generation_id"]
    waits = lab.begin(sync(lab, links[1], group, follower["member_id"], generation))
    given = [(leader["member_id"], b"a"), (follower["member_id"], b"b")]
    first = await sync(lab, links[0], group, leader["member_id"], generation, given)
    second = await waits
    return [[each["error_code"], each["assignment"]] for each in (first, second)]


@case("heartbeat.while_the_group_syncs", "A member's heartbeat before the leader has assigned.")
async def beat_syncing(lab: Lab) -> Facts:
    group, links, (leader, follower) = await _members(lab)
    return await _beat(lab, links[1], group, follower["member_id"], leader["generation_id"])


@case("offset_commit.while_the_group_syncs", "A member's commit before the leader has assigned.")
async def commit_syncing(lab: Lab) -> Facts:
    topic = await lab.topic()
    group, links, (leader, _) = await _members(lab)
    values = {"generation_id_or_member_epoch": leader["generation_id"], "member_id": leader["member_id"]}
    answer = await commit(lab, links[0], group, _offsets(topic.name), **values)
    return answer["topics"][0]["partitions"][0]["error_code"]


@case("heartbeat.during_a_rebalance", "A member's heartbeat while another one joins.")
async def beat_rebalance(lab: Lab) -> Facts:
    group, link = await lab.group()
    member, generation = await join_alone(lab, link, group)
    other = await _same(lab, link)
    joining = lab.begin(join_whole(lab, other, group))
    answer = "NONE"
    for _ in range(POLLS):
        answer = await _beat(lab, link, group, member, generation)
        if answer != "NONE":
            break
        await asyncio.sleep(0.02)
    joining.cancel()
    return answer


async def _beat(lab: Lab, link: Link, group: str, member: str, generation: int, **values: Any) -> Any:
    asked = {"group_id": group, "generation_id": generation, "member_id": member, **values}
    return (await lab.ask(link, HEARTBEAT, **asked))["error_code"]


async def _beat_as(values: dict[str, Any], lab: Lab) -> Facts:
    group, link = await lab.group()
    member, generation = await join_alone(lab, link, group)
    asked = {"group_id": group, "generation_id": generation, "member_id": member, **values}
    return (await lab.ask(link, HEARTBEAT, **asked))["error_code"]


BEATS: dict[str, tuple[str, dict[str, Any]]] = {
    "of_the_member": ("Of the member.", {}),
    "unknown_member": ("From an unknown member.", {"member_id": "nobody"}),
    "empty_member": ("Of the member of no characters.", {"member_id": ""}),
    "old_generation": ("Of the member, with generation 0.", {"generation_id": 0}),
    "later_generation": ("Of the member, with generation 99.", {"generation_id": 99}),
    "unknown_instance": ("Of the member, as an unknown static member.", {"group_instance_id": "i"}),
}
for _name, (_what, _values) in BEATS.items():
    case(f"heartbeat.{_name}", f"{_what} The group has one member.")(partial(_beat_as, _values))


async def _beat_version(version: int, lab: Lab) -> Facts:
    group, link = await lab.group()
    member, generation = await join_alone(lab, link, group)
    asked = {"group_id": group, "generation_id": generation, "member_id": member}
    return lab.facts(await lab.ask(link, HEARTBEAT, version, **asked))


async def _sync_version(version: int, lab: Lab) -> Facts:
    group, link = await lab.group()
    joined = await join_whole(lab, link, group)
    member, generation = joined["member_id"], joined["generation_id"]
    return lab.facts(await sync(lab, link, group, member, generation, [(member, b"mine")], version))


async def _leave_version(version: int, lab: Lab) -> Facts:
    group, link = await lab.group()
    member, _ = await join_alone(lab, link, group)
    return lab.facts(await lab.ask(link, LEAVE, version, **_leaving(group, version, [(member, None)])))


in_versions("heartbeat.v%d", "Of the only member, in version %d.", range(4), _beat_version)
in_versions("sync_group.v%d", "Of the only member, in version %d.", range(4), _sync_version)
in_versions("leave_group.v%d", "Of the only member, in version %d.", range(4), _leave_version)


def _leaving(group: str, version: int, members: list[tuple[str, str | None]]) -> dict[str, Any]:
    if version < FIRST_LEAVE_OF_SEVERAL:
        return {"group_id": group, "member_id": members[0][0]}
    leaving = [{"member_id": member, "group_instance_id": instance} for member, instance in members]
    return {"group_id": group, "members": leaving}


@case("heartbeat.unknown_group", "From a member of an unused group.")
async def beat_nobody(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await _beat(lab, link, group, "nobody", 1)


@case("heartbeat.empty_group_id", "Of a member of the group of no characters.")
async def beat_empty(lab: Lab) -> Facts:
    return await lab.everywhere(lambda link: _beat(lab, link, "", "nobody", 1))


@case("heartbeat.at_another_broker", "At a broker that does not coordinate the group.")
async def beat_elsewhere(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await _beat(lab, await lab.other(link), group, "nobody", 1)


async def _sync_as(member: str | None, later: int, lab: Lab) -> Facts:
    group, link = await lab.group()
    mine, generation = await join_alone(lab, link, group)
    answer = await sync(lab, link, group, mine if member is None else member, generation + later)
    return [answer["error_code"], answer["assignment"]]


case("sync_group.again_when_stable", "Of the member of a stable group: its assignment again.")(
    partial(_sync_as, None, 0)
)
case("sync_group.unknown_member", "From an unknown member.")(partial(_sync_as, "nobody", 0))
case("sync_group.later_generation", "Of the member, of the next generation.")(partial(_sync_as, None, 1))


@case("sync_group.unknown_group", "For an unused group.")
async def sync_nobody(lab: Lab) -> Facts:
    group, link = await lab.group()
    return (await sync(lab, link, group, "nobody", 1))["error_code"]


@case("leave_group.unknown_member", "From an unknown member, in version 2.")
async def leave_unknown(lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_alone(lab, link, group)
    answer = await lab.ask(link, LEAVE, 2, **_leaving(group, 2, [("nobody", None)]))
    return answer["error_code"]


@case("leave_group.several", "The member and an unknown one, in version 3.")
async def leave_several(lab: Lab) -> Facts:
    group, link = await lab.group()
    member, _ = await join_alone(lab, link, group)
    asked = _leaving(group, 3, [(member, None), ("nobody", None)])
    answer = await lab.ask(link, LEAVE, 3, **asked)
    return [answer["error_code"], [each["error_code"] for each in answer["members"]]]


@case("leave_group.unknown_group", "For an unused group, in version 2 and 3.")
async def leave_nobody(lab: Lab) -> Facts:
    group, link = await lab.group()
    answers = [
        await lab.ask(link, LEAVE, version, **_leaving(group, version, [("nobody", None)]))
        for version in (2, 3)
    ]
    return [
        answers[0]["error_code"],
        answers[1]["error_code"],
        [each["error_code"] for each in answers[1]["members"]],
    ]


@case("leave_group.a_member_that_left_is_unknown", "The member leaves; then its heartbeat.")
async def leave_beat(lab: Lab) -> Facts:
    group, link = await lab.group()
    member, generation = await join_alone(lab, link, group)
    await lab.ask(link, LEAVE, 3, **_leaving(group, 3, [(member, None)]))
    return await _beat(lab, link, group, member, generation)


# ---- static members (KIP-345)


@case(
    "static.comes_back_with_a_new_id",
    "A static member joins again without its id: the new id, and the old one's heartbeat.",
)
async def static_back(lab: Lab) -> Facts:
    group, link = await lab.group()
    first = await join_whole(lab, link, group, group_instance_id="i")
    member, generation = first["member_id"], first["generation_id"]
    await sync(lab, link, group, member, generation, [(member, b"mine")], group_instance_id="i")
    again = await join(lab, link, group, group_instance_id="i")
    return [
        first["error_code"],
        again["error_code"],
        again["member_id"] == member,
        again["generation_id"] - generation,
        await _beat(lab, link, group, member, again["generation_id"], group_instance_id="i"),
        await _beat(lab, link, group, again["member_id"], again["generation_id"], group_instance_id="i"),
    ]


@case("static.joins_without_asking_for_an_id", "A static member's first request in version 5.")
async def static_first(lab: Lab) -> Facts:
    group, link = await lab.group()
    return (await join(lab, link, group, 5, group_instance_id="i"))["error_code"]


@case("static.unknown_instance_leaves", "An unknown static member leaves, by its name.")
async def static_leaves(lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_alone(lab, link, group)
    answer = await lab.ask(link, LEAVE, 3, **_leaving(group, 3, [("", "nobody")]))
    return [answer["error_code"], [each["error_code"] for each in answer["members"]]]


@case("static.leaves_by_its_name", "A static member leaves, by its name only.")
async def static_leaves_by_name(lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_whole(lab, link, group, group_instance_id="i")
    answer = await lab.ask(link, LEAVE, 3, **_leaving(group, 3, [("", "i")]))
    return [answer["error_code"], [each["error_code"] for each in answer["members"]]]


@case("static.other_id_is_fenced", "A static member joins with a foreign id.")
async def static_fenced(lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_whole(lab, link, group, group_instance_id="i")
    return (await join(lab, link, group, group_instance_id="i", member_id="other"))["error_code"]


# ---- what administrators see


async def _described(lab: Lab, link: Link, group: str, version: int | None = None) -> Any:
    answer = await lab.ask(link, DESCRIBE_GROUPS, version, groups=[group])
    (found,) = lab.facts(answer)["groups"]
    return {name: value for name, value in found.items() if name != "group_id"}


async def _describe_version(version: int, lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_alone(lab, link, group)
    return await _described(lab, link, group, version)


in_versions(
    "describe_groups.v%d", "A stable group of one member, in version %d.", range(6), _describe_version
)


@case("describe_groups.unknown_group", "An unused group.")
async def describe_unknown(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await _described(lab, link, group)


@case("describe_groups.empty_group", "A group with a commit and no members.")
async def describe_empty(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    await commit(lab, link, group, _offsets(topic.name))
    return await _described(lab, link, group)


@case("describe_groups.empty_group_id", "The group of no characters.")
async def describe_no_name(lab: Lab) -> Facts:
    async with lab.run.nameless:
        return await lab.everywhere(lambda link: _described(lab, link, ""))


@case("describe_groups.at_another_broker", "At a broker that does not coordinate the group.")
async def describe_elsewhere(lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_alone(lab, link, group)
    return await _described(lab, await lab.other(link), group)


async def _listed(version: int, filters: list[str], lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_alone(lab, link, group)
    answer = lab.facts(await lab.ask(link, LIST_GROUPS, version, states_filter=filters))
    return [
        answer["error_code"],
        [each for each in answer["groups"] if each["group_id"].startswith("group-")],
    ]


for _number in range(5):
    case(f"list_groups.v{_number}", f"Whether a stable group is listed, in version {_number}.")(
        partial(_listed, _number, [])
    )
case("list_groups.with_its_state", "Groups that are Stable, in version 4.")(partial(_listed, 4, ["Stable"]))
case("list_groups.with_another_state", "Groups that are Empty, in version 4.")(partial(_listed, 4, ["Empty"]))
case("list_groups.with_an_unknown_state", "Groups of the state Sleepy, in version 4.")(
    partial(_listed, 4, ["Sleepy"])
)


async def _deleted(lab: Lab, link: Link, group: str, version: int | None = None) -> Any:
    answer = await lab.ask(link, DELETE_GROUPS, version, groups_names=[group])
    return [each["error_code"] for each in answer["results"]]


async def _delete_version(version: int, lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    await commit(lab, link, group, _offsets(topic.name))
    return [await _deleted(lab, link, group, version), await _described(lab, link, group, 4)]


in_versions(
    "delete_groups.v%d",
    "A group without members, in version %d; then its description.",
    range(3),
    _delete_version,
)


@case("delete_groups.with_a_member", "A group that has a member.")
async def delete_member(lab: Lab) -> Facts:
    group, link = await lab.group()
    await join_alone(lab, link, group)
    return await _deleted(lab, link, group)


@case("delete_groups.unknown_group", "An unused group.")
async def delete_unknown(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await _deleted(lab, link, group)


@case("delete_groups.empty_group_id", "The group of no characters.")
async def delete_no_name(lab: Lab) -> Facts:
    async with lab.run.nameless:
        return await lab.everywhere(lambda link: _deleted(lab, link, ""))

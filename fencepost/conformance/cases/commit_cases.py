"""OffsetCommit, OffsetFetch and OffsetDelete."""

from functools import partial
from typing import Any

from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.cases.membership_cases import join_alone, member_values
from fencepost.conformance.lab import DELETE_GROUPS, OFFSET_COMMIT, OFFSET_FETCH, Lab, outcome
from fencepost.wire.client import Link

OFFSET_DELETE = 47
LONGEST_METADATA = 4_096


def _offsets(name: str, **part: Any) -> list[dict[str, Any]]:
    wanted = {
        "partition_index": 0,
        "committed_offset": 5,
        "committed_leader_epoch": 0,
        "committed_metadata": "m",
        **part,
    }
    return [{"name": name, "partitions": [wanted]}]


async def commit(
    lab: Lab, link: Link, group: str, topics: Any, version: int | None = None, **values: Any
) -> Any:
    """The facts of an OffsetCommit's answer. link: the connection; group: its id; topics: the offsets to
    commit; version: of the request, None for the newest; values: other fields of the request."""
    asked = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time": -1,
        "topics": topics,
        **values,
    }
    return lab.facts(await lab.ask(link, OFFSET_COMMIT, version, **asked))


async def committed(
    lab: Lab, link: Link, group: str, name: str | None, version: int | None = None, partition: int = 0
) -> Any:
    """The facts of the answer; name None: of all topics."""
    topics = None if name is None else [{"name": name, "partition_indexes": [partition]}]
    return lab.facts(await lab.ask(link, OFFSET_FETCH, version, group_id=group, topics=topics))


async def _commit_version(version: int, lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    answer = await commit(lab, link, group, _offsets(topic.name), version)
    return [answer, await committed(lab, link, group, topic.name)]


in_versions(
    "offset_commit.v%d",
    "Without a generation, in version %d; then what is committed.",
    range(2, 9),
    _commit_version,
)


async def _fetch_version(version: int, lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    await commit(lab, link, group, _offsets(topic.name))
    return await committed(lab, link, group, topic.name, version)


in_versions("offset_fetch.v%d", "What was committed, in version %d.", range(1, 8), _fetch_version)


async def _committed_part(part: dict[str, Any], values: dict[str, Any], lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    answer = await outcome(commit(lab, link, group, _offsets(topic.name, **part), **values))
    if answer == "closed":
        return answer
    (seen,) = (await committed(lab, link, group, topic.name))["topics"][0]["partitions"]
    return [answer["topics"][0]["partitions"][0]["error_code"], seen["committed_offset"]]


PARTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "offset_0": ("Offset 0.", {"committed_offset": 0}, {}),
    "offset_minus_1": ("Offset -1.", {"committed_offset": -1}, {}),
    "offset_minus_5": ("Offset -5.", {"committed_offset": -5}, {}),
    "largest_offset": ("The largest offset.", {"committed_offset": (1 << 63) - 1}, {}),
    "null_metadata": ("No metadata: null.", {"committed_metadata": None}, {}),
    "longest_metadata": ("Metadata of 4,096 characters.", {"committed_metadata": "m" * LONGEST_METADATA}, {}),
    "metadata_too_large": (
        "Metadata of 4,097 characters.",
        {"committed_metadata": "m" * (LONGEST_METADATA + 1)},
        {},
    ),
    "unknown_partition": ("Partition 9.", {"partition_index": 9}, {}),
    "unknown_member": (
        "From an unknown member, generation 1.",
        {},
        {"generation_id_or_member_epoch": 1, "member_id": "nobody"},
    ),
    "member_without_generation": ("From an unknown member, generation -1.", {}, {"member_id": "nobody"}),
    "generation_without_member": ("Of generation 1 and no member.", {}, {"generation_id_or_member_epoch": 1}),
    "static_member_that_is_none": (
        "From an unknown static member.",
        {},
        {"generation_id_or_member_epoch": 1, "member_id": "nobody", "group_instance_id": "i"},
    ),
    "negative_leader_epoch": ("With leader epoch -1: unknown.", {"committed_leader_epoch": -1}, {}),
}
for _name, (_what, _part, _values) in PARTS.items():
    case(f"offset_commit.{_name}", f"{_what} Then what is committed. The group has no members.")(
        partial(_committed_part, _part, _values)
    )


@case("offset_commit.unknown_topic", "Of a topic that is not there.")
async def unknown_topic(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await commit(lab, link, group, _offsets(lab.fresh("topic")))


@case("offset_commit.no_topics", "No offsets at all.")
async def no_topics(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await commit(lab, link, group, [])


@case("offset_commit.no_topics_of_an_unknown_member", "No offsets at all, from an unknown member.")
async def no_topics_unknown(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await commit(lab, link, group, [], generation_id_or_member_epoch=3, member_id="nobody")


@case("offset_commit.empty_group_id", "Of the group of no characters.")
async def empty_group(lab: Lab) -> Facts:
    topic = await lab.topic()
    async with lab.run.nameless:
        answer = await lab.everywhere(lambda link: commit(lab, link, "", _offsets(topic.name)))
        await lab.everywhere(lambda link: lab.ask(link, DELETE_GROUPS, groups_names=[""]))
    return answer["topics"][0]["partitions"][0]["error_code"]


@case("offset_commit.at_another_broker", "At a broker that does not coordinate the group.")
async def elsewhere(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    answer = await commit(lab, await lab.other(link), group, _offsets(topic.name))
    return answer["topics"][0]["partitions"][0]["error_code"]


async def _as_member(values: dict[str, Any], lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    member, generation = await join_alone(lab, link, group)
    asked = {"generation_id_or_member_epoch": generation, "member_id": member, **values}
    answer = await commit(lab, link, group, _offsets(topic.name), **asked)
    return answer["topics"][0]["partitions"][0]["error_code"]


case("offset_commit.by_a_member", "By the member of a stable group.")(partial(_as_member, {}))
case("offset_commit.by_a_member_of_an_old_generation", "By the member, with a generation of 0.")(
    partial(_as_member, {"generation_id_or_member_epoch": 0})
)
case("offset_commit.by_a_member_of_a_later_generation", "By the member, with generation 99.")(
    partial(_as_member, {"generation_id_or_member_epoch": 99})
)
case("offset_commit.by_somebody_else_while_there_are_members", "By an unknown member.")(
    partial(_as_member, {"member_id": "nobody"})
)
case("offset_commit.by_nobody_while_there_are_members", "Without a member and a generation.")(
    partial(_as_member, {"member_id": "", "generation_id_or_member_epoch": -1})
)


@case("offset_commit.twice", "Offsets 5 and 3 of one partition: the later commit counts, though it is lower.")
async def twice(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    for offset in (5, 3):
        await commit(lab, link, group, _offsets(topic.name, committed_offset=offset))
    return await committed(lab, link, group, topic.name)


@case("offset_fetch.never_committed", "Of a group and a partition without commits.")
async def never(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    return await committed(lab, link, group, topic.name)


@case("offset_fetch.unknown_topic", "Of a topic that is not there.")
async def fetch_unknown(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await committed(lab, link, group, lab.fresh("topic"))


@case("offset_fetch.negative_partition", "Of partition -1.")
async def negative(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    return await committed(lab, link, group, topic.name, partition=-1)


@case("offset_fetch.all_topics", "Of all topics of a group that committed for one.")
async def fetch_all(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    await commit(lab, link, group, _offsets(topic.name))
    return await committed(lab, link, group, None)


@case("offset_fetch.all_topics_of_nobody", "Of all topics of an unused group.")
async def fetch_all_nobody(lab: Lab) -> Facts:
    group, link = await lab.group()
    return await committed(lab, link, group, None)


@case("offset_fetch.no_topics", "Of a list of no topics.")
async def fetch_none(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    await commit(lab, link, group, _offsets(topic.name))
    return lab.facts(await lab.ask(link, OFFSET_FETCH, group_id=group, topics=[]))


@case("offset_fetch.empty_group_id", "Of the group of no characters.")
async def fetch_empty_group(lab: Lab) -> Facts:
    topic = await lab.topic()
    return (await lab.everywhere(lambda link: committed(lab, link, "", topic.name)))["error_code"]


@case("offset_fetch.at_another_broker", "At a broker that does not coordinate the group.")
async def fetch_elsewhere(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    return (await committed(lab, await lab.other(link), group, topic.name))["error_code"]


# ---- OffsetDelete


async def _delete(lab: Lab, link: Link, group: str, name: str, partition: int = 0) -> Any:
    topics = [{"name": name, "partitions": [{"partition_index": partition}]}]
    return lab.facts(await lab.ask(link, OFFSET_DELETE, group_id=group, topics=topics))


@case("offset_delete.of_an_empty_group", "A commit, its deletion, and what is committed then.")
async def delete_one(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    await commit(lab, link, group, _offsets(topic.name))
    return [await _delete(lab, link, group, topic.name), await committed(lab, link, group, topic.name)]


@case("offset_delete.unknown_group", "Of a group that is not there.")
async def delete_unknown(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    return await _delete(lab, link, group, topic.name)


@case("offset_delete.never_committed", "Of a topic for which the group never committed.")
async def delete_never(lab: Lab) -> Facts:
    topic, other, (group, link) = await lab.topic(), await lab.topic(), await lab.group()
    await commit(lab, link, group, _offsets(topic.name))
    return await _delete(lab, link, group, other.name)


@case("offset_delete.unknown_topic", "Of a topic that is not there.")
async def delete_unknown_topic(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    await commit(lab, link, group, _offsets(topic.name))
    return await _delete(lab, link, group, lab.fresh("topic"))


@case("offset_delete.while_a_member_reads", "Of a topic that a member of the group has subscribed to.")
async def delete_subscribed(lab: Lab) -> Facts:
    topic, (group, link) = await lab.topic(), await lab.group()
    member, generation = await join_alone(lab, link, group, topics=(topic.name,))
    await commit(lab, link, group, _offsets(topic.name), **member_values(member, generation))
    return await _delete(lab, link, group, topic.name)

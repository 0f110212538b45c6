"""Metadata, FindCoordinator and DescribeCluster: who is where."""

import asyncio
from functools import partial
from typing import Any

from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.lab import FIND_COORDINATOR, METADATA, Lab, outcome

DESCRIBE_CLUSTER = 60
DEADLINE = 200


async def _version(version: int, lab: Lab) -> Facts:
    topic = await lab.topic(partitions=2)
    asked: dict[str, Any] = {"topics": [{"name": topic.name}], "allow_auto_topic_creation": False}
    answer = lab.facts(await lab.ask(await lab.link(), METADATA, version, **asked))
    (named,) = answer["topics"]
    named["partitions"].sort(key=lambda part: part["partition_index"])
    answer["brokers"] = answer["brokers"] > 0
    return answer


in_versions("metadata.v%d", "A topic of two partitions, in version %d.", range(10), _version)


async def _named(names: list[str], lab: Lab) -> Facts:
    asked = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
    answer = await outcome(lab.ask(await lab.link(), METADATA, **asked))
    return answer if answer == "closed" else lab.facts(answer["topics"])


NAMES = {
    "empty_name": ("A topic with an empty name.", ""),
    "dot": ("The topic `.`.", "."),
    "two_dots": ("The topic `..`.", ".."),
    "slash": ("The topic `a/b`.", "a/b"),
    "space": ("The topic `a b`.", "a b"),
    "umlaut": ("The topic `ü`.", "ü"),
    "name_of_250_characters": ("A topic with a name of 250 characters.", "n" * 250),
}
for _name, (_what, _topic) in NAMES.items():
    case(f"metadata.{_name}", f"{_what} It may not be created.")(partial(_named, [_topic]))


@case("metadata.unknown_topic", "A topic that is not there, and may not be created.")
async def unknown_topic(lab: Lab) -> Facts:
    return await _named([lab.fresh("topic")], lab)


@case(
    "metadata.unknown_topic_is_created", "A topic that is not there, which may be created; then until it is."
)
async def creates(lab: Lab) -> Facts:
    name, link = lab.fresh("topic"), await lab.link()
    errors: list[str] = []
    for _ in range(DEADLINE):
        answer = await lab.ask(link, METADATA, 4, topics=[{"name": name}], allow_auto_topic_creation=True)
        errors.append(answer["topics"][0]["error_code"])
        if errors[-1] == "NONE":
            break
        await asyncio.sleep(0.05)
    return [errors[0] in ("UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"), errors[-1]]


@case("metadata.invalid_name_may_be_created", "The topic `a/b`, which may be created.")
async def invalid_created(lab: Lab) -> Facts:
    answer = await lab.ask(
        await lab.link(), METADATA, topics=[{"name": "a/b"}], allow_auto_topic_creation=True
    )
    return lab.facts(answer["topics"])


@case("metadata.no_topics", "No topics: only brokers are asked for.")
async def no_topics(lab: Lab) -> Facts:
    return (await lab.ask(await lab.link(), METADATA, topics=[]))["topics"]


@case("metadata.all_topics", "All topics: whether one that was made is among them.")
async def all_topics(lab: Lab) -> Facts:
    topic, answer = await lab.topic(), await lab.ask(await lab.link(), METADATA, topics=None)
    return [
        topic.name in {each["name"] for each in answer["topics"]},
        {each["error_code"] for each in answer["topics"]} == {"NONE"},
    ]


@case("metadata.v0_no_topics_means_all", "No topics in version 0: whether one that was made is among them.")
async def v0_all(lab: Lab) -> Facts:
    topic, answer = await lab.topic(), await lab.ask(await lab.link(), METADATA, 0, topics=[])
    return topic.name in {each["name"] for each in answer["topics"]}


@case("metadata.topic_twice", "One topic, twice in the request: how often it is in the answer.")
async def twice(lab: Lab) -> Facts:
    topic = await lab.topic()
    return len(await _named([topic.name, topic.name], lab))


@case("metadata.internal_topic", "__consumer_offsets: whether it is internal.")
async def internal(lab: Lab) -> Facts:
    await lab.group()
    (found,) = await _named(["__consumer_offsets"], lab)
    return [found["error_code"], found["is_internal"]]


@case("metadata.a_null_list_in_version_0", "A null list of topics in version 0, whose list cannot be null.")
async def null_v0(lab: Lab) -> Facts:
    import struct

    raw = await lab.raw()
    raw.send_frame(struct.pack(">hhih", METADATA, 0, 1, -1) + struct.pack(">i", -1))
    return await raw.end()


async def _coordinator(version: int, lab: Lab) -> Facts:
    name, _ = await lab.group()
    return lab.facts(await lab.ask(await lab.link(), FIND_COORDINATOR, version, key=name, key_type=0))


in_versions("find_coordinator.v%d", "Of a group, in version %d.", range(4), _coordinator)


async def _coordinator_of(key: str, key_type: int, lab: Lab) -> Facts:
    answer = await outcome(lab.ask(await lab.link(), FIND_COORDINATOR, key=key, key_type=key_type))
    return answer if answer == "closed" else answer["error_code"]


case("find_coordinator.empty_group", "Of the group of no characters.")(partial(_coordinator_of, "", 0))
case("find_coordinator.unknown_type", "Of type 5, which is none.")(partial(_coordinator_of, "x", 5))
case("find_coordinator.negative_type", "Of type -1.")(partial(_coordinator_of, "x", -1))


async def _cluster(version: int, lab: Lab) -> Facts:
    answer = await lab.ask(await lab.link(), DESCRIBE_CLUSTER, version, endpoint_type=1)
    return [lab.facts({**answer, "brokers": []}), len(answer["brokers"]) == len(lab.run.brokers)]


in_versions("describe_cluster.v%d", "The brokers, in version %d.", range(2), _cluster)


@case("describe_cluster.endpoint_type_9", "Version 1 with endpoint type 9, which is none.")
async def endpoint_9(lab: Lab) -> Facts:
    answer = await lab.ask(await lab.link(), DESCRIBE_CLUSTER, 1, endpoint_type=9)
    return answer["error_code"]

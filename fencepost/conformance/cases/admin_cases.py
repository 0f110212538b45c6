"""Elections, reassignments, log directories."""

from functools import partial
from typing import Any

from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.cases.fetch_cases import filled
from fencepost.conformance.lab import REASSIGN, Lab, outcome

ELECT, LIST_REASSIGNMENTS, LOG_DIRS = 43, 46, 35
PREFERRED, UNCLEAN = 0, 1


async def _elect(lab: Lab, topics: Any, version: int | None = None, election: int = PREFERRED) -> Any:
    asked = {"election_type": election, "topic_partitions": topics, "timeout": 10_000}
    answer = await outcome(lab.ask(await lab.controller(), ELECT, version, **asked))
    return answer if answer == "closed" else lab.facts(answer)


async def _needless(version: int, lab: Lab) -> Facts:
    topic = await lab.topic()
    return await _elect(lab, [{"topic": topic.name, "partitions": [0]}], version)


in_versions(
    "elect_leaders.v%d", "The preferred leader, which leads already, in version %d.", range(2), _needless
)


@case("elect_leaders.unclean_is_not_needed", "An unclean election of a partition that has a leader.")
async def unclean(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await _elect(lab, [{"topic": topic.name, "partitions": [0]}], election=UNCLEAN)


@case("elect_leaders.unknown_topic", "Of a topic that is not there.")
async def elect_unknown(lab: Lab) -> Facts:
    return await _elect(lab, [{"topic": lab.fresh("topic"), "partitions": [0]}])


@case("elect_leaders.unknown_partition", "Of partition 9.")
async def elect_partition(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await _elect(lab, [{"topic": topic.name, "partitions": [9]}])


@case("elect_leaders.unknown_type", "An election of type 9, which is none.")
async def elect_type(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await _elect(lab, [{"topic": topic.name, "partitions": [0]}], election=9)


@case("elect_leaders.no_partitions", "Of no partitions.")
async def elect_nothing(lab: Lab) -> Facts:
    return await _elect(lab, [])


async def _reassign(lab: Lab, name: str, replicas: list[int] | None, partition: int = 0) -> Any:
    parts = [{"partition_index": partition, "replicas": replicas}]
    topics = [{"name": name, "partitions": parts}]
    answer = await lab.ask(await lab.controller(), REASSIGN, topics=topics, timeout=10_000)
    return lab.facts(answer)


async def _reassigned(replicas: list[int] | None, partition: int, lab: Lab) -> Facts:
    topic = await lab.topic()
    return await _reassign(lab, topic.name, replicas, partition)


REASSIGNMENTS: dict[str, tuple[str, list[int] | None, int]] = {
    "cancel_none": ("Cancel a reassignment that is not there.", None, 0),
    "unknown_broker": ("To broker 99.", [99], 0),
    "negative_broker": ("To broker -1.", [-1], 0),
    "no_replicas": ("To no broker.", [], 0),
    "broker_twice": ("To broker 1, twice.", [1, 1], 0),
    "unknown_partition": ("Of partition 9.", [1], 9),
}
for _name, (_what, _replicas, _partition) in REASSIGNMENTS.items():
    case(f"alter_partition_reassignments.{_name}", _what)(partial(_reassigned, _replicas, _partition))


@case("alter_partition_reassignments.unknown_topic", "Of a topic that is not there.")
async def reassign_unknown(lab: Lab) -> Facts:
    return await _reassign(lab, lab.fresh("topic"), [1])


@case("alter_partition_reassignments.moves", "From one broker to another; then the leader.")
async def moves(lab: Lab) -> Facts:
    topic = await lab.led_elsewhere()
    return (await lab.leaders(topic.name))[0] == sorted(lab.run.brokers)[1]


@case("list_partition_reassignments.none", "Of a topic that stays where it is.")
async def list_none(lab: Lab) -> Facts:
    topic = await lab.topic()
    topics = [{"name": topic.name, "partition_indexes": [0]}]
    return lab.facts(await lab.ask(await lab.controller(), LIST_REASSIGNMENTS, topics=topics))


@case("list_partition_reassignments.unknown_topic", "Of a topic that is not there.")
async def list_unknown(lab: Lab) -> Facts:
    topics = [{"name": lab.fresh("topic"), "partition_indexes": [0]}]
    return lab.facts(await lab.ask(await lab.controller(), LIST_REASSIGNMENTS, topics=topics))


@case("describe_log_dirs.of_a_topic", "The partition of a topic: whether it has bytes.")
async def log_dirs(lab: Lab) -> Facts:
    topic = await filled(lab)
    topics = [{"topic": topic.name, "partitions": [0]}]
    answer = await lab.ask(topic.leader, LOG_DIRS, 1, topics=topics)
    (found,) = answer["results"]
    (part,) = found["topics"][0]["partitions"]
    return [found["error_code"], part["partition_size"] > 0, part["offset_lag"], part["is_future_key"]]


@case("describe_log_dirs.unknown_topic", "A topic that is not there.")
async def log_dirs_unknown(lab: Lab) -> Facts:
    topics = [{"topic": lab.fresh("topic"), "partitions": [0]}]
    answer = await lab.ask(await lab.link(), LOG_DIRS, 1, topics=topics)
    (found,) = answer["results"]
    return [found["error_code"], found["topics"]]

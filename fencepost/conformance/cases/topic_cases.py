"""CreateTopics, DeleteTopics, CreatePartitions: every kind of good and bad value."""

from functools import partial
from typing import Any

from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.lab import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, METADATA, Lab, outcome

LONGEST_NAME = 249


def wanted(name: str, **values: Any) -> dict[str, Any]:
    """A topic of one partition and replication factor 1.

    Args:
        name: of the topic.
        values: fields of the request that differ.
    """
    return {
        "name": name,
        "num_partitions": 1,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
        **values,
    }


async def create(lab: Lab, topics: list[dict[str, Any]], version: int | None = None, **values: Any) -> Any:
    """The errors by topic. topics: of CreateTopics; version: of the request, None for the newest; values:
    other fields of the request."""
    asked = {"topics": topics, "timeout": 10_000, **values}
    answer = await outcome(lab.ask(await lab.controller(), CREATE_TOPICS, version, **asked))
    return answer if answer == "closed" else lab.facts(answer)["topics"]


async def _partitions(lab: Lab, name: str) -> Any:
    """How many there are, or why there are none."""
    answer = await lab.ask(
        await lab.controller(), METADATA, topics=[{"name": name}], allow_auto_topic_creation=False
    )
    (found,) = answer["topics"]
    return len(found["partitions"]) if found["error_code"] == "NONE" else found["error_code"]


async def _version(version: int, lab: Lab) -> Facts:
    name = lab.fresh("topic")
    answer = await create(lab, [wanted(name, num_partitions=2)], version)
    await lab.opened(name, 2)
    return [answer, await _partitions(lab, name)]


in_versions("create_topics.v%d", "A topic of two partitions, in version %d.", range(2, 5), _version)


def _assigned(*replicas: tuple[int, list[int]]) -> dict[str, Any]:
    parts = [{"partition_index": index, "broker_ids": brokers} for index, brokers in replicas]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": parts}


async def _with(values: dict[str, Any], more: dict[str, Any], lab: Lab) -> Facts:
    name = values.get("name") or lab.fresh("topic")
    answer = await create(lab, [wanted(**{"name": name, **values})], **more)
    return [each["error_code"] for each in answer] if answer != "closed" else answer


def _config(name: str, value: str | None) -> dict[str, Any]:
    return {"configs": [{"name": name, "value": value}]}


CREATIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "no_partitions": ("0 partitions.", {"num_partitions": 0}, {}),
    "minus_1_partitions": ("-1 partitions: as many as the broker likes.", {"num_partitions": -1}, {}),
    "minus_5_partitions": ("-5 partitions.", {"num_partitions": -5}, {}),
    "replication_factor_0": ("Replication factor 0.", {"replication_factor": 0}, {}),
    "replication_factor_minus_1": (
        "Replication factor -1: as the broker likes.",
        {"replication_factor": -1},
        {},
    ),
    "replication_factor_minus_5": ("Replication factor -5.", {"replication_factor": -5}, {}),
    "replication_factor_too_high": ("Replication factor 99.", {"replication_factor": 99}, {}),
    "dot": ("The name `.`.", {"name": "."}, {}),
    "two_dots": ("The name `..`.", {"name": ".."}, {}),
    "slash": ("The name `a/b`.", {"name": "a/b"}, {}),
    "space": ("The name `a b`.", {"name": "a b"}, {}),
    "umlaut": ("The name `ü`.", {"name": "ü"}, {}),
    "name_of_250_characters": ("A name of 250 characters.", {"name": "n" * (LONGEST_NAME + 1)}, {}),
    "assignment": ("Partition 0 on broker 1.", _assigned((0, [1])), {}),
    "assignment_and_numbers": (
        "An assignment, and 1 partition of replication factor 1.",
        {**_assigned((0, [1])), "num_partitions": 1, "replication_factor": 1},
        {},
    ),
    "assignment_does_not_begin_with_0": ("An assignment of partition 1 only.", _assigned((1, [1])), {}),
    "assignment_has_a_gap": ("An assignment of partitions 0 and 2.", _assigned((0, [1]), (2, [1])), {}),
    "assignment_of_a_partition_twice": (
        "An assignment of partition 0, twice.",
        _assigned((0, [1]), (0, [1])),
        {},
    ),
    "assignment_without_replicas": ("An assignment of partition 0 to no broker.", _assigned((0, [])), {}),
    "assignment_of_a_broker_twice": (
        "An assignment of partition 0 to broker 1, twice.",
        _assigned((0, [1, 1])),
        {},
    ),
    "assignment_to_an_unknown_broker": (
        "An assignment of partition 0 to broker 99.",
        _assigned((0, [99])),
        {},
    ),
    "assignment_to_a_negative_broker": (
        "An assignment of partition 0 to broker -1.",
        _assigned((0, [-1])),
        {},
    ),
    "assignment_of_different_sizes": (
        "Partition 0 on broker 1, partition 1 on brokers 1 and 2.",
        _assigned((0, [1]), (1, [1, 2])),
        {},
    ),
    "config": ("With retention.ms=1000.", _config("retention.ms", "1000"), {}),
    "unknown_config": ("With the setting no.such.setting.", _config("no.such.setting", "1"), {}),
    "config_that_is_no_number": ("With retention.ms=soon.", _config("retention.ms", "soon"), {}),
    "config_out_of_range": ("With min.insync.replicas=0.", _config("min.insync.replicas", "0"), {}),
    "config_unknown_choice": ("With cleanup.policy=burn.", _config("cleanup.policy", "burn"), {}),
    "config_empty_value": ("With retention.ms and an empty value.", _config("retention.ms", ""), {}),
    "config_null_value": ("With retention.ms and no value.", _config("retention.ms", None), {}),
    "config_empty_name": ("With a setting without a name.", _config("", "1"), {}),
    "only_validated": ("Only to be validated.", {}, {"validate_only": True}),
    "only_validated_bad": (
        "Replication factor 99, only to be validated.",
        {"replication_factor": 99},
        {"validate_only": True},
    ),
}
for _name, (_what, _values, _more) in CREATIONS.items():
    case(f"create_topics.{_name}", f"{_what} Otherwise a topic of one partition and one replica.")(
        partial(_with, _values, _more)
    )


@case("create_topics.empty_name", "A topic with an empty name.")
async def empty_name(lab: Lab) -> Facts:
    return [each["error_code"] for each in await create(lab, [wanted("")])]


@case("create_topics.name_of_249_characters", "A name of 249 characters, the longest.")
async def longest(lab: Lab) -> Facts:
    name = lab.fresh("topic")
    long = name + "n" * (LONGEST_NAME - len(name))
    lab.run.topics.add(long)
    return [each["error_code"] for each in await create(lab, [wanted(long)])]


@case("create_topics.exists", "A topic that is there.")
async def exists(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await create(lab, [wanted(topic.name)])


@case("create_topics.exists_with_other_numbers", "A topic that is there, with replication factor 99.")
async def exists_bad(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await create(lab, [wanted(topic.name, replication_factor=99)])


@case("create_topics.only_validated_exists", "A topic that is there, only to be validated.")
async def validated_exists(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await create(lab, [wanted(topic.name)], validate_only=True)


@case("create_topics.collides_by_dot_and_underscore", "a.b when a_b is there: their metrics would collide.")
async def collides(lab: Lab) -> Facts:
    base = lab.fresh("topic")
    names = [base + ".x", base + "_x"]
    lab.run.topics.update(names)
    first = await create(lab, [wanted(names[0])])
    await lab.opened(names[0])
    second = await create(lab, [wanted(names[1])])
    return [answer[0]["error_code"] for answer in (first, second)]


@case("create_topics.topic_twice", "One topic twice in a request.")
async def twice(lab: Lab) -> Facts:
    name = lab.fresh("topic")
    return await create(lab, [wanted(name), wanted(name)])


@case("create_topics.one_good_one_bad", "A good topic and one with replication factor 99.")
async def good_and_bad(lab: Lab) -> Facts:
    names = [lab.fresh("topic"), lab.fresh("topic")]
    answer = await create(lab, [wanted(names[0]), wanted(names[1], replication_factor=99)])
    return sorted((each["name"], each["error_code"]) for each in answer)


@case("create_topics.nothing", "No topics.")
async def nothing(lab: Lab) -> Facts:
    return await create(lab, [])


@case(
    "create_topics.only_validated_leaves_nothing", "A topic, only to be validated; whether it is there then."
)
async def validated(lab: Lab) -> Facts:
    name = lab.fresh("topic")
    return [await create(lab, [wanted(name)], validate_only=True), await _partitions(lab, name)]


@case("create_topics.refused_leaves_nothing", "A topic with an unknown setting; whether it is there then.")
async def refused(lab: Lab) -> Facts:
    name = lab.fresh("topic")
    answer = await create(lab, [wanted(name, **_config("no.such.setting", "1"))])
    return [answer, await _partitions(lab, name)]


@case("create_topics.internal_topic", "__consumer_offsets, which is there.")
async def internal(lab: Lab) -> Facts:
    await lab.group()
    return await create(lab, [wanted("__consumer_offsets")])


# ---- DeleteTopics


async def delete(lab: Lab, names: list[str], version: int | None = None) -> Any:
    """The errors by topic. names: of the topics; version: of the request, None for the newest."""
    answer = await lab.ask(await lab.controller(), DELETE_TOPICS, version, topic_names=names, timeout=10_000)
    return lab.facts(answer)["responses"]


async def _delete_version(version: int, lab: Lab) -> Facts:
    topic = await lab.topic()
    return await delete(lab, [topic.name], version)


in_versions("delete_topics.v%d", "A topic, in version %d.", range(1, 4), _delete_version)


@case("delete_topics.unknown_topic", "A topic that is not there.")
async def delete_unknown(lab: Lab) -> Facts:
    return await delete(lab, [lab.fresh("topic")])


@case("delete_topics.empty_name", "A topic with an empty name.")
async def delete_empty(lab: Lab) -> Facts:
    return await delete(lab, [""])


@case("delete_topics.slash", "The topic `a/b`.")
async def delete_slash(lab: Lab) -> Facts:
    return await delete(lab, ["a/b"])


@case("delete_topics.nothing", "No topics.")
async def delete_nothing(lab: Lab) -> Facts:
    return await delete(lab, [])


@case("delete_topics.one_good_one_unknown", "A topic that is there and one that is not.")
async def delete_good_and_unknown(lab: Lab) -> Facts:
    topic = await lab.topic()
    answer = await delete(lab, [topic.name, lab.fresh("topic")])
    return sorted((each["name"], each["error_code"]) for each in answer)


# ---- CreatePartitions


async def more_partitions(
    lab: Lab,
    name: str,
    count: int,
    assignments: Any = None,
    version: int | None = None,
    *,
    twice: bool = False,
    **values: Any,
) -> Any:
    """The errors. name: of the topic; count: the new number of partitions; assignments: of the new ones, None
    for the broker's choice; version: of the request, None for the newest; twice: name the topic twice;
    values: other fields of the request."""
    given = None if assignments is None else [{"broker_ids": brokers} for brokers in assignments]
    topic = {"name": name, "count": count, "assignments": given}
    asked = {"topics": [topic, topic] if twice else [topic], "timeout": 10_000, **values}
    answer = await lab.ask(await lab.controller(), CREATE_PARTITIONS, version, **asked)
    return [each["error_code"] for each in answer["results"]]


async def _enlarged(count: int, assignments: Any, values: dict[str, Any], lab: Lab) -> Facts:
    topic = await lab.topic(partitions=2)
    return await more_partitions(lab, topic.name, count, assignments, **values)


MORE: dict[str, tuple[str, int, Any, dict[str, Any]]] = {
    "v0": ("3, in version 0.", 3, None, {"version": 0}),
    "v1": ("3, in version 1.", 3, None, {"version": 1}),
    "fewer": ("1.", 1, None, {}),
    "as_many": ("2.", 2, None, {}),
    "none": ("0.", 0, None, {}),
    "minus_1": ("-1.", -1, None, {}),
    "assignment": ("3, the new one on broker 1.", 3, [[1]], {}),
    "assignment_too_short": ("4, and an assignment for one new one.", 4, [[1]], {}),
    "assignment_too_long": ("3, and assignments for two new ones.", 3, [[1], [1]], {}),
    "assignment_to_an_unknown_broker": ("3, the new one on broker 99.", 3, [[99]], {}),
    "assignment_of_a_broker_twice": ("3, the new one on broker 1, twice.", 3, [[1, 1]], {}),
    "assignment_of_another_size": ("3, the new one on brokers 1 and 2.", 3, [[1, 2]], {}),
    "assignment_without_replicas": ("3, the new one on no broker.", 3, [[]], {}),
    "only_validated": ("3, only to be validated.", 3, None, {"validate_only": True}),
    "only_validated_fewer": ("1, only to be validated.", 1, None, {"validate_only": True}),
    "topic_twice": ("3, twice in the request.", 3, None, {"twice": True}),
}
for _name, (_what, _count, _assignments, _values) in MORE.items():
    case(f"create_partitions.{_name}", f"Of a topic of 2 partitions {_what}")(
        partial(_enlarged, _count, _assignments, _values)
    )


@case("create_partitions.unknown_topic", "Of a topic that is not there.")
async def more_unknown(lab: Lab) -> Facts:
    return await more_partitions(lab, lab.fresh("topic"), 3)


@case("create_partitions.new_ones_can_be_written", "3 of a topic of 1; then how many there are.")
async def more_written(lab: Lab) -> Facts:
    topic = await lab.topic()
    answer = await more_partitions(lab, topic.name, 3)
    await lab.opened(topic.name, 3)
    return [answer, await _partitions(lab, topic.name)]

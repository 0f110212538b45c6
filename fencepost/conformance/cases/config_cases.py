"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs."""

import asyncio
from functools import partial
from typing import Any

from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.lab import Lab, outcome

DESCRIBE, ALTER, INCREMENTAL = 32, 33, 44
UNKNOWN, TOPIC, BROKER = 0, 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
POLLS = 100


async def described(
    lab: Lab, name: str, keys: list[str] | None, version: int | None = None, kind: int = TOPIC, **values: Any
) -> Any:
    """The facts of one resource. name: of the resource; keys: of its settings, None for all; version: of the
    request, None for the newest; kind: of the resource; values: other fields of the request."""
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": keys}]
    answer = await lab.ask(await lab.link(), DESCRIBE, version, resources=asked, **values)
    (found,) = lab.facts(answer)["results"]
    found["configs"].sort(key=lambda each: each["name"])
    return found


async def value_of(lab: Lab, name: str, key: str, expected: str | None) -> str | None:
    """What a setting is, once it is as expected, or after some time."""
    seen = None
    for _ in range(POLLS):
        found = await described(lab, name, [key])
        seen = found["configs"][0]["value"] if found["configs"] else None
        if seen == expected:
            break
        await asyncio.sleep(0.02)
    return seen


async def _describe_version(version: int, lab: Lab) -> Facts:
    topic = await lab.topic(configs={"segment.bytes": "20000000"})
    keys = ["retention.ms", "segment.bytes"]
    return await described(lab, topic.name, keys, version, include_synonyms=False)


in_versions("describe_configs.v%d", "Two settings of a topic, in version %d.", range(1, 5), _describe_version)


@case("describe_configs.default", "cleanup.policy of a topic that does not set it.")
async def default(lab: Lab) -> Facts:
    topic = await lab.topic()
    return (await described(lab, topic.name, ["cleanup.policy"]))["configs"]


@case(
    "describe_configs.synonyms",
    "retention.ms of a topic that sets it: the topic's own entry among its synonyms.",
)
async def synonyms(lab: Lab) -> Facts:
    topic = await lab.topic()
    found = await described(lab, topic.name, ["retention.ms"], include_synonyms=True)
    return found["configs"][0]["synonyms"][0]


@case("describe_configs.all", "All settings of a topic: whether those that matter most are there.")
async def everything(lab: Lab) -> Facts:
    topic = await lab.topic()
    names = {each["name"] for each in (await described(lab, topic.name, None))["configs"]}
    wanted = {
        "cleanup.policy",
        "retention.ms",
        "retention.bytes",
        "segment.bytes",
        "min.insync.replicas",
        "max.message.bytes",
        "unclean.leader.election.enable",
        "compression.type",
        "message.timestamp.type",
    }
    return sorted(wanted - names)


@case("describe_configs.unknown_setting", "A setting that no topic has.")
async def unknown_setting(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await described(lab, topic.name, ["no.such.setting"])


@case("describe_configs.no_settings", "An empty list of settings.")
async def no_settings(lab: Lab) -> Facts:
    topic = await lab.topic()
    return len((await described(lab, topic.name, []))["configs"]) > 0


async def _resource(kind: int, name: str, lab: Lab) -> Facts:
    found = await outcome(described(lab, name, None, kind=kind))
    return found if found == "closed" else found["error_code"]


case("describe_configs.resource_type_0", "A resource of type 0, which is none.")(
    partial(_resource, UNKNOWN, "x")
)
case("describe_configs.resource_type_99", "A resource of type 99, which is none.")(
    partial(_resource, 99, "x")
)
case("describe_configs.slash", "The topic `a/b`.")(partial(_resource, TOPIC, "a/b"))
case("describe_configs.empty_topic_name", "The topic of no characters.")(partial(_resource, TOPIC, ""))
case("describe_configs.broker_that_is_no_number", "The broker `first`.")(partial(_resource, BROKER, "first"))
case("describe_configs.unknown_broker", "The broker 99, asked at another broker.")(
    partial(_resource, BROKER, "99")
)


@case("describe_configs.unknown_topic", "A topic that is not there.")
async def unknown_topic(lab: Lab) -> Facts:
    return await _resource(TOPIC, lab.fresh("topic"), lab)


@case("describe_configs.broker", "The broker that is asked.")
async def broker(lab: Lab) -> Facts:
    return await _resource(BROKER, str(min(lab.run.brokers)), lab)


# ---- AlterConfigs


async def altered(
    lab: Lab,
    name: str,
    configs: list[dict[str, Any]],
    version: int | None = None,
    kind: int = TOPIC,
    key: int = ALTER,
    **values: Any,
) -> Any:
    """The error of one resource. name: of the resource; configs: the new settings; version: of the request,
    None for the newest; kind: of the resource; key: of the API; values: other fields of the request."""
    asked = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    answer = await outcome(lab.ask(await lab.controller(), key, version, resources=asked, **values))
    return answer if answer == "closed" else [each["error_code"] for each in answer["responses"]]


async def _alter(
    name: str, value: str | None, values: dict[str, Any], expected: str | None, lab: Lab
) -> Facts:
    topic = await lab.topic(configs={"retention.ms": "777777777"})
    error = await altered(lab, topic.name, [{"name": name, "value": value}], **values)
    return [error, await value_of(lab, topic.name, "retention.ms", expected)]


KEPT, SET_VALUE, DEFAULT = "777777777", "888888888", "604800000"
ALTERATIONS: dict[str, tuple[str, str, str | None, dict[str, Any], str]] = {
    **{
        f"v{version}": (
            f"retention.ms=888888888, in version {version}.",
            "retention.ms",
            SET_VALUE,
            {"version": version},
            SET_VALUE,
        )
        for version in range(3)
    },
    "replaces_all": (
        "segment.bytes only: what is not named goes back to its default.",
        "segment.bytes",
        "20000000",
        {},
        DEFAULT,
    ),
    "unknown_setting": ("no.such.setting=1.", "no.such.setting", "1", {}, KEPT),
    "bad_value": ("retention.ms=soon.", "retention.ms", "soon", {}, KEPT),
    "out_of_range": ("min.insync.replicas=0.", "min.insync.replicas", "0", {}, KEPT),
    "null_value": ("retention.ms without a value.", "retention.ms", None, {}, KEPT),
    "only_validated": (
        "retention.ms=888888888, only to be validated.",
        "retention.ms",
        SET_VALUE,
        {"validate_only": True},
        KEPT,
    ),
    "only_validated_bad": (
        "retention.ms=soon, only to be validated.",
        "retention.ms",
        "soon",
        {"validate_only": True},
        KEPT,
    ),
}
for _name, (_what, _setting, _value, _values, _expected) in ALTERATIONS.items():
    case(f"alter_configs.{_name}", f"{_what} Then retention.ms, which was 777777777.")(
        partial(_alter, _setting, _value, _values, _expected)
    )


@case("alter_configs.unknown_topic", "retention.ms=1 of a topic that is not there.")
async def alter_unknown(lab: Lab) -> Facts:
    return await altered(lab, lab.fresh("topic"), [{"name": "retention.ms", "value": "1"}])


@case("alter_configs.resource_type_0", "A resource of type 0, which is none.")
async def alter_type_0(lab: Lab) -> Facts:
    return await altered(lab, "x", [{"name": "retention.ms", "value": "1"}], kind=UNKNOWN)


async def _change(
    changes: list[tuple[str, int, str | None]], values: dict[str, Any], expected: str | None, lab: Lab
) -> Facts:
    topic = await lab.topic(configs={"retention.ms": KEPT, "cleanup.policy": "delete"})
    configs = [
        {"name": name, "config_operation": operation, "value": value} for name, operation, value in changes
    ]
    error = await altered(lab, topic.name, configs, key=INCREMENTAL, **values)
    seen = [each["value"] for each in (await described(lab, topic.name, ["cleanup.policy"]))["configs"]]
    return [error, await value_of(lab, topic.name, "retention.ms", expected), seen]


CHANGES: dict[str, tuple[str, list[tuple[str, int, str | None]], dict[str, Any], str]] = {
    **{
        f"v{version}": (
            f"Set retention.ms, in version {version}.",
            [("retention.ms", SET, SET_VALUE)],
            {"version": version},
            SET_VALUE,
        )
        for version in range(2)
    },
    "delete": ("Delete retention.ms.", [("retention.ms", DELETE, None)], {}, DEFAULT),
    "delete_what_is_not_set": (
        "Delete segment.bytes, which is not set.",
        [("segment.bytes", DELETE, None)],
        {},
        KEPT,
    ),
    "set_null": ("Set retention.ms to nothing.", [("retention.ms", SET, None)], {}, KEPT),
    "set_bad_value": ("Set retention.ms to `soon`.", [("retention.ms", SET, "soon")], {}, KEPT),
    "unknown_setting": ("Set no.such.setting.", [("no.such.setting", SET, "1")], {}, KEPT),
    "append_to_no_list": (
        "Append to retention.ms, which is no list.",
        [("retention.ms", APPEND, "1")],
        {},
        KEPT,
    ),
    "unknown_operation": ("Operation 9 on retention.ms.", [("retention.ms", 9, SET_VALUE)], {}, KEPT),
    "setting_twice": (
        "Set retention.ms twice.",
        [("retention.ms", SET, "1"), ("retention.ms", SET, SET_VALUE)],
        {},
        KEPT,
    ),
    "one_good_one_bad": (
        "Set retention.ms, and no.such.setting.",
        [("retention.ms", SET, SET_VALUE), ("no.such.setting", SET, "1")],
        {},
        KEPT,
    ),
    "only_validated": (
        "Set retention.ms, only to be validated.",
        [("retention.ms", SET, SET_VALUE)],
        {"validate_only": True},
        KEPT,
    ),
    "nothing": ("No settings.", [], {}, KEPT),
}
for _name, (_what, _changes, _values, _expected) in CHANGES.items():
    case(f"incremental_alter_configs.{_name}", f"{_what} Then retention.ms, which was 777777777.")(
        partial(_change, _changes, _values, _expected)
    )


async def _policy(operation: int, value: str, expected: str, lab: Lab) -> Facts:
    topic = await lab.topic(configs={"cleanup.policy": "delete"})
    changes = [{"name": "cleanup.policy", "config_operation": operation, "value": value}]
    error = await altered(lab, topic.name, changes, key=INCREMENTAL)
    return [error, await value_of(lab, topic.name, "cleanup.policy", expected)]


case("incremental_alter_configs.append", "Append `compact` to cleanup.policy=delete.")(
    partial(_policy, APPEND, "compact", "delete,compact")
)
case("incremental_alter_configs.append_what_is_there", "Append `delete` to cleanup.policy=delete.")(
    partial(_policy, APPEND, "delete", "delete")
)
case(
    "incremental_alter_configs.subtract_what_is_not_there", "Subtract `compact` from cleanup.policy=delete."
)(partial(_policy, SUBTRACT, "compact", "delete"))


@case("incremental_alter_configs.unknown_topic", "Set retention.ms of a topic that is not there.")
async def change_unknown(lab: Lab) -> Facts:
    configs = [{"name": "retention.ms", "config_operation": SET, "value": "1"}]
    return await altered(lab, lab.fresh("topic"), configs, key=INCREMENTAL)


@case("incremental_alter_configs.resource_twice", "One topic twice in a request.")
async def resource_twice(lab: Lab) -> Facts:
    topic = await lab.topic()
    configs = [{"name": "retention.ms", "config_operation": SET, "value": "1"}]
    one = {"resource_type": TOPIC, "resource_name": topic.name, "configs": configs}
    answer = await lab.ask(await lab.controller(), INCREMENTAL, resources=[one, one])
    return [each["error_code"] for each in answer["responses"]]

"""Topic configuration: check, alter, describe (docs/spec/cluster.md Z). Owns the checks and the single write;
brokers apply it when they are notified."""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from fencepost.impl.admin.cluster_state import (
    AdminError,
    ChangedMeanwhileError,
    ClusterTopics,
    fitting,
    read_cluster,
    refuse_twice,
    refused,
)
from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.core.topic_config import ACCEPTED, SETTINGS, Setting
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import GROUPED
from fencepost.impl.zookeeper.interface import Create, Data, Failed, GetData, Multi, SetData
from fencepost.traces.errors import unknown_name
from fencepost.traces.kafka_names.inherited_settings import DYNAMIC
from fencepost.traces.kafka_names.outcomes import ErrorCode

Change = Callable[[Mapping[str, str]], dict[str, str]]
"""From a topic's current overrides to its new ones. Raises AdminError."""
CHANGE_PARENTS = (
    Create(znodes.CONFIG),
    Create(znodes.TOPIC_CONFIGS),
    Create(znodes.BROKER_CONFIGS),
    Create(znodes.CONFIG_CHANGES),
)
INHERITABLE = {DYNAMIC[name]: setting for name, setting in SETTINGS.items()}
"""The settings of brokers that move while they run, by name."""
CONFIG_BYTES = 512
"""Estimated size of a topic's configuration in bytes."""


def change_of(topic: str) -> Create:
    """The notification of a change."""
    return Create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(topic), sequential=True)


def check_config(topic: str, config: Mapping[str, str]) -> None:
    """Check that brokers know the names and accept the values.

    Args:
        topic: the topic, for the error.
        config: overrides by Kafka's names.

    Raises:
        AdminError: if one is unknown or invalid.
    """
    for name, value in sorted(config.items()):
        setting = setting_of(topic, name)
        try:
            setting.read(value)
        except ValueError:
            raise AdminError(
                expected=setting.expected,
                seen=repr(value),
                where=f"{_place(topic)}: {name}",
                code=ErrorCode.INVALID_CONFIG,
            ) from None


def setting_of(topic: str, name: str) -> Setting:
    """A setting that brokers know, including those without effect here.

    Args:
        topic: the topic, or the name of brokers (znodes.broker_name).
        name: Kafka's name.

    Returns:
        the setting.

    Raises:
        AdminError: if it is unknown.
    """
    of_brokers = znodes.is_of_brokers(topic)
    obeyed = INHERITABLE if of_brokers else SETTINGS
    setting = obeyed.get(name) or (None if of_brokers else ACCEPTED.get(name))
    if setting is None:
        raise AdminError(
            expected=f"one of the settings {', '.join(sorted(obeyed))}",
            seen=unknown_name(name, obeyed if of_brokers else (*SETTINGS, *ACCEPTED)),
            where=_place(topic),
            code=ErrorCode.INVALID_REQUEST if of_brokers else ErrorCode.INVALID_CONFIG,
        )
    return setting


def alter_config(topic: str, added: Mapping[str, str], removed: Collection[str]) -> ZooKeeperSteps:
    """Set and remove overrides of a topic and notify the brokers.

    Args:
        topic: the topic.
        added: overrides to set, by Kafka's names.
        removed: overrides to remove.

    Returns:
        the steps; their result is the new overrides.

    Raises:
        AdminError: if the request is invalid.
    """
    check_config(topic, added)
    if added.keys() | removed:
        refuse_twice((*added, *removed), "setting", f"topic {topic}")
    config = yield from change_config(topic, partial(_altered, topic, added, removed))
    return config


def _altered(
    topic: str, added: Mapping[str, str], removed: Collection[str], current: Mapping[str, str]
) -> dict[str, str]:
    absent = [name for name in removed if name not in current]
    if absent:
        raise AdminError(
            expected="a setting that the topic has of its own", seen=repr(absent[0]), where=f"topic {topic}"
        )
    return {name: value for name, value in current.items() if name not in removed} | dict(added)


def change_config(topic: str, change: Change, *, validate_only: bool = False) -> ZooKeeperSteps:
    """Write the result of `change` for the overrides of a topic, or of brokers (znodes.broker_name), and
    notify the brokers; returns it. validate_only: do everything but the write. Raises AdminError."""
    where, path = _place(topic), znodes.config_path(topic)
    if not znodes.is_of_brokers(topic):
        cluster: ClusterTopics = yield from read_cluster({topic})
        cluster.topic(topic, "alter")
    current = yield GetData(path)
    before = _decoded(current, path) if isinstance(current, Data) else {}
    config = change(before)
    check_config(topic, {name: value for name, value in config.items() if before.get(name) != value})
    data = znodes.encode_configuration(config)
    write = SetData(path, data, current.stat.version) if isinstance(current, Data) else Create(path, data)
    fitting(write, where)
    if validate_only:
        return config
    yield CHANGE_PARENTS
    reply = yield Multi((write, change_of(topic)))
    if isinstance(reply, Failed):
        raise ChangedMeanwhileError(
            expected="a configuration that no other client changes",
            seen=f"that another was faster ({reply.error.value})",
            where=where,
            hint="ask again",
            code=ErrorCode.REQUEST_TIMED_OUT,
        )
    return config


def _place(name: str) -> str:
    return f"brokers {name}" if znodes.is_of_brokers(name) else f"topic {name}"


def _decoded(node: Data, path: str) -> dict[str, str]:
    try:
        return znodes.decode_configuration(node.data, path)
    except znodes.BadZnodeError as error:
        raise refused(error) from None


def describe_configurations(topics: Collection[str]) -> ZooKeeperSteps:
    """The overrides of those of these topics that have any."""
    names = sorted(topics)
    replies = yield from read_nodes(GROUPED, {znodes.config_path(name): CONFIG_BYTES for name in names})
    found = {
        name: _decoded(reply, znodes.config_path(name))
        for name, reply in zip(names, replies, strict=True)
        if isinstance(reply, Data)
    }
    return {name: config for name, config in found.items() if config}

"""The configuration of topics: check, alter, describe (SPEC.md Z). Owns the checks and the one write; brokers take it over when they are notified."""

from collections.abc import Collection, Mapping

from fencepost.impl.admin.cluster import AdminError, ClusterTopics, fitting, read_cluster, refuse_twice
from fencepost.impl.broker.topic_config import SETTINGS
from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import GROUPED
from fencepost.impl.zookeeper.interface import Create, Data, Failed, GetData, Multi, SetData

CHANGE_PARENTS = (Create(znodes.CONFIG), Create(znodes.TOPIC_CONFIGS), Create(znodes.CONFIG_CHANGES))
CONFIG_BYTES = 512
"""What a topic's configuration is believed to hold."""


def change_of(topic: str) -> Create:
    """The notification of a change."""
    return Create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(topic), sequential=True)


def check_config(topic: str, config: Mapping[str, str]) -> None:
    """Names that brokers know and values that they take. Raises AdminError."""
    for name, value in sorted(config.items()):
        _check_name(topic, name)
        setting = SETTINGS[name]
        try:
            setting.read(value)
        except ValueError:
            raise AdminError(
                expected=setting.expected, seen=repr(value), where=f"topic {topic}: {name}"
            ) from None


def _check_name(topic: str, name: str) -> None:
    if name not in SETTINGS:
        names = ", ".join(sorted(SETTINGS))
        raise AdminError(expected=f"one of the settings {names}", seen=repr(name), where=f"topic {topic}")


def alter_config(topic: str, added: Mapping[str, str], removed: Collection[str]) -> ZooKeeperSteps:
    """Write the topic's configuration with these overrides and without those, and notify the brokers; returns it. Raises AdminError."""
    where = f"topic {topic}"
    check_config(topic, added)
    if added.keys() | removed:
        refuse_twice((*added, *removed), "setting", where)
    cluster: ClusterTopics = yield from read_cluster({topic})
    cluster.topic(topic, "alter")
    path = znodes.config_path(topic)
    current = yield GetData(path)
    config = _decoded(current, where) if isinstance(current, Data) else {}
    for name in removed:
        if name not in config:
            raise AdminError(expected="a setting that the topic has of its own", seen=repr(name), where=where)
        del config[name]
    config.update(added)
    data = znodes.encode_configuration(config)
    write = SetData(path, data, current.stat.version) if isinstance(current, Data) else Create(path, data)
    fitting(write, where)
    yield CHANGE_PARENTS
    reply = yield Multi((write, change_of(topic)))
    if isinstance(reply, Failed):
        raise AdminError(
            expected="a topic that nobody else changes",
            seen=f"that another was faster ({reply.error.value})",
            where=where,
            hint="ask again",
        )
    return config


def _decoded(node: Data, where: str) -> dict[str, str]:
    try:
        return znodes.decode_configuration(node.data)
    except ValueError as error:
        raise AdminError(expected="a configuration in JSON", seen=str(error), where=where) from None


def describe_configurations(topics: Collection[str]) -> ZooKeeperSteps:
    """The overrides of these topics, of those that have any."""
    names = sorted(topics)
    replies = yield from read_nodes(GROUPED, {znodes.config_path(name): CONFIG_BYTES for name in names})
    found = {
        name: _decoded(reply, f"topic {name}")
        for name, reply in zip(names, replies, strict=True)
        if isinstance(reply, Data)
    }
    return {name: config for name, config in found.items() if config}

"""Topic configuration that changes while brokers run: /config/topics/T and /config/changes
(docs/spec/cluster.md Z; Kafka's DynamicConfigManager), and /cluster/id.

Owns the overrides in force, the nodes that nobody else makes, and the notifications: which are new, and which
are old enough to go. Must not know what an option does. Its requests are a procedure of their own, so that
nobody waits for them.

    who changes     1. one multi: write /config/topics/T, create /config/changes/config_change_N
    every broker    2. its watch of /config/changes fires   3. read what is new   4. read /config/topics/T,
                    and apply it

A notification says only where to look: one that a broker did not see, since its session had expired, is made
up for by reading all configurations.
"""

import base64
import hashlib
from collections.abc import Callable, Collection

import msgspec
from attrs import define, field

from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.core_interface import Halt
from fencepost.impl.core.procedures import Procedure, Procedures, ZooKeeperSteps
from fencepost.impl.core.topic_config import configured
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import (
    Children,
    Create,
    Data,
    Delete,
    GetChildren,
    GetData,
    WatchEvent,
)
from fencepost.traces.events import Name

ATTEMPTS = 3
"""Rounds of making the nodes: one is enough unless somebody removes them."""
EXPIRATION_MS = 15 * 60 * 1_000
"""How long a notification is kept (Kafka's changeExpirationMs): the bound of their number."""
CONFIG_BYTES, CHANGE_BYTES = 512, 320
"""What a node is believed to hold: all settings; a topic's longest name."""
PARENTS = (
    znodes.CONFIG,
    znodes.TOPIC_CONFIGS,
    znodes.CONFIG_CHANGES,
    znodes.BROKER_SEQUENCE,
    znodes.CLUSTER,
)


@define
class DynamicConfig:
    """cluster_id: empty until it was read. configs: the overrides read last, of topics that have any. seen:
    notifications, and when each was seen first (host time, nanoseconds). everything, notified, topics: what
    is to be looked at; running: whether a procedure does so now. on_options(topic): its options have changed;
    on_all_read(): those of every topic are known."""

    broker_context: BrokerContext
    procedures: Procedures
    on_options: Callable[[str], None]
    on_all_read: Callable[[], None]
    on_unclean_enabled: Callable[[str], None]
    cluster_id: str = ""
    configs: dict[str, dict[str, str]] = field(factory=dict)
    seen: dict[str, int] = field(factory=dict)
    everything: bool = False
    notified: bool = False
    topics: dict[str, None] = field(factory=dict)
    running: bool = False

    # ---- what happens

    def on_session(self) -> None:
        """The watches went with the session before; whatever changed meanwhile is seen now."""
        self.everything = True
        self._look()

    def on_watch(self, watch: WatchEvent) -> bool:
        """Whether the watch was one of these."""
        topic = znodes.topic_of_config_path(watch.path)
        if topic is not None:
            self.topics[topic] = None
        elif watch.path == znodes.CONFIG_CHANGES:
            self.notified = True
        else:
            return False
        self._look()
        return True

    def _look(self) -> None:
        if not self.running:
            self.running = True
            self.procedures.start(self._work())

    def _work(self) -> Procedure:
        while self.everything or self.notified or self.topics:
            if self.everything:
                self.everything = self.notified = False
                yield from self._begin()
            elif self.notified:
                self.notified = False
                yield from self._read_notifications()
            else:
                topics, self.topics = sorted(self.topics), {}
                yield from self._read(topics)
        self.running = False

    # ---- reading

    def _begin(self) -> ZooKeeperSteps:
        """Watch the notifications, then read all configurations: whatever comes later is notified."""
        for _ in range(ATTEMPTS):
            notifications, topics, cluster = yield (
                GetChildren(znodes.CONFIG_CHANGES, watch=True),
                GetChildren(znodes.TOPIC_CONFIGS),
                GetData(znodes.CLUSTER_ID),
            )
            if isinstance(cluster, Data) and not self._is_known(cluster):
                return
            if isinstance(notifications, Children) and isinstance(topics, Children) and self.cluster_id:
                break
            cluster_id = znodes.encode_cluster_id(self.new_cluster_id())
            yield (*(Create(path) for path in PARENTS), Create(znodes.CLUSTER_ID, cluster_id))
        else:
            return
        yield from self._remember(notifications.names)
        nodes = {znodes.config_path(topic): CONFIG_BYTES for topic in topics.names}
        replies = yield from read_nodes(self.broker_context.grouping, nodes)
        said = {
            topic: None
            for topic, reply in zip(topics.names, replies, strict=True)
            if isinstance(reply, Data) and reply.data != znodes.encode_configuration()
        }
        yield from self._read(sorted({*said, *self.configs}))
        self.on_all_read()

    def _is_known(self, cluster: Data) -> bool:
        """Take the cluster's id. A broker that never knew one stops where it cannot be read, as Kafka's; one
        that does goes on."""
        try:
            self.cluster_id = znodes.decode_cluster_id(cluster.data)
        except znodes.BadZnodeError as error:
            self.broker_context.refuse_znode(error)
            if not self.cluster_id:
                self.broker_context.outbox.append(Halt(str(error)))
        return bool(self.cluster_id)

    def new_cluster_id(self) -> str:
        """22 characters, as Kafka writes the 16 bytes of a UUID; whoever creates the node first decides."""
        digest = hashlib.sha256(f"{self.broker_context.node}:{self.broker_context.now}".encode()).digest()
        return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")

    def _read_notifications(self) -> ZooKeeperSteps:
        listed = yield GetChildren(znodes.CONFIG_CHANGES, watch=True)
        if not isinstance(listed, Children):
            return
        new = [name for name in listed.names if name not in self.seen]
        replies = yield from read_nodes(
            self.broker_context.grouping, {f"{znodes.CONFIG_CHANGES}/{name}": CHANGE_BYTES for name in new}
        )
        topics = {
            topic
            for name, reply in zip(new, replies, strict=True)
            if isinstance(reply, Data) and (topic := self._changed(name, reply))
        }
        yield from self._read(sorted(topics))
        yield from self._remember(listed.names)

    def _changed(self, name: str, reply: Data) -> str | None:
        try:
            return znodes.decode_config_change(reply.data, f"{znodes.CONFIG_CHANGES}/{name}")
        except znodes.BadZnodeError as error:
            self._refused("", {znodes.CONFIG_CHANGES: str(error)})
            return None

    def _remember(self, names: Collection[str]) -> ZooKeeperSteps:
        """These notifications have been looked at; old ones go. Every broker tries; a notification is never
        written again, so that its version is 0."""
        now = self.broker_context.now
        self.seen = {name: self.seen.get(name, now) for name in names}
        old = [name for name, since in self.seen.items() if now - since > EXPIRATION_MS * MILLISECOND]
        if old:
            yield tuple(Delete(f"{znodes.CONFIG_CHANGES}/{name}", 0) for name in old)

    def _read(self, topics: Collection[str]) -> ZooKeeperSteps:
        """Read and apply; each node is watched, as the configuration of a topic that is deleted goes without
        a notification."""
        nodes = {znodes.config_path(topic): CONFIG_BYTES for topic in topics}
        replies = yield from read_nodes(self.broker_context.grouping, nodes, watch=True)
        for topic, reply in zip(topics, replies, strict=True):
            path = znodes.config_path(topic)
            try:
                config = znodes.decode_configuration(reply.data, path) if isinstance(reply, Data) else {}
            except znodes.BadZnodeError as error:
                self._refused(topic, {path: str(error)})
                continue
            if config != self.configs.get(topic, {}):
                self.apply(topic, config)

    # ---- applying

    def apply(self, topic: str, config: dict[str, str]) -> None:
        """From now on the topic has these overrides. A bad value is recorded, and the planned one stays."""
        self.configs.pop(topic, None)
        if config:
            self.configs[topic] = config
        before, planned = self.broker_context.topic_options(topic), self.broker_context.planned_options(topic)
        options, refused = configured(planned, config)
        if refused:
            self._refused(topic, refused)
        if options == before:
            return
        self.broker_context.configured.pop(topic, None)
        if options != planned:
            self.broker_context.configured[topic] = options
        self.on_options(topic)
        self.broker_context.record(Name.TOPIC_CONFIGURED, TopicPartition(topic, -1), detail=_text(config))
        if options.unclean_leader_election and not before.unclean_leader_election:
            self.on_unclean_enabled(topic)

    def _refused(self, topic: str, refused: dict[str, str]) -> None:
        key = TopicPartition(topic, -1) if topic else None
        self.broker_context.record(Name.MARK, key, cause="configuration_refused", detail=_text(refused))


def _text(config: dict[str, str]) -> str:
    return msgspec.json.encode(config, order="sorted").decode()

"""Configuration that changes while brokers run: /config/topics/T, /config/brokers/N or <default>, and
/config/changes (docs/spec/cluster.md Z; Kafka's DynamicConfigManager), and /cluster/id.

Owns the overrides in force, the nodes for them, and the notifications: which are new, and which are old
enough to be deleted. Must not know the effect of an option. Its requests are separate procedures, so no other
work waits for them.

    who changes     1. one multi: write /config/topics/T, create /config/changes/config_change_N
    every broker    2. its watch of /config/changes fires   3. read what is new   4. read /config/topics/T,
                    and apply it

A notification only says which configuration changed. A broker may miss one while its session is expired;
therefore it reads all configurations afterwards.
"""

import base64
import hashlib
from collections.abc import Callable, Collection

from attrs import define, field

from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.core_interface import Halt
from fencepost.impl.core.procedures import Procedure, Procedures, ZooKeeperSteps
from fencepost.impl.core.topic_config import as_text, configured, in_force
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import interface as zk
from fencepost.impl.zookeeper import znodes
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.inherited_settings import EVERY_BROKER, INHERITED

ATTEMPTS = 3
"""Rounds of creating the nodes. Reason: one is enough unless another client removes them."""
EXPIRATION_MS = 15 * 60 * 1_000
"""How long a notification is kept (Kafka's changeExpirationMs). This bounds their number."""
CONFIG_BYTES, CHANGE_BYTES = 512, 320
"""Estimated sizes of nodes: all settings of a topic; a topic's longest name."""
PARENTS = (znodes.CONFIG, znodes.TOPIC_CONFIGS, znodes.CONFIG_CHANGES, znodes.BROKER_SEQUENCE, znodes.CLUSTER)


@define
class DynamicConfig:
    """The dynamic configuration of one broker."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Runs sequences of ZooKeeper requests.
    procedures: Procedures
    # The topics that have a replica here, or that clients are told of.
    known_topics: Callable[[], Collection[str]]
    # Called with a topic after its options changed.
    on_options: Callable[[str], None]
    # Called when the options of every topic are known.
    on_all_read: Callable[[], None]
    # Called with a topic after unclean leader election was enabled for it.
    on_unclean_enabled: Callable[[str], None]
    # The id of the cluster; "" until it was read.
    cluster_id: str = ""
    # The last overrides read, of topics and brokers that have any.
    configs: dict[str, dict[str, str]] = field(factory=dict)
    # Known notifications, with the host time at which each was first seen, in nanoseconds.
    seen: dict[str, int] = field(factory=dict)
    # Whether all configurations must be read.
    everything: bool = False
    # Whether the notifications must be read.
    notified: bool = False
    # Topics with a configuration that must be read; an ordered set.
    topics: dict[str, None] = field(factory=dict)
    # Whether a procedure is reading now.
    running: bool = False

    # ---- what happens

    def on_session(self) -> None:
        """A new session has no watches; changes since the last session are read now."""
        self.everything = True
        self._look()

    def on_watch(self, watch: zk.WatchEvent) -> bool:
        """Handle a watch. Returns whether it was a watch of this module."""
        topic = znodes.name_of_config_path(watch.path)
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
        """Watch the notifications, then read all configurations. Later changes have a notification."""
        for _ in range(ATTEMPTS):
            notifications, topics, brokers, cluster = yield (
                zk.GetChildren(znodes.CONFIG_CHANGES, watch=True),
                zk.GetChildren(znodes.TOPIC_CONFIGS),
                zk.GetChildren(znodes.BROKER_CONFIGS),
                zk.GetData(znodes.CLUSTER_ID),
            )
            if isinstance(cluster, zk.Data) and not self._is_known(cluster):
                return
            if isinstance(notifications, zk.Children) and isinstance(topics, zk.Children) and self.cluster_id:
                break
            cluster_id = znodes.encode_cluster_id(self.new_cluster_id())
            yield (*(zk.Create(path) for path in PARENTS), zk.Create(znodes.CLUSTER_ID, cluster_id))
        else:
            return
        yield from self._remember(notifications.names)
        nodes = {znodes.config_path(topic): CONFIG_BYTES for topic in topics.names}
        replies = yield from read_nodes(self.broker_context.grouping, nodes)
        said = {
            topic: None
            for topic, reply in zip(topics.names, replies, strict=True)
            if isinstance(reply, zk.Data) and reply.data != znodes.encode_configuration()
        }
        listed = brokers.names if isinstance(brokers, zk.Children) else ()
        known = {*map(znodes.broker_name, listed)} & {*self._of_brokers()}
        yield from self._read(sorted({*said, *known, *self.configs}))
        self.on_all_read()

    def _is_known(self, cluster: zk.Data) -> bool:
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
        """A new cluster id: 22 characters, as Kafka encodes the 16 bytes of a UUID. The first broker that
        creates the node decides."""
        digest = hashlib.sha256(f"{self.broker_context.node}:{self.broker_context.now}".encode()).digest()
        return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")

    def _read_notifications(self) -> ZooKeeperSteps:
        listed = yield zk.GetChildren(znodes.CONFIG_CHANGES, watch=True)
        if not isinstance(listed, zk.Children):
            return
        new = [name for name in listed.names if name not in self.seen]
        replies = yield from read_nodes(
            self.broker_context.grouping, {f"{znodes.CONFIG_CHANGES}/{name}": CHANGE_BYTES for name in new}
        )
        topics = {
            topic
            for name, reply in zip(new, replies, strict=True)
            if isinstance(reply, zk.Data) and (topic := self._changed(name, reply))
        }
        yield from self._read(sorted(topics))
        yield from self._remember(listed.names)

    def _changed(self, name: str, reply: zk.Data) -> str | None:
        try:
            found = znodes.decode_config_change(reply.data, f"{znodes.CONFIG_CHANGES}/{name}")
        except znodes.BadZnodeError as error:
            self._refused("", {znodes.CONFIG_CHANGES: str(error)})
            return None
        of_another = found and znodes.is_of_brokers(found) and found not in self._of_brokers()
        return None if of_another else found

    def _remember(self, names: Collection[str]) -> ZooKeeperSteps:
        """Remember these notifications and delete old ones. Every broker tries. A notification is never
        changed, so its version is 0."""
        now = self.broker_context.now
        self.seen = {name: self.seen.get(name, now) for name in names}
        old = [name for name, since in self.seen.items() if now - since > EXPIRATION_MS * MILLISECOND]
        if old:
            yield tuple(zk.Delete(f"{znodes.CONFIG_CHANGES}/{name}", 0) for name in old)

    def _read(self, topics: Collection[str]) -> ZooKeeperSteps:
        """Read and apply configurations. Each node is watched, because the configuration of a deleted topic
        is removed without a notification."""
        nodes = {znodes.config_path(topic): CONFIG_BYTES for topic in topics}
        replies = yield from read_nodes(self.broker_context.grouping, nodes, watch=True)
        for topic, reply in zip(topics, replies, strict=True):
            path = znodes.config_path(topic)
            try:
                config = znodes.decode_configuration(reply.data, path) if isinstance(reply, zk.Data) else {}
            except znodes.BadZnodeError as error:
                self._refused(topic, {path: str(error)})
                continue
            if config != self.configs.get(topic, {}):
                self.apply(topic, config)

    # ---- applying

    def _of_brokers(self) -> tuple[str, str]:
        """Who hands settings on to topics; the last one wins."""
        return EVERY_BROKER, znodes.broker_name(self.broker_context.node)

    def apply(self, name: str, config: dict[str, str]) -> None:
        """Apply `config`, the overrides of the topic `name`, or those of brokers to every topic."""
        self.configs.pop(name, None)
        if config:
            self.configs[name] = config
        if name not in self._of_brokers():
            self._take_over(name)
            return
        context = self.broker_context
        context.inherited = {
            key: value for one in self._of_brokers() for key, value in self.configs.get(one, {}).items()
        }
        context.record(Name.TOPIC_CONFIGURED, detail=as_text(context.inherited))
        for topic in sorted({*context.configured, *self.known_topics()}):
            self._take_over(topic, INHERITED)

    def in_force(self, topic: str) -> dict[str, str]:
        """Protection P226-STATIC: what counts for a topic is its own override, and else what it inherits."""
        context = self.broker_context
        return in_force(context.planned_options(topic), context.inherited, self.configs.get(topic, {}))

    def _take_over(self, topic: str, cause: str = "") -> None:
        """An invalid value is recorded, and the planned one stays."""
        context = self.broker_context
        planned, config = context.planned_options(topic), self.in_force(topic)
        before = context.configured.get(topic, planned)
        options, refused = configured(planned, config)
        if refused:
            self._refused(topic, refused)
        context.record(Name.TOPIC_CONFIGURED, TopicPartition(topic, -1), cause=cause, detail=as_text(config))
        context.configured.pop(topic, None)
        if options != planned or context.inherited:
            context.configured[topic] = options
        if options == before:
            return
        self.on_options(topic)
        if options.unclean_leader_election and not before.unclean_leader_election:
            self.on_unclean_enabled(topic)

    def _refused(self, topic: str, refused: dict[str, str]) -> None:
        key = TopicPartition(topic, -1) if topic else None
        self.broker_context.record(Name.MARK, key, cause="configuration_refused", detail=as_text(refused))

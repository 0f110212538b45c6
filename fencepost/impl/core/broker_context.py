"""The context that all parts of a core share: identity, options, files, the time of the step and its effects.

Owns the outbox. Must not know how a part uses it. `now` changes only at the beginning of a step.
"""

from typing import Unpack

from attrs import define, field

from fencepost.impl.core.core_interface import (
    AskZooKeeper,
    CancelTimer,
    Effect,
    RecordEvent,
    Send,
    SetTimer,
    TimerKey,
)
from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.core.topic_config import as_text, configured, in_force
from fencepost.impl.messages.broker_api import Message, TopicPartition
from fencepost.impl.zookeeper.grouping import GROUPED, Grouping
from fencepost.impl.zookeeper.interface import ZooKeeperRequest
from fencepost.impl.zookeeper.znodes import BadZnodeError
from fencepost.traces.events import EventColumns, Name
from fencepost.traces.kafka_names.inherited_settings import INHERITED
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC, STATE_TOPIC
from fencepost.traces.plan import ClusterOptions, TopicOptions

MILLISECOND = 1_000_000
CAUSE_BUCKET = 100 * MILLISECOND
FIRST_CLIENT = 1000
"""Node ids from here on are clients; lower ones are brokers."""
FIRST_WIRE_CLIENT = 1 << 48
"""Node ids from here on are connections of Kafka's protocol (wire/); our own clients draw theirs below."""
ZNODE_REFUSED = "znode_refused"
"""The mark of a node of ZooKeeper that could not be read."""
DEFAULT_TOPIC = TopicOptions()
INTERNAL = {
    OFFSETS_TOPIC: TopicOptions(
        name=OFFSETS_TOPIC, cleanup_policy="compact", segment_bytes=100 * 1024 * 1024
    ),
    STATE_TOPIC: TopicOptions(name=STATE_TOPIC, cleanup_policy="compact", segment_bytes=100 * 1024 * 1024),
}
"""Kafka's own topics, with the options that apply unless the plan has others."""


@define
class BrokerContext:
    """The context of one broker incarnation."""

    # The broker id.
    node: int
    # The options of the cluster.
    options: ClusterOptions
    # The broker's log directory.
    files: FileSystem
    # Host time of the current step in nanoseconds; it never decreases.
    now: int = 0
    # The czxid of this incarnation's registration (KIP-380); -1 until it is registered.
    broker_epoch: int = -1
    # The current ZooKeeper session; 0 before the first.
    session_id: int = 0
    # Effects of the current step, in the order of release. Empty between steps.
    outbox: list[Effect] = field(factory=list)
    # The last one used. No two incarnations of a broker share one.
    correlation_id: int = 0
    # The port of the process; 0 in the simulator.
    port: int = 0
    # How ZooKeeper requests are grouped.
    grouping: Grouping = GROUPED
    # The state, as named in impl/core/broker_states.py; only that module changes it.
    broker_state: str = "NotRunning"
    # The number of illegal transitions that were refused.
    refused_states: int = 0
    # The options of topics with a configuration in ZooKeeper that differs from the plan; only
    # impl/broker/dynamic_config.py changes it.
    configured: dict[str, TopicOptions] = field(factory=dict)
    # What topics inherit: the dynamic settings of this broker and of all brokers; only dynamic_config.py
    # changes it.
    inherited: dict[str, str] = field(factory=dict)
    # The id of the last ZooKeeper request.
    _request_id: int = 0

    def send(self, target: int, message: Message, cause: tuple[int, ...] = ()) -> None:
        """Send a message when the step's effects are released.

        Args:
            target: node id of the receiver.
            message: the message.
            cause: small integers that identify what caused it; they key the network's randomness.
        """
        self.outbox.append(Send(target, message, cause))

    def reply(self, target: int, message: Message, correlation_id: int) -> None:
        """Answer a request.

        The correlation id of a client names its operation and attempt, so it is the cause. That of a broker
        is a running number, so the time is the cause.

        Args:
            target: the sender of the request.
            message: the response.
            correlation_id: that of the request.
        """
        cause = (correlation_id,) if target >= FIRST_CLIENT else (self.now // CAUSE_BUCKET,)
        self.outbox.append(Send(target, message, cause))

    def send_periodic(self, target: int, message: Message) -> None:
        """Send traffic that no single operation causes. Its randomness is keyed by the time, coarsely.

        Args:
            target: node id of the receiver.
            message: the message.
        """
        self.outbox.append(Send(target, message, (self.now // CAUSE_BUCKET,)))

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        """Fire the timer `key` after `delay_ms` of host time."""
        self.outbox.append(SetTimer(key, self.now + delay_ms * MILLISECOND))

    def cancel_timer(self, key: TimerKey) -> None:
        """Cancel the timer `key`."""
        self.outbox.append(CancelTimer(key))

    def ask_zookeeper(self, request: ZooKeeperRequest) -> int:
        """Send a ZooKeeper request on the current session; returns its id."""
        self._request_id += 1
        self.outbox.append(AskZooKeeper(self._request_id, request))
        return self._request_id

    def next_correlation_id(self) -> int:
        """A new correlation id of this incarnation."""
        self.correlation_id += 1
        return self.correlation_id

    def refuse_znode(self, error: BadZnodeError) -> None:
        """A node of ZooKeeper is not what its path says, and is left alone: say so."""
        self.record(Name.MARK, cause=ZNODE_REFUSED, detail=str(error))

    def record(
        self,
        name: Name,
        key: TopicPartition | None = None,
        *,
        on_disk: bool = False,
        **columns: Unpack[EventColumns],
    ) -> None:
        """Add a trace event with these columns; the host says when it happened. key: the partition, if it is
        about one. on_disk: see RecordEvent."""
        if key is not None:
            columns["topic"], columns["partition"] = key
        self.outbox.append(RecordEvent(name, columns, on_disk))

    def topic_options(self, topic: str) -> TopicOptions:
        """The current options of a topic."""
        known = self.configured.get(topic)
        if known is None and self.inherited:
            known = self._inherit(topic)
        return known or self.planned_options(topic)

    def _inherit(self, topic: str) -> TopicOptions:
        """A topic that is seen for the first time takes over what brokers have."""
        planned = self.planned_options(topic)
        config = in_force(planned, self.inherited, {})
        self.configured[topic], _ = configured(planned, config)
        self.record(Name.TOPIC_CONFIGURED, TopicPartition(topic, -1), cause=INHERITED, detail=as_text(config))
        return self.configured[topic]

    def planned_options(self, topic: str) -> TopicOptions:
        """The options of a topic without its configuration in ZooKeeper; Kafka's defaults for a topic that is
        not in the plan."""
        default = INTERNAL.get(topic, DEFAULT_TOPIC)
        return next((options for options in self.options.topics if options.name == topic), default)

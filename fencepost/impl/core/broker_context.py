"""What every part of a core shares: its identity, its options, its files, the time of the step and the
effects so far.

Owns the outbox. Must not know what any part does with it. `now` moves only at the beginning of a step.
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
from fencepost.impl.core.files import FileSystem
from fencepost.impl.messages.broker_api import Message, TopicPartition
from fencepost.impl.zookeeper.grouping import GROUPED, Grouping
from fencepost.impl.zookeeper.interface import ZooKeeperRequest
from fencepost.traces.events import EventColumns, Name
from fencepost.traces.plan import ClusterOptions, TopicOptions

MILLISECOND = 1_000_000
CAUSE_BUCKET = 100 * MILLISECOND
FIRST_CLIENT = 1000
"""Node ids from here on are clients; below are brokers."""
FIRST_WIRE_CLIENT = 1 << 48
"""Node ids from here on are connections of Kafka's protocol (wire/); our own clients draw theirs below."""
DEFAULT_TOPIC = TopicOptions()
INTERNAL_TOPICS = {
    "__consumer_offsets": TopicOptions(
        name="__consumer_offsets", cleanup_policy="compact", segment_bytes=100 * 1024 * 1024
    )
}
"""Kafka's own topics, where a plan does not say otherwise."""


@define
class BrokerContext:
    """node: broker id. now: host time of the current step, nanoseconds. outbox: effects of the current step,
    in release order. broker_epoch: czxid of this incarnation's registration, -1 until registered. session_id:
    of the current ZooKeeper session, 0 before the first. correlation_id: the last one used; no two
    incarnations share any. port: where the process listens, 0 in the simulator. grouping: how ZooKeeper
    requests are put together. broker_state: as impl/core/broker_states.py names it, moved by that alone;
    refused_states: illegal transitions that were met. configured: the options of topics whose configuration
    in ZooKeeper says other than the plan, moved by impl/broker/dynamic_config.py alone."""

    node: int
    options: ClusterOptions
    files: FileSystem
    now: int = 0
    broker_epoch: int = -1
    session_id: int = 0
    outbox: list[Effect] = field(factory=list)
    correlation_id: int = 0
    port: int = 0
    grouping: Grouping = GROUPED
    broker_state: str = "NotRunning"
    refused_states: int = 0
    configured: dict[str, TopicOptions] = field(factory=dict)
    _request_id: int = 0

    def send(self, target: int, message: Message, cause: tuple[int, ...] = ()) -> None:
        """Send a message when the step's effects are released."""
        self.outbox.append(Send(target, message, cause))

    def reply(self, target: int, message: Message, correlation_id: int) -> None:
        """Answer a request. A client's correlation id names its operation and attempt, so it is a cause; a
        broker's is a running number, so time is."""
        cause = (correlation_id,) if target >= FIRST_CLIENT else (self.now // CAUSE_BUCKET,)
        self.outbox.append(Send(target, message, cause))

    def send_periodic(self, target: int, message: Message) -> None:
        """Send traffic that no single operation causes; what keys its randomness is the time, coarsely."""
        self.outbox.append(Send(target, message, (self.now // CAUSE_BUCKET,)))

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        """Fire `key` after `delay_ms` of host time."""
        self.outbox.append(SetTimer(key, self.now + delay_ms * MILLISECOND))

    def cancel_timer(self, key: TimerKey) -> None:
        """Forget `key`."""
        self.outbox.append(CancelTimer(key))

    def ask_zookeeper(self, request: ZooKeeperRequest) -> int:
        """Send a request on the current session; returns its id."""
        self._request_id += 1
        self.outbox.append(AskZooKeeper(self._request_id, request))
        return self._request_id

    def next_correlation_id(self) -> int:
        """A fresh correlation id of this incarnation."""
        self.correlation_id += 1
        return self.correlation_id

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
        """The options of a topic as they are now."""
        return self.configured.get(topic) or self.planned_options(topic)

    def planned_options(self, topic: str) -> TopicOptions:
        """The options of a topic without those of its configuration in ZooKeeper; Kafka's for one that the
        plan does not name."""
        default = INTERNAL_TOPICS.get(topic, DEFAULT_TOPIC)
        return next((options for options in self.options.topics if options.name == topic), default)

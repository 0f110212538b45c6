"""What every part of a core shares: its identity, its options, its files, the time of the step and the effects so far.

Owns the outbox. Must not know what any part does with it. `now` moves only at the beginning of a step.
"""

from enum import StrEnum

from attrs import define, field

from fencepost.impl.files import FileSystem
from fencepost.impl.messages import Message, TopicPartition
from fencepost.impl.seam import AskZooKeeper, CancelTimer, Effect, Record, Send, SetTimer, TimerKey
from fencepost.impl.zookeeper import Request
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, TopicOptions

MILLISECOND = 1_000_000
CAUSE_BUCKET = 100 * MILLISECOND
FIRST_CLIENT = 1000
"""Node ids from here on are clients; below are brokers."""
DEFAULT_TOPIC = TopicOptions()


class BrokerState(StrEnum):
    """Kafka's names of what a broker is about (C9). It starts with BROKER_STARTED, and a controller shows as CONTROLLER_ELECTED."""

    STARTING = "Starting"
    RECOVERING = "RecoveringFromUncleanShutdown"
    RUNNING = "RunningAsBroker"
    PENDING_CONTROLLED_SHUTDOWN = "PendingControlledShutdown"
    SHUTTING_DOWN = "BrokerShuttingDown"


@define
class Shell:
    """node: broker id. now: host time of the current step, nanoseconds. outbox: effects of the current step, in release order.
    broker_epoch: czxid of this incarnation's registration, -1 until registered. session_id: of the current ZooKeeper session, 0
    before the first. correlation_id: the last one used; no two incarnations share any.
    port: where the process listens, 0 in the simulator."""

    node: int
    options: ClusterOptions
    files: FileSystem
    now: int = 0
    broker_epoch: int = -1
    session_id: int = 0
    outbox: list[Effect] = field(factory=list)
    correlation_id: int = 0
    port: int = 0
    _request_id: int = 0

    def send(self, target: int, message: Message, cause: tuple[int, ...] = ()) -> None:
        """Send a message when the step's effects are released."""
        self.outbox.append(Send(target, message, cause))

    def reply(self, target: int, message: Message, correlation_id: int) -> None:
        """Answer a request. A client's correlation id names its operation and attempt, so it is a cause; a broker's is a running number, so time is."""
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

    def ask_zookeeper(self, request: Request) -> int:
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
        controller_epoch: int = -1,
        broker_epoch: int = -1,
        leader: int = -1,
        leader_epoch: int = -1,
        zk_version: int = -1,
        offset: int = -1,
        end_offset: int = -1,
        high_watermark: int = -1,
        log_start_offset: int = -1,
        isr: tuple[int, ...] = (),
        values: tuple[int, ...] = (),
        cause: str = "",
        detail: str = "",
    ) -> None:
        """Add a trace event; the driver stamps it with the world's time."""
        event = Event(
            time=0,
            name=name,
            node=self.node,
            topic=key.topic if key else None,
            partition=key.partition if key else -1,
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch,
            leader=leader,
            leader_epoch=leader_epoch,
            zk_version=zk_version,
            offset=offset,
            end_offset=end_offset,
            high_watermark=high_watermark,
            log_start_offset=log_start_offset,
            isr=isr,
            values=values,
            cause=cause,
            detail=detail,
        )
        self.outbox.append(Record(event))

    def topic_options(self, topic: str) -> TopicOptions:
        """The options of a topic; Kafka's defaults for one that the plan does not name."""
        return next((options for options in self.options.topics if options.name == topic), DEFAULT_TOPIC)

"""Control requests to brokers (C10): batched per broker and event, one in flight per broker, in order,
repeated until the broker is gone.

Owns the queues. Must not know the meaning of the requests.
"""

from collections import deque
from collections.abc import Collection, Iterable
from typing import Any

from attrs import define, field
from msgspec.structs import replace

from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.names import name_of
from fencepost.impl.zookeeper.znodes import LeaderAndIsr

TIMER = "control_request"
_NO_STATE = LeaderAndIsr(leader=-1, leader_epoch=-1, controller_epoch=-1, isr=())


@define
class Channel:
    """The channel to one incarnation of one broker."""

    broker: int
    broker_epoch: int
    # The first request is in flight if `in_flight` is not 0.
    queue: deque[kafka.ControlRequest] = field(factory=deque)
    in_flight: int = 0


@define
class Channels:
    """The channels and the batch under construction."""

    broker_context: BrokerContext
    # By broker id.
    channels: dict[int, Channel] = field(factory=dict)
    # Partitions by broker.
    leader_and_isr: dict[int, dict[kafka.TopicPartition, None]] = field(factory=dict)
    # For all brokers.
    metadata: dict[kafka.TopicPartition, None] = field(factory=dict)
    # Per broker, the leader epoch and whether to delete.
    stop_replicas: dict[int, dict[kafka.TopicPartition, tuple[int, bool]]] = field(factory=dict)

    # ---- brokers come and go

    def match(self, live_brokers: dict[int, int]) -> None:
        """Keep one channel to each live incarnation, and no others."""
        for broker, channel in list(self.channels.items()):
            if live_brokers.get(broker) != channel.broker_epoch:
                self.broker_context.cancel_timer((TIMER, broker))
                del self.channels[broker]
        for broker, broker_epoch in sorted(live_brokers.items()):
            self.channels.setdefault(broker, Channel(broker, broker_epoch))

    def close(self) -> None:
        """Resignation: send nothing more."""
        self.match({})
        self._empty_batch()

    def _empty_batch(self) -> None:
        self.leader_and_isr, self.metadata, self.stop_replicas = {}, {}, {}

    # ---- the batch

    def add_leader_and_isr(
        self, brokers: Iterable[int], keys: Collection[kafka.TopicPartition], *, metadata: bool = True
    ) -> None:
        """Send these partitions' states to these brokers. All brokers also get the metadata, unless they just
        got it."""
        for broker in brokers if keys else ():
            self.leader_and_isr.setdefault(broker, {}).update(dict.fromkeys(keys))
        if metadata:
            self.add_metadata(keys)

    def add_metadata(self, keys: Iterable[kafka.TopicPartition]) -> None:
        """Send the metadata of these partitions to every broker."""
        self.metadata.update(dict.fromkeys(keys))

    def add_stop_replica(
        self, broker: int, key: kafka.TopicPartition, leader_epoch: int, *, delete: bool
    ) -> None:
        """This broker stops its replica, and deletes it if requested. The request is sent after all brokers
        got the leaders of the batch."""
        self.stop_replicas.setdefault(broker, {})[key] = (leader_epoch, delete)

    def introduce(self, context: ControllerContext) -> None:
        """Protection KAFKA-4443: before a new controller assigns a role, it sends the live brokers and all
        partitions to every broker. A broker that has just started does not follow a leader that it does not
        know."""
        self.add_metadata(context.states)
        self.flush(context, metadata_always=True)

    def flush(self, context: ControllerContext, *, metadata_always: bool = False) -> None:
        """Queue one LeaderAndIsr, one UpdateMetadata and one StopReplica per broker from the batch.

        Args:
            context: the controller's state.
            metadata_always: send UpdateMetadata even if no partition was added.
        """
        live = tuple(sorted(context.electable()))
        stopping = tuple(sorted(context.shutting_down))
        states: dict[kafka.TopicPartition, kafka.PartitionState] = {}
        for broker, keys in sorted(self.leader_and_isr.items()):
            if broker in self.channels:
                states_sent = _states(context, keys, states, forget=False)
                self._queue(
                    broker,
                    kafka.LeaderAndIsrRequest(
                        **self._addressed(context, broker), partitions=states_sent, live_brokers=live
                    ),
                )
        if self.metadata or metadata_always:
            states_sent = _states(context, self.metadata, states)
            for broker in sorted(self.channels):
                self._queue(
                    broker,
                    kafka.UpdateMetadataRequest(
                        **self._addressed(context, broker),
                        partitions=states_sent,
                        live_brokers=live,
                        shutting_down=stopping,
                    ),
                )
        for broker, stopped in sorted(self.stop_replicas.items()):
            if broker in self.channels:
                self._queue(
                    broker,
                    kafka.StopReplicaRequest(
                        **self._addressed(context, broker),
                        partitions=tuple((key, *stopped[key]) for key in sorted(stopped)),
                    ),
                )
        self._empty_batch()

    def _addressed(self, context: ControllerContext, broker: int) -> dict[str, Any]:
        return {
            "correlation_id": 0,
            "controller_id": self.broker_context.node,
            "controller_epoch": context.epoch,
            "broker_epoch": self.channels[broker].broker_epoch,
        }

    # ---- sending

    def _queue(self, broker: int, request: kafka.ControlRequest) -> None:
        channel = self.channels[broker]
        channel.queue.append(request)
        if not channel.in_flight:
            self._send(channel)

    def _send(self, channel: Channel) -> None:
        request = replace(channel.queue[0], correlation_id=self.broker_context.next_correlation_id())
        channel.in_flight = request.correlation_id
        self.broker_context.send_periodic(channel.broker, request)
        self.broker_context.set_timer(
            (TIMER, channel.broker), self.broker_context.options.controller_request_timeout_ms
        )

    def on_timer(self, broker: int) -> None:
        """A request was not answered in time: send it again."""
        channel = self.channels.get(broker)
        if channel is not None and channel.queue:
            self.resend_until_answered(channel)

    def resend_until_answered(self, channel: Channel) -> None:
        """Protection KAFKA-2729: what was not answered is sent again, the same request. A leader that never
        hears of its new epoch keeps a stale version of its state, and can change its ISR no more."""
        self._send(channel)

    def on_response(self, broker: int, response: kafka.ControlResponse) -> kafka.ControlRequest | None:
        """Send the next request.

        Args:
            broker: the sender of the response.
            response: its response.

        Returns:
            the request that was answered; None for an unexpected response.
        """
        channel = self.channels.get(broker)
        if channel is None or not channel.in_flight or channel.in_flight != response.correlation_id:
            return None
        if response.kind != name_of(channel.queue[0]):
            return None
        answered = channel.queue.popleft()
        channel.in_flight = 0
        self.broker_context.cancel_timer((TIMER, broker))
        if channel.queue:
            self._send(channel)
        return answered


def _states(
    context: ControllerContext,
    keys: Iterable[kafka.TopicPartition],
    known: dict[kafka.TopicPartition, kafka.PartitionState],
    *,
    forget: bool = True,
) -> tuple[kafka.PartitionState, ...]:
    """The states of these partitions for a request.

    known: states already made in this batch; all brokers get the same. A partition of a topic under deletion
    may have no state any more; the request then says to forget it. forget: false for a LeaderAndIsr, which
    still gets the role that was written before the deletion began; StopReplica does the rest.
    """
    states_sent = []
    states, assignments, out_of_service = context.states, context.assignments, context.out_of_service
    for key in sorted(keys):
        leaving = key.topic in out_of_service
        said = None if leaving else known.get(key)
        if said is None:
            leaving = leaving and forget
            state = states.get(key)
            if state is None:
                if not leaving or key not in assignments:
                    continue
                state = _NO_STATE
            leader = kafka.LEADER_DURING_DELETE if leaving else state.leader
            known[key] = said = kafka.PartitionState(
                key,
                state.controller_epoch,
                leader,
                state.leader_epoch,
                state.isr,
                state.zk_version,
                assignments[key],
            )
        states_sent.append(said)
    return tuple(states_sent)

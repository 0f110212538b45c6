"""The metadata that this broker returns to clients, from UpdateMetadata only. It may be stale; only decisions
about which brokers are alive may use it."""

from collections.abc import Iterable

from attrs import define, field

from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.kafka_names.outcomes import ErrorCode


@define
class MetadataCache:
    """The metadata cache of one broker."""

    # (leader, leader epoch) per partition.
    leaders: dict[kafka.TopicPartition, tuple[int, int]] = field(factory=dict)
    # The same partitions by topic and number, in the controller's last description.
    topics: dict[str, dict[int, kafka.PartitionState]] = field(factory=dict)
    # The controller that sent the last applied request; -1 before the first.
    controller_id: int = -1
    # Ids of the brokers that may lead or join an ISR, sorted.
    live_brokers: tuple[int, ...] = ()
    # Ids of the brokers that run and are about to stop.
    shutting_down: tuple[int, ...] = ()
    # (controller epoch, correlation id) of the last applied request; it never decreases.
    latest: tuple[int, int] = (-1, -1)

    def update(self, request: kafka.UpdateMetadataRequest) -> None:
        """Apply a controller's request, unless a later one was already applied. A retried request may arrive
        after the next one, and nothing would repair the effect of the stale copy before another request."""
        epoch, number = self.latest
        if request.controller_epoch == epoch and request.correlation_id < number:
            return
        self.latest = (request.controller_epoch, request.correlation_id)
        self.controller_id = request.controller_id
        self.live_brokers, self.shutting_down = request.live_brokers, request.shutting_down
        for state in request.partitions:
            if state.leader == kafka.LEADER_DURING_DELETE:
                self.leaders.pop(state.partition, None)
                self._forget(state.partition)
            else:
                self.leaders[state.partition] = (state.leader, state.leader_epoch)
                known = self.topics.get(state.partition.topic)
                if known is None:
                    known = self.topics[state.partition.topic] = {}
                known[state.partition.partition] = state

    def _forget(self, key: kafka.TopicPartition) -> None:
        known = self.topics.get(key.topic)
        if known is not None:
            known.pop(key.partition, None)
            if not known:
                del self.topics[key.topic]

    def runs(self, broker: int) -> bool:
        """Whether the broker is alive by the metadata, even if it is about to stop."""
        return broker in self.live_brokers or broker in self.shutting_down

    def knows(self, topic: str) -> bool:
        """Whether the topic exists by the metadata; every topic has a partition 0."""
        return kafka.TopicPartition(topic, 0) in self.leaders

    def leader_of(self, key: kafka.TopicPartition) -> int:
        """The leader; negative if there is none."""
        return self.leaders.get(key, (kafka.NO_LEADER, -1))[0]

    def answer(self, request: kafka.MetadataRequest) -> kafka.MetadataResponse:
        """The metadata of the requested topics, or of all."""
        names: Iterable[str] = self.topics if request.topics is None else request.topics
        return kafka.MetadataResponse(
            correlation_id=request.correlation_id,
            partitions=tuple(
                kafka.PartitionMetadata(
                    partition=state.partition,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    replicas=state.replicas,
                    isr=state.isr,
                )
                for name in sorted(set(names))
                for _, state in sorted(self.topics.get(name, {}).items())
            ),
            live_brokers=self.live_brokers,
            controller_id=self.controller_id,
            errors=tuple(
                (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                for name in request.topics or ()
                if name not in self.topics
            ),
        )

"""What this broker tells clients about leaders, learnt from UpdateMetadata only. May be stale; must not be
used to decide anything but liveness."""

from collections.abc import Iterable

from attrs import define, field

from fencepost.impl.messages.broker_api import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    PartitionState,
    TopicPartition,
    UpdateMetadataRequest,
)
from fencepost.traces.outcomes import ErrorCode


@define
class MetadataCache:
    """leaders: (leader, leader epoch) per partition; live_brokers: sorted ids, and shutting_down those that
    run but are about to stop. latest: (controller epoch, correlation id) of the request that was taken over
    last. topics: the same partitions by topic and number, as the controller described them last.
    controller_id: of that request, -1 before the first."""

    leaders: dict[TopicPartition, tuple[int, int]] = field(factory=dict)
    topics: dict[str, dict[int, PartitionState]] = field(factory=dict)
    controller_id: int = -1
    live_brokers: tuple[int, ...] = ()
    shutting_down: tuple[int, ...] = ()
    latest: tuple[int, int] = (-1, -1)

    def update(self, request: UpdateMetadataRequest) -> None:
        """Take over what the controller said, unless it said something later already: a request that was sent
        again may be overtaken by the next, and nothing but the next request would ever mend what a late copy
        of the old one undid."""
        epoch, number = self.latest
        if request.controller_epoch == epoch and request.correlation_id < number:
            return
        self.latest = (request.controller_epoch, request.correlation_id)
        self.controller_id = request.controller_id
        self.live_brokers, self.shutting_down = request.live_brokers, request.shutting_down
        for state in request.partitions:
            if state.leader == LEADER_DURING_DELETE:
                self.leaders.pop(state.partition, None)
                self._forget(state.partition)
            else:
                self.leaders[state.partition] = (state.leader, state.leader_epoch)
                known = self.topics.get(state.partition.topic)
                if known is None:
                    known = self.topics[state.partition.topic] = {}
                known[state.partition.partition] = state

    def _forget(self, key: TopicPartition) -> None:
        known = self.topics.get(key.topic)
        if known is not None:
            known.pop(key.partition, None)
            if not known:
                del self.topics[key.topic]

    def runs(self, broker: int) -> bool:
        """Whether the broker was said to be alive, be it about to stop."""
        return broker in self.live_brokers or broker in self.shutting_down

    def knows(self, topic: str) -> bool:
        """Whether the topic exists, as far as the controller said; every topic has a partition 0."""
        return TopicPartition(topic, 0) in self.leaders

    def leader_of(self, key: TopicPartition) -> int:
        """Below 0 without one."""
        return self.leaders.get(key, (NO_LEADER, -1))[0]

    def answer(self, request: MetadataRequest) -> MetadataResponse:
        """The topics asked for, or the whole cache."""
        names: Iterable[str] = self.topics if request.topics is None else request.topics
        return MetadataResponse(
            correlation_id=request.correlation_id,
            partitions=tuple(
                PartitionMetadata(
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

"""What this broker tells clients about leaders, learnt from UpdateMetadata only. May be stale; must not be used to decide anything but liveness."""

from attrs import define, field

from fencepost.impl.messages.broker_api import (
    LEADER_DURING_DELETE,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicPartition,
    UpdateMetadataRequest,
)


@define
class MetadataCache:
    """leaders: (leader, leader epoch) per partition; live_brokers: sorted ids, and shutting_down those that run but are about to stop. latest: (controller
    epoch, correlation id) of the request that was taken over last."""

    leaders: dict[TopicPartition, tuple[int, int]] = field(factory=dict)
    live_brokers: tuple[int, ...] = ()
    shutting_down: tuple[int, ...] = ()
    latest: tuple[int, int] = (-1, -1)

    def update(self, request: UpdateMetadataRequest) -> None:
        """Take over what the controller said, unless it said something later already: a request that was sent again may be overtaken by the next,
        and nothing but the next request would ever mend what a late copy of the old one undid."""
        epoch, number = self.latest
        if request.controller_epoch == epoch and request.correlation_id < number:
            return
        self.latest = (request.controller_epoch, request.correlation_id)
        self.live_brokers, self.shutting_down = request.live_brokers, request.shutting_down
        for state in request.partitions:
            if state.leader == LEADER_DURING_DELETE:
                self.leaders.pop(state.partition, None)
            else:
                self.leaders[state.partition] = (state.leader, state.leader_epoch)

    def runs(self, broker: int) -> bool:
        """Whether the broker was said to be alive, be it about to stop."""
        return broker in self.live_brokers or broker in self.shutting_down

    def answer(self, request: MetadataRequest) -> MetadataResponse:
        """The whole cache."""
        return MetadataResponse(
            correlation_id=request.correlation_id,
            partitions=tuple(
                PartitionMetadata(partition=key, leader=leader, leader_epoch=epoch)
                for key, (leader, epoch) in sorted(self.leaders.items())
            ),
            live_brokers=self.live_brokers,
        )

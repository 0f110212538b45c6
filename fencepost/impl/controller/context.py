"""What the active controller knows (C4). Loaded at fail-over, reset on resignation (KAFKA-5310); never trusted over a version conflict."""

from attrs import define, field

from fencepost.impl.messages import TopicPartition
from fencepost.impl.znodes import LeaderAndIsr


@define
class ControllerContext:
    """epoch, epoch_version: of /controller_epoch as this controller wrote it. live_brokers: id -> broker epoch. assignments: AR in order.
    states: leader and ISR as last read or written."""

    epoch: int = -1
    epoch_version: int = -1
    live_brokers: dict[int, int] = field(factory=dict)
    assignments: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    states: dict[TopicPartition, LeaderAndIsr] = field(factory=dict)

    def partitions_on(self, broker: int) -> list[TopicPartition]:
        """Partitions with a replica on this broker, sorted."""
        return sorted(key for key, replicas in self.assignments.items() if broker in replicas)

    def live_replicas(self, key: TopicPartition) -> tuple[int, ...]:
        """AR members that are alive, in AR order."""
        return tuple(replica for replica in self.assignments[key] if replica in self.live_brokers)

    def without_leader(self) -> list[TopicPartition]:
        """Partitions that have no state yet, or no live leader; sorted."""
        return sorted(
            key
            for key in self.assignments
            if key not in self.states or self.states[key].leader not in self.live_brokers
        )

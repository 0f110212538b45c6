"""The state of the active controller (C4). It is loaded at failover and reset at resignation (KAFKA-5310); a
version conflict always overrules it."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from attrs import define, field, frozen

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper.znodes import LeaderAndIsr


@frozen(kw_only=True)
class AdminNodes:
    """The nodes in /admin at failover: topics to delete, and whether there are reassignments and preferred
    elections to resume."""

    delete_topics: tuple[str, ...]
    reassign: bool
    preferred: bool


@define
class ControllerContext:
    """What the controller knows about the cluster."""

    # The controller epoch that this controller wrote; -1 before.
    epoch: int = -1
    # The version of /controller_epoch after that write.
    epoch_version: int = -1
    # Registered brokers: id -> broker epoch, including those that are shutting down.
    live_brokers: dict[int, int] = field(factory=dict)
    # Brokers that asked for a controlled shutdown: id -> broker epoch.
    shutting_down: dict[int, int] = field(factory=dict)
    # The assigned replicas (AR) in order.
    assignments: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    # Leader and ISR as last read or written.
    states: dict[TopicPartition, LeaderAndIsr] = field(factory=dict)
    # The target of each incomplete reassignment.
    reassigning: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    # The replicas at the beginning of each reassignment, if they are known.
    origins: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    # For each reassigned partition the brokers with an old replica that is not deleted yet.
    stopping: dict[TopicPartition, dict[int, None]] = field(factory=dict)
    # Topics to be deleted.
    deleting: dict[str, None] = field(factory=dict)
    # Those of `deleting` with a deletion that has begun.
    out_of_service: dict[str, None] = field(factory=dict)
    # The nodes read at failover; None before.
    admin: AdminNodes | None = None

    def set_live(self, brokers: dict[int, int]) -> None:
        """Set the registered incarnations. A requested shutdown belongs to an incarnation and ends with
        it."""
        self.live_brokers = brokers
        self.shutting_down = {
            broker: epoch for broker, epoch in self.shutting_down.items() if brokers.get(broker) == epoch
        }

    def electable(self) -> Collection[int]:
        """Brokers that may lead or join an ISR: alive and not about to stop (KAFKA-14140)."""
        if not self.shutting_down:
            return self.live_brokers
        return [broker for broker in self.live_brokers if broker not in self.shutting_down]

    def partitions_on(self, broker: int) -> list[TopicPartition]:
        """Partitions with a replica on this broker, sorted."""
        return sorted(key for key, replicas in self.assignments.items() if broker in replicas)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Partitions of a topic, sorted."""
        return sorted(key for key in self.assignments if key.topic == topic)

    def in_service(self, key: TopicPartition) -> bool:
        """Whether the partition may have leaders: the deletion of its topic has not begun."""
        return key.topic not in self.out_of_service

    def served(self, keys: Collection[TopicPartition]) -> Collection[TopicPartition]:
        """The partitions in service."""
        return [key for key in keys if self.in_service(key)] if self.out_of_service else keys

    def by_replicas(self, keys: Iterable[TopicPartition]) -> dict[tuple[int, ...], list[TopicPartition]]:
        """Partitions by AR. There are few brokers, so many partitions share an AR."""
        assignments = self.assignments
        found: defaultdict[tuple[int, ...], list[TopicPartition]] = defaultdict(list)
        for key in keys:
            found[assignments[key]].append(key)
        return found

    def alive(self, brokers: Iterable[int]) -> list[int]:
        """The live ones, in this order."""
        return [broker for broker in brokers if broker in self.live_brokers]

    def without_leader(self) -> list[TopicPartition]:
        """Partitions in service without a state, or without a live leader; sorted."""
        live, states = self.live_brokers, self.states
        return sorted(
            key
            for key in self.served(self.assignments)
            if key not in states or states[key].leader not in live
        )

"""What the active controller knows (C4). Loaded at fail-over, reset on resignation (KAFKA-5310); never
trusted over a version conflict."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from attrs import define, field, frozen

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper.znodes import LeaderAndIsr


@frozen(kw_only=True)
class AdminNodes:
    """What stood below /admin at fail-over: topics to delete; whether there are reassignments and preferred
    elections to resume."""

    delete_topics: tuple[str, ...]
    reassign: bool
    preferred: bool


@define
class ControllerContext:
    """epoch, epoch_version: of /controller_epoch as this controller wrote it. live_brokers: id -> broker
    epoch, also of those that shut down. shutting_down: likewise, those that asked for a controlled shutdown.
    assignments: AR in order. states: leader and ISR as last read or written. reassigning: target of each
    reassignment that is not complete. stopping: brokers whose old replica of a reassigned partition is not
    deleted yet. deleting: topics to be deleted; out_of_service: those of them whose deletion has begun.
    admin: as read at fail-over, None before."""

    epoch: int = -1
    epoch_version: int = -1
    live_brokers: dict[int, int] = field(factory=dict)
    shutting_down: dict[int, int] = field(factory=dict)
    assignments: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    states: dict[TopicPartition, LeaderAndIsr] = field(factory=dict)
    reassigning: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    origins: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    """The replicas that each of them began with, where they are known."""
    stopping: dict[TopicPartition, dict[int, None]] = field(factory=dict)
    deleting: dict[str, None] = field(factory=dict)
    out_of_service: dict[str, None] = field(factory=dict)
    admin: AdminNodes | None = None

    def set_live(self, brokers: dict[int, int]) -> None:
        """These incarnations are registered; a shutdown was asked for by an incarnation, and ends with it."""
        self.live_brokers = brokers
        self.shutting_down = {
            broker: epoch for broker, epoch in self.shutting_down.items() if brokers.get(broker) == epoch
        }

    def electable(self) -> Collection[int]:
        """Brokers that may lead or join an ISR: alive, and not about to stop (KAFKA-14140)."""
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
        """Those in service."""
        return [key for key in keys if self.in_service(key)] if self.out_of_service else keys

    def by_replicas(self, keys: Iterable[TopicPartition]) -> dict[tuple[int, ...], list[TopicPartition]]:
        """Partitions by AR. Brokers are few, so that many partitions share theirs."""
        assignments = self.assignments
        found: defaultdict[tuple[int, ...], list[TopicPartition]] = defaultdict(list)
        for key in keys:
            found[assignments[key]].append(key)
        return found

    def alive(self, brokers: Iterable[int]) -> list[int]:
        """Those that are alive, in this order."""
        return [broker for broker in brokers if broker in self.live_brokers]

    def without_leader(self) -> list[TopicPartition]:
        """Partitions in service that have no state yet, or no live leader; sorted."""
        live, states = self.live_brokers, self.states
        return sorted(
            key
            for key in self.served(self.assignments)
            if key not in states or states[key].leader not in live
        )

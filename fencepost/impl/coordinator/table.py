"""The groups of one broker, and the state of each offsets partition.

Owns the tables that the parts of the coordinator share, and the events about groups. Must not know requests
or rules.
"""

import msgspec
from attrs import define, field

from fencepost.impl.coordinator.group import Group
from fencepost.impl.coordinator.places import NOT_OWNED, Load, Place
from fencepost.impl.coordinator.records import partition_of
from fencepost.impl.coordinator.states import GroupPhase
from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.topics import OFFSETS_TOPIC

__all__ = ["NOT_OWNED", "GroupLoad", "GroupTable", "Place"]


@define
class GroupLoad(Load):
    """groups: metadata records by group, offsets: (group, partition) -> what the log says so far. removed:
    groups whose last metadata record is a tombstone. open: offsets of transactions without a marker so far,
    by producer id."""

    groups: dict[str, object] = field(factory=dict)
    # By (group, partition): the last record so far.
    offsets: dict[tuple[str, TopicPartition], object] = field(factory=dict)
    # Groups with a tombstone as their last metadata record.
    removed: dict[str, None] = field(factory=dict)
    open: dict[int, dict[tuple[str, TopicPartition], object]] = field(factory=dict)


@define
class GroupTable:
    """groups: by id; those of partitions that this broker coordinates, or has not unloaded yet. places: by
    number of the offsets partition."""

    broker_context: BrokerContext
    partitions: dict[TopicPartition, Partition]
    groups: dict[str, Group] = field(factory=dict)
    places: dict[int, Place] = field(factory=dict)

    @property
    def now_ms(self) -> int:
        """Host time in milliseconds."""
        return self.broker_context.now // MILLISECOND

    @property
    def count(self) -> int:
        """The number of partitions of __consumer_offsets; 0 if the topic does not exist."""
        for topic in self.broker_context.options.topics:
            if topic.name == OFFSETS_TOPIC:
                return topic.partitions
        return self.broker_context.options.groups.offsets_topic_partitions

    def number_of(self, group_id: str) -> int:
        """The offsets partition of a group."""
        return partition_of(group_id, max(1, self.count))

    def place(self, number: int) -> Place:
        """The state of an offsets partition."""
        return self.places.setdefault(number, Place(number))

    def epoch_of(self, group: Group) -> int:
        """The epoch in which this broker coordinates it."""
        return self.place(group.number).owned_epoch

    def create(self, group_id: str) -> Group:
        """Create a group."""
        group = Group(group_id, self.number_of(group_id), since_ms=self.now_ms)
        self.groups[group_id] = group
        return group

    def of_place(self, number: int) -> list[Group]:
        """The groups of one offsets partition, by name."""
        return [group for _, group in sorted(self.groups.items()) if group.number == number]

    def move(self, group: Group, phase: GroupPhase, why: str = "") -> None:
        """Change the state of a group and record the event."""
        group.move_to(phase, self.now_ms)
        self.tell(group, why)

    def tell(self, group: Group, why: str = "") -> None:
        """Record an event with the state of a group."""
        detail = {
            "group": group.group_id,
            "generation": group.generation,
            "members": list(group.members),
            "leader": group.leader or "",
            "why": why,
        }
        self.broker_context.record(
            Name.GROUP_PHASE,
            TopicPartition(OFFSETS_TOPIC, group.number),
            leader_epoch=self.place(group.number).owned_epoch,
            cause=group.phase.value,
            detail=msgspec.json.encode(detail).decode(),
        )

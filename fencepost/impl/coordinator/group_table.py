"""The groups of one broker, and the state of each offsets partition.

Owns the tables that the parts of the coordinator share, and the events about groups. Must not know requests
or rules.
"""

from typing import ClassVar

from attrs import define, field

from fencepost.impl.coordinator.consumer_group import Group
from fencepost.impl.coordinator.coordinated_partitions import NOT_OWNED, Load, Place, PlaceTable
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.plan import GroupOptions

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
class GroupTable(PlaceTable[Group]):
    """The groups of one broker."""

    TOPIC: ClassVar[str] = OFFSETS_TOPIC

    @property
    def options(self) -> GroupOptions:
        """Of the cluster."""
        return self.broker_context.options.groups

    @property
    def planned_count(self) -> int:
        """How many partitions __consumer_offsets has if a broker creates it."""
        return self.options.offsets_topic_partitions

    @property
    def groups(self) -> dict[str, Group]:
        """By group id."""
        return self.held

    def create(self, group_id: str) -> Group:
        """Create a group."""
        group = Group(group_id, self.number_of(group_id), since_ms=self.now_ms)
        self.groups[group_id] = group
        return group

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
        self.record(Name.GROUP_PHASE, group, group.phase.value, detail)

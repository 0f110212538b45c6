"""The lanes of a timeline: one letter per broker and partition, at each moment.

L leads; l believes that it leads while ZooKeeper names another; f follows inside the ISR; o follows outside
it; x is down; z is paused; . is not known yet.
"""

from attrs import Factory, define

from fencepost.report.entries import Partition
from fencepost.report.event_words import fault_nodes, partition_name
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace

LEGEND = "   ".join(
    (
        "L leads",
        "l believes that it leads",
        "f follows in ISR",
        "o follows outside ISR",
        "x down",
        "z paused",
        ". no role",
    )
)
STOPPING = frozenset({"crash", "power_loss", "bounce"})
PAUSING = frozenset({"pause"})
MOST_PARTITIONS = 3
"""More lanes than these would push the words off a terminal."""
WIDEST_NAME = 12
"""Characters of a partition's name above its lane, for the same reason."""
_REPLICA_EVENTS = frozenset(
    {Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.BROKER_STARTED, Name.LOG_RECOVERED}
)


@define(kw_only=True)
class Lanes:
    """The role of each replica, updated event by event."""

    # Brokers in the order of the columns.
    brokers: tuple[int, ...]
    partitions: tuple[Partition, ...]
    # What a replica believes: that it leads or follows.
    roles: dict[tuple[Partition, int], Name] = Factory(dict)
    # ZooKeeper's leader and ISR.
    leader: dict[Partition, int] = Factory(dict)
    isr: dict[Partition, tuple[int, ...]] = Factory(dict)
    # Brokers on hosts that are down, or paused.
    down: set[int] = Factory(set)
    paused: set[int] = Factory(set)

    def apply(self, event: Event) -> None:
        """Move on by one event."""
        partition = (event.topic, event.partition)
        if event.name in (Name.BECAME_LEADER, Name.BECAME_FOLLOWER):
            self.roles[partition, event.node] = event.name
        elif event.name is Name.PARTITION_STATE:
            self.leader[partition] = event.leader
            self.isr[partition] = event.isr
        elif event.name is Name.BROKER_STARTED:
            self.down.discard(event.node)
            for lane in self.partitions:
                self.roles.pop((lane, event.node), None)
        elif event.name is Name.FAULT_BEGAN and event.cause in STOPPING:
            self.down.update(fault_nodes(event))
        elif event.name is Name.FAULT_BEGAN and event.cause in PAUSING:
            self.paused.update(fault_nodes(event))
        elif event.name is Name.FAULT_ENDED and event.cause in PAUSING:
            self.paused.difference_update(fault_nodes(event))

    def letter(self, partition: Partition, broker: int) -> str:
        """What the broker is to the partition now."""
        if broker in self.down:
            return "x"
        if broker in self.paused:
            return "z"
        role = self.roles.get((partition, broker))
        if role is Name.BECAME_LEADER:
            return "L" if self.leader.get(partition, broker) == broker else "l"
        if role is Name.BECAME_FOLLOWER:
            return "f" if broker in self.isr.get(partition, (broker,)) else "o"
        return "."

    def width(self, partition: Partition) -> int:
        """Columns of a lane: its brokers, and as much of its name as there is room for."""
        return max(2 * len(self.brokers) - 1, min(len(partition_name(*partition)), WIDEST_NAME))

    def strip(self) -> str:
        """The letters now, a group per partition."""
        return "  ".join(
            " ".join(self.letter(partition, broker) for broker in self.brokers).ljust(self.width(partition))
            for partition in self.partitions
        )

    def heading(self) -> tuple[str, str]:
        """Two lines above the letters: partitions, brokers."""
        brokers = " ".join(str(broker)[-1] for broker in self.brokers)
        names, columns = [], []
        for partition in self.partitions:
            width = self.width(partition)
            names.append(partition_name(*partition)[:width].ljust(width))
            columns.append(brokers.ljust(width))
        return "  ".join(names), "  ".join(columns)


def lanes_of(trace: Trace, focus: frozenset[Partition]) -> Lanes:
    """Lanes for the partitions in focus, or for all while they are few."""
    brokers = sorted(
        {event.node for event in trace.events if event.name in _REPLICA_EVENTS and event.node >= 0}
    )
    seen = {(e.topic, e.partition) for e in trace.events if e.name in _REPLICA_EVENTS and e.topic is not None}
    chosen = sorted(focus & seen if focus else seen, key=str)
    return Lanes(brokers=tuple(brokers), partitions=tuple(chosen) if len(chosen) <= MOST_PARTITIONS else ())

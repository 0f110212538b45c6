"""What a run knows of its cluster while it goes on, gathered from the recorded events alone.

Owns the facts that roles, budget, liveness and claims need. Must not look inside a broker: what is not in the trace is not known.
"""

from attrs import define, field

from fencepost.traces.events import Event, Name

Key = tuple[str, int]
"""Topic and partition number."""


@define
class ReplicaFacts:
    """end: log end offset as recorded. lost_from: where a power loss cut it below what had been exposed, -1 if it did not (or all is back since);
    lost_to: what had been exposed then."""

    end: int = 0
    high_watermark: int = 0
    lost_from: int = -1
    lost_to: int = -1


@define
class PartitionFacts:
    """leader, leader_epoch, isr: as ZooKeeper holds them. led_by: (broker, epoch) of the BECAME_LEADER of the highest epoch.
    exposed: the largest high watermark that any leader had. unclean: an election chose a leader outside the ISR."""

    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    led_by: tuple[int, int] = (-1, -1)
    exposed: int = 0
    unclean: bool = False
    replicas: dict[int, ReplicaFacts] = field(factory=dict)

    def replica(self, node: int) -> ReplicaFacts:
        """The facts of one replica, made on first use."""
        return self.replicas.setdefault(node, ReplicaFacts())


@define
class LossFact:
    """A replica that had lost exposed offsets [start, end) was in the ISR: the only kind of loss that the protocol allows."""

    key: Key
    node: int
    start: int
    end: int


@define
class Facts:
    """controller: as /controller names it. registered: broker -> broker epoch. power_lost: brokers whose power failed since their last recovery."""

    controller: int = -1
    controller_epoch: int = -1
    partitions: dict[Key, PartitionFacts] = field(factory=dict)
    registered: dict[int, int] = field(factory=dict)
    power_lost: dict[int, None] = field(factory=dict)
    losses: list[LossFact] = field(factory=list)

    def partition(self, key: Key) -> PartitionFacts:
        """The facts of one partition, made on first use."""
        return self.partitions.setdefault(key, PartitionFacts())

    def learn(self, event: Event) -> None:
        """Take one event in."""
        learn = _LEARN.get(event.name)
        if learn is not None:
            learn(self, event)

    def _of(self, event: Event) -> PartitionFacts:
        assert event.topic is not None
        return self.partition((event.topic, event.partition))

    def _controller_znode(self, event: Event) -> None:
        self.controller = event.leader

    def _controller_epoch(self, event: Event) -> None:
        self.controller_epoch = event.controller_epoch

    def _broker_registered(self, event: Event) -> None:
        self.registered[event.node] = event.broker_epoch

    def _power_loss(self, event: Event) -> None:
        if event.cause == "power_loss":
            self.power_lost[event.node] = None

    def _partition_state(self, event: Event) -> None:
        facts = self._of(event)
        if event.leader >= 0 and facts.isr and event.leader not in facts.isr:
            facts.unclean = True
        facts.leader, facts.leader_epoch, facts.isr = event.leader, event.leader_epoch, event.isr
        self._look_for_loss(event, facts)

    def _became_leader(self, event: Event) -> None:
        facts = self._of(event)
        if event.leader_epoch > facts.led_by[1]:  # a zombie may learn of an old epoch late
            facts.led_by = (event.node, event.leader_epoch)
        facts.replica(event.node).high_watermark = event.high_watermark

    def _appended(self, event: Event) -> None:
        replica = self._of(event).replica(event.node)
        replica.end = event.offset + len(event.values)
        if replica.lost_from >= 0 and replica.end >= replica.lost_to and event.cause == "follower":
            replica.lost_from = replica.lost_to = -1

    def _truncated(self, event: Event) -> None:
        self._of(event).replica(event.node).end = event.offset

    def _high_watermark(self, event: Event) -> None:
        facts = self._of(event)
        facts.replica(event.node).high_watermark = event.high_watermark
        if event.cause == "leader":
            facts.exposed = max(facts.exposed, event.high_watermark)

    def _log_recovered(self, event: Event) -> None:
        facts = self._of(event)
        replica = facts.replica(event.node)
        if event.node in self.power_lost and event.offset < min(replica.end, facts.exposed):
            lowest = event.offset if replica.lost_from < 0 else min(event.offset, replica.lost_from)
            replica.lost_from, replica.lost_to = lowest, max(facts.exposed, replica.lost_to)
        replica.end, replica.high_watermark = event.offset, event.high_watermark
        self._look_for_loss(event, facts)

    def _look_for_loss(self, event: Event, facts: PartitionFacts) -> None:
        assert event.topic is not None
        for node in facts.isr:
            replica = facts.replica(node)
            if replica.lost_from >= 0:
                self.losses.append(
                    LossFact((event.topic, event.partition), node, replica.lost_from, replica.lost_to)
                )


_LEARN = {
    Name.CONTROLLER_ZNODE: Facts._controller_znode,
    Name.CONTROLLER_EPOCH: Facts._controller_epoch,
    Name.BROKER_REGISTERED: Facts._broker_registered,
    Name.FAULT_BEGAN: Facts._power_loss,
    Name.PARTITION_STATE: Facts._partition_state,
    Name.BECAME_LEADER: Facts._became_leader,
    Name.APPENDED: Facts._appended,
    Name.TRUNCATED: Facts._truncated,
    Name.HIGH_WATERMARK: Facts._high_watermark,
    Name.LOG_RECOVERED: Facts._log_recovered,
}

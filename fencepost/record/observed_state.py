"""What a run knows of its cluster while it goes on, gathered from the recorded events alone.

Owns the facts that roles, budget, liveness and claims need. Must not look inside a broker: what is not in the
trace is not known.
"""

import msgspec
from attrs import define, field

from fencepost.traces.events import REPLICA_DELETED, UNCLEAN_REQUESTED, Event, Name
from fencepost.traces.operations import Function, Operation, Outcome

Key = tuple[str, int]
"""Topic and partition number."""
Assignments = dict[Key, tuple[int, ...]]
"""Replicas by partition."""
UNCLEAN = "unclean.leader.election.enable"
POLICY = "cleanup.policy"
LIE = "lying_fsync"
"""The fault under which a disk syncs nothing."""
POWER_LOSS = "a power loss"
RETENTION = "retention"
UNHEARD = "retention at another leader"
UNCUT = "retention at its leader"
BIT_ROT = "bit_rot"
LOSING = {"power_loss": POWER_LOSS, BIT_ROT: "bit rot"}
"""The faults after which a log may be shorter than it was, in words."""


FIRST_EPOCH, UNNAMED = 0, -1
"""Leader epochs: of a partition that was just made; of an answer that names none."""
NOTHING = (0, 0)
"""A range without offsets."""


def _below(offsets: tuple[int, int], end: int) -> tuple[int, int]:
    """The part of a range below `end`."""
    return (offsets[0], min(offsets[1], end)) if offsets[0] < end else NOTHING


def _from(offsets: tuple[int, int], start: int) -> tuple[int, int]:
    """The part of a range from `start` on."""
    return (max(offsets[0], start), offsets[1]) if start < offsets[1] else NOTHING


def _around(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The least range that holds both."""
    if NOTHING in (one, other):
        return max(one, other)
    return min(one[0], other[0]), max(one[1], other[1])


@define
class ObservedReplica:
    """A replica, as far as the recorded events say."""

    # Log end offset as recorded.
    end: int = 0
    # Log start offset.
    start: int = 0
    high_watermark: int = 0
    # First offset about which its disk has lied; -1 if it has not.
    floor: int = -1
    # A compaction wrote the offsets [start, end) anew while the disk lied, and no sync has reached them
    # since.
    rewritten: tuple[int, int] = NOTHING
    # Whether the power failed since the log was opened.
    power_failed: bool = False
    # End of the log after a power loss that took exposed records; -1: none did, or all are back.
    lost_from: int = -1
    # High watermark that had been exposed before that loss.
    lost_to: int = -1
    # First offset that its disk does not surely hold, as the disk said since the log was last opened; -1: it
    # said nothing.
    durable: int = -1
    # Offsets [start, end) inside of the log that a power loss may have taken, whatever its end is.
    hollow: tuple[int, int] = NOTHING
    # Offsets [start, end) below its leader's log start that it kept when it cut its log.
    uncut: tuple[int, int] = NOTHING

    def cut(self, end: int) -> None:
        """The log ends at `end` now: what is appended from there on was never rewritten, nor lost."""
        self.end = end
        self.floor = min(self.floor, end)
        self.rewritten, self.hollow = _below(self.rewritten, end), _below(self.hollow, end)

    def compacted(self, below: int, *, lying: bool) -> None:
        """A compaction wrote everything below this offset anew (docs/reference/claims.md): with a sync that
        was one, or with a lie."""
        if lying and self.start < below:
            self.rewritten = _around(self.rewritten, (self.start, below))
        elif not lying and below >= self.rewritten[1]:
            self.rewritten = NOTHING

    def recover(self, end: int) -> int:
        """The log was opened again, and ends at `end`. Returns where the loss that is excused begins, but for
        `hollow`: where the log ends, or the lies of its disk began, and never below what the disk held."""
        durable, self.durable = self.durable, -1
        if not self.power_failed:
            return max(end, durable)
        held = min(end, self.floor) if self.floor >= 0 else end
        at_risk = _from(self.rewritten, durable)
        self.hollow = _below(_around(self.hollow, at_risk), end)
        self.floor, self.rewritten, self.power_failed = -1, NOTHING, False
        return max(held, durable)

    def told_durable(self, end: int, *, rotten: bool) -> None:
        """Its disk says that it surely holds everything below `end`: after a power loss, or when a bit
        rotted, which may take what an earlier power loss had left."""
        if rotten and self.durable >= 0:
            self.durable = min(self.durable, end)
        else:
            self.durable = max(self.durable, end)


@define
class ObservedPartition:
    """A partition, as far as the recorded events say."""

    # leader, leader_epoch and isr are those in ZooKeeper.
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    # (broker, leader epoch) of the BECAME_LEADER of the highest epoch.
    led_by: tuple[int, int] = (-1, -1)
    # The largest high watermark that any leader had.
    exposed: int = 0
    # The largest log start to which retention moved a leader's log.
    forgotten: int = 0
    # Whether an election chose a leader outside the ISR.
    unclean: bool = False
    replicas: dict[int, ObservedReplica] = field(factory=dict)

    def replica(self, node: int) -> ObservedReplica:
        """The facts of one replica, made on first use."""
        found = self.replicas.get(node)
        if found is None:
            found = self.replicas[node] = ObservedReplica()
        return found


@define
class ObservedLoss:
    """A replica that had lost exposed offsets [start, end) was in the ISR: the only kind of loss that the
    protocol allows."""

    key: Key
    node: int
    start: int
    end: int
    # In words.
    cause: str = POWER_LOSS
    # They stood inside of the log, where a compaction had written them anew while the disk lied; else the log
    # was cut at `start`.
    rewritten: bool = False


@define
class ObservedState:
    """The cluster, as far as the recorded events say."""

    # The broker in /controller.
    controller: int = -1
    controller_epoch: int = -1
    partitions: dict[Key, ObservedPartition] = field(factory=dict)
    # Registered brokers, with their broker epochs.
    registered: dict[int, int] = field(factory=dict)
    # Brokers whose disk has lost data, and by what.
    power_lost: dict[int, str] = field(factory=dict)
    # Brokers whose disk has lied about a sync.
    lied: dict[int, None] = field(factory=dict)
    # Brokers whose disk lies about syncs now.
    lying: dict[int, None] = field(factory=dict)
    # Whether any log ever gave up its first records.
    retained: bool = False
    # Whether any replica dropped all it had, to begin at its leader's log start.
    started_over: bool = False
    # Assigned replicas; () of a partition that is gone.
    assignments: Assignments = field(factory=dict)
    # Assigned replicas when the partition was created.
    first_assignments: Assignments = field(factory=dict)
    # What /admin/reassign_partitions asks for.
    reassigning: Assignments = field(factory=dict)
    losses: list[ObservedLoss] = field(factory=list)
    # Partitions that are gone, and that had a leader from outside the ISR.
    unclean_before: set[Key] = field(factory=set)
    # Topics for which any broker ever applied unclean.leader.election.enable.
    unclean_topics: set[str] = field(factory=set)
    # Topics for which any broker ever applied cleanup.policy=compact.
    compacted_topics: set[str] = field(factory=set)

    def partition(self, key: Key) -> ObservedPartition:
        """The facts of one partition, made on first use."""
        found = self.partitions.get(key)
        if found is None:
            found = self.partitions[key] = ObservedPartition()
        return found

    def trusts(self, row: Operation) -> bool:
        """Whether the row is an end that may be trusted: ListOffsets waits for the high watermark to reach
        the leader's epoch (KIP-207), and the leader that answered still leads in that epoch, so that no other
        could have acknowledged anything meanwhile. An answer without an epoch (librdkafka's mock) is trusted
        in the first one, in which nobody else has led.

        Args:
            row: a complete one; the state is what was seen after it had ended.
        """
        if row.function is not Function.LIST_OFFSETS or row.outcome is not Outcome.OK:
            return False
        assert row.topic is not None and row.partition is not None
        known = self.partition((row.topic, row.partition))
        epoch = FIRST_EPOCH if row.leader_epoch in (None, UNNAMED) else row.leader_epoch
        return (row.node, epoch) == (known.leader, known.leader_epoch)

    def learn(self, event: Event) -> None:
        """Take one event in."""
        learn = _LEARN.get(event.name)
        if learn is not None:
            learn(self, event)

    def _of(self, event: Event) -> ObservedPartition:
        assert event.topic is not None
        return self.partition((event.topic, event.partition))

    def _controller_znode(self, event: Event) -> None:
        self.controller = event.leader

    def _controller_epoch(self, event: Event) -> None:
        self.controller_epoch = event.controller_epoch

    def _broker_registered(self, event: Event) -> None:
        self.registered[event.node] = event.broker_epoch

    def _fault(self, event: Event) -> None:
        if event.cause in LOSING:
            self.power_lost[event.node] = LOSING[event.cause]
        if event.cause == "power_loss":
            for partition in self.partitions.values():
                if event.node in partition.replicas:
                    partition.replica(event.node).power_failed = True
        elif event.cause == LIE:
            self.lied[event.node] = self.lying[event.node] = None
            for partition in self.partitions.values():
                replica = partition.replica(event.node)
                replica.floor = replica.end if replica.floor < 0 else min(replica.floor, replica.end)

    def _fault_ended(self, event: Event) -> None:
        if event.cause == LIE:
            self.lying.pop(event.node, None)

    def _phase(self, event: Event) -> None:
        if event.cause == "heal":
            self.lying.clear()

    def _partition_state(self, event: Event) -> None:
        facts = self._of(event)
        if event.leader >= 0 and facts.isr and event.leader not in facts.isr:
            facts.unclean = True
        elected = event.leader_epoch > facts.leader_epoch
        facts.leader, facts.leader_epoch, facts.isr = event.leader, event.leader_epoch, event.isr
        if elected and event.leader in facts.replicas:
            self._look_for_forgotten(event, facts)
        self._look_for_loss(event, facts)

    def _became_leader(self, event: Event) -> None:
        facts = self._of(event)
        if event.leader_epoch > facts.led_by[1]:  # a zombie may learn of an old epoch late
            facts.led_by = (event.node, event.leader_epoch)
        facts.replica(event.node).high_watermark = event.high_watermark

    def _appended(self, event: Event) -> None:
        replica = self._of(event).replica(event.node)
        replica.end = max(event.offset + len(event.values), event.end_offset)
        if replica.lost_from >= 0 and replica.end >= replica.lost_to and event.cause == "follower":
            replica.lost_from = replica.lost_to = -1

    def _truncated(self, event: Event) -> None:
        facts = self._of(event)
        replica = facts.replica(event.node)
        replica.cut(event.offset)
        if event.cause == "leader_epoch" and event.high_watermark < event.offset <= facts.forgotten:
            replica.uncut = _around(replica.uncut, (event.high_watermark, event.offset))
        if event.cause == "full":
            replica.rewritten = replica.hollow = replica.uncut = NOTHING
            self.started_over = self.started_over or event.offset > 0

    def _compacted(self, event: Event) -> None:
        if msgspec.json.decode(event.detail)[
            "bytes_before"
        ]:  # else it found nothing to clean, and wrote nothing
            self._of(event).replica(event.node).compacted(event.offset, lying=event.node in self.lying)

    def _mark(self, event: Event) -> None:
        if event.cause == REPLICA_DELETED:
            self._of(event).replicas.pop(event.node, None)
        elif event.cause == UNCLEAN_REQUESTED:
            self.unclean_topics.add(event.topic or "")

    def _assignment(self, event: Event) -> None:
        assert event.topic is not None
        key = event.topic, event.partition
        if not event.replicas or self.assignments.get(key) == ():
            self._begin_anew(key)
        self.assignments[key] = event.replicas
        if event.replicas:
            self.first_assignments.setdefault(key, event.replicas)

    def _begin_anew(self, key: Key) -> None:
        """The partition is gone, or one of a later topic of its name comes: what was known of it says nothing
        of the next one. What it may have lost stays claimed."""
        before = self.partitions.pop(key, None)
        self.first_assignments.pop(key, None)
        if before is not None and before.unclean:
            self.unclean_before.add(key)

    def _reassignment(self, event: Event) -> None:
        assert event.topic is not None
        if event.replicas:
            self.reassigning[event.topic, event.partition] = event.replicas
        else:
            del self.reassigning[event.topic, event.partition]

    def _topic_configured(self, event: Event) -> None:
        overrides = msgspec.json.decode(event.detail)
        if overrides.get(UNCLEAN) == "true":
            self.unclean_topics.add(event.topic or "")
        if "compact" in overrides.get(POLICY, ""):
            self.compacted_topics.add(event.topic or "")

    def _log_start(self, event: Event) -> None:
        facts = self._of(event)
        facts.replica(event.node).start = max(event.log_start_offset, 0)
        if event.cause == RETENTION and event.node == facts.leader:
            facts.forgotten = max(facts.forgotten, event.log_start_offset)
        self.retained = self.retained or event.log_start_offset > 0

    def _high_watermark(self, event: Event) -> None:
        facts = self._of(event)
        facts.replica(event.node).high_watermark = event.high_watermark
        if event.cause == "leader":
            facts.exposed = max(facts.exposed, event.high_watermark)

    def _log_recovered(self, event: Event) -> None:
        facts = self._of(event)
        replica = facts.replica(event.node)
        end = replica.recover(event.offset)
        if event.node in self.power_lost and end < min(replica.end, facts.exposed):
            lowest = end if replica.lost_from < 0 else min(end, replica.lost_from)
            replica.lost_from, replica.lost_to = lowest, max(facts.exposed, replica.lost_to)
        replica.end, replica.high_watermark = event.offset, event.high_watermark
        self._log_start(event)
        if event.node in self.lying:
            replica.floor = event.offset if replica.floor < 0 else min(replica.floor, event.offset)
        self._look_for_loss(event, facts)

    def _durable(self, event: Event) -> None:
        replica = self._of(event).replica(event.node)
        replica.told_durable(event.end_offset, rotten=event.cause == BIT_ROT)

    def _look_for_forgotten(self, event: Event, facts: ObservedPartition) -> None:
        """Retention takes a leader's epochs away with its records, so that a follower with others in their
        place is no longer sent to cut its log: it is in the ISR as soon as its log ends where the leader's
        begins. If it leads before it has heard of that high watermark, what was committed there, and is
        deleted already, comes again with other content. A follower that was sent to cut its log no further
        than to the leader's log start keeps batches of its own below that, and what it knows of their
        producers; when it leads, it acknowledges their retries, as Kafka does, though others were committed
        there."""
        assert event.topic is not None
        leader = facts.replicas[event.leader]
        if leader.high_watermark < facts.forgotten and leader.start < facts.forgotten:
            key = event.topic, event.partition
            self.losses.append(
                ObservedLoss(key, event.leader, leader.high_watermark, facts.forgotten, UNHEARD)
            )
        if leader.uncut != NOTHING:
            self.losses.append(
                ObservedLoss((event.topic, event.partition), event.leader, *leader.uncut, UNCUT)
            )

    def _look_for_loss(self, event: Event, facts: ObservedPartition) -> None:
        assert event.topic is not None
        key = event.topic, event.partition
        for node in facts.isr:
            replica = facts.replica(node)
            if replica.hollow != NOTHING:
                self.losses.append(ObservedLoss(key, node, *replica.hollow, POWER_LOSS, rewritten=True))
            if replica.lost_from >= 0:
                self.losses.append(
                    ObservedLoss(key, node, replica.lost_from, replica.lost_to, self.power_lost[node])
                )


_LEARN = {
    Name.CONTROLLER_ZNODE: ObservedState._controller_znode,
    Name.CONTROLLER_EPOCH: ObservedState._controller_epoch,
    Name.BROKER_REGISTERED: ObservedState._broker_registered,
    Name.FAULT_BEGAN: ObservedState._fault,
    Name.FAULT_ENDED: ObservedState._fault_ended,
    Name.PHASE: ObservedState._phase,
    Name.MARK: ObservedState._mark,
    Name.ASSIGNMENT: ObservedState._assignment,
    Name.REASSIGNMENT: ObservedState._reassignment,
    Name.LOG_START: ObservedState._log_start,
    Name.COMPACTED: ObservedState._compacted,
    Name.TOPIC_CONFIGURED: ObservedState._topic_configured,
    Name.PARTITION_STATE: ObservedState._partition_state,
    Name.BECAME_LEADER: ObservedState._became_leader,
    Name.APPENDED: ObservedState._appended,
    Name.TRUNCATED: ObservedState._truncated,
    Name.HIGH_WATERMARK: ObservedState._high_watermark,
    Name.LOG_RECOVERED: ObservedState._log_recovered,
    Name.DURABLE: ObservedState._durable,
}

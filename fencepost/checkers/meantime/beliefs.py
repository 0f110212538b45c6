"""AGREED: when a run that went well is over, every broker believes what ZooKeeper holds, replicas agree, and
a coordinator serves what its log says.

Owns stale_belief, replicas_disagree, directory_disagrees, group_not_stored and transaction_not_stored. A
state that is written once and then believed is seldom asked for again within a run, so that a wrong one shows
late or never. Here everything that can be compared is compared. The run waits until nothing disagrees, for as
long as it waits for progress; what disagrees then is recorded (BELIEF) and found.

Not compared, because the protocol lets it differ: what a follower believes of the ISR (it learns that only
with a new leader epoch); a replica of a broker that is not assigned any more; the log start of replicas, each
of which deletes by its own retention, except that a follower's is not below its leader's. What depends on
fetches is compared once nothing was appended for a while.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from attrs import define, field, frozen

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.checkers.meantime.calm import row_ns
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Belief, Event, Name

TRIPS = 6
"""Messages in a row after which followers have an append and its high watermark."""
RUNNING = ("RunningAsBroker", "RunningAsController")
"""The state of a broker that is registered, without and with the controller."""
OFFSETS_TOPIC = "__consumer_offsets"
SETTLED = frozenset({"Stable", "Empty"})
"""States of a group whose generation is in the log."""


class Facts(msgspec.Struct, frozen=True):
    """The detail of a belief; each has a part of these."""

    # By topic: the overrides of its configuration.
    configs: dict[str, dict[str, str]] = {}
    # Overrides that a broker knows and does not obey.
    misapplied: list[str] = []
    # Kafka's name of what the broker is about.
    state: str = ""
    # Leader epochs with their start offsets, ascending.
    epochs: list[tuple[int, int]] = []
    # By producer id: epoch, last sequence, last offset.
    producers: dict[str, tuple[int, int, int]] = {}
    # By producer id: the first offset of its open transaction.
    open: dict[str, int] = {}
    # By broker: the log end offset that the leader knows.
    followers: dict[str, int] = {}
    # By broker: the broker epoch of the controller's channel.
    channels: dict[str, int] = {}
    # What is wrong with the files of a replica.
    files: list[str] = []
    # Requests that the controller has not sent, or that are not answered.
    queued: int = 0
    reassigning: list[str] = []
    deleting: list[str] = []
    stopping: list[str] = []
    # The controller's state of a partition, and of its replicas by broker.
    phase: str = ""
    replicas: dict[str, str] = {}
    group: str = ""
    # What the coordinator answers with, and what its log says.
    served: "Held | None" = None
    stored: "Held | None" = None
    transactional_id: str = ""
    # Whether nothing of it is being written.
    settled: bool = False
    # Producer id and epoch, state, time-out, its beginning and its last change in ms, partitions: as the
    # coordinator goes on, and as its log says.
    decided: "Decided | None" = None
    logged: "Decided | None" = None


Decided = tuple[int, int, str, int, int, int, list[str]]
EPOCH: Final = 1
CHANGED: Final = 5
"""Where it says its producer epoch, and when it changed."""


class Held(msgspec.Struct, frozen=True):
    """A group in memory or in the log."""

    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    # By member id: instance, client, session time-out, assignment.
    members: dict[str, tuple[str | None, str, int, str]] = {}
    # By partition: offset of the record, committed offset, metadata.
    offsets: dict[str, tuple[int, int, str]] = {}


@frozen(kw_only=True)
class Contradiction:
    """Two facts that should agree."""

    anomaly: str
    expected: str
    seen: str
    # The belief, as a place among those that were compared.
    place: int
    topic: str | None = None
    partition: int = -1
    offset: int = -1


@define
class Known:
    """What ZooKeeper holds, from its commits, and when each log was appended to."""

    states: dict[Key, Event] = field(factory=dict)
    assigned: dict[Key, tuple[int, ...]] = field(factory=dict)
    # When the deletion of each topic was asked for, in nanoseconds.
    deleted: dict[str | None, int] = field(factory=dict)
    # Broker epochs by id.
    registered: dict[int, int] = field(factory=dict)
    # When each broker registered last, in nanoseconds.
    since: dict[int, int] = field(factory=dict)
    controller: int = -1
    controller_epoch: int = -1
    # When that epoch began, in nanoseconds.
    reign: int = 0
    # Nanoseconds of the last append or truncation.
    appended: dict[Key, int] = field(factory=dict)

    def learn(self, event: Event) -> None:
        """Take one event in."""
        name = event.name
        if name is Name.APPENDED or name is Name.TRUNCATED:
            self.appended[event.topic, event.partition] = event.time
        elif name is Name.PARTITION_STATE:
            self.states[event.topic, event.partition] = event
        elif name is Name.ASSIGNMENT:
            key = event.topic, event.partition
            if event.replicas:
                self.assigned[key] = event.replicas
            else:
                self.assigned.pop(key, None)
                self.states.pop(key, None)
        elif name is Name.TOPIC_DELETION:
            self.deleted.setdefault(event.topic, event.time)
        elif name is Name.BROKER_ZNODE:
            if event.broker_epoch < 0:
                self.registered.pop(event.node, None)
            else:
                self.registered[event.node] = event.broker_epoch
                self.since[event.node] = event.time
        elif name is Name.CONTROLLER_ZNODE:
            self.controller = event.leader
        elif name is Name.CONTROLLER_EPOCH:
            self.controller_epoch, self.reign = event.controller_epoch, event.time


LEARNT = frozenset(
    {
        Name.APPENDED,
        Name.ASSIGNMENT,
        Name.BROKER_ZNODE,
        Name.CONTROLLER_EPOCH,
        Name.CONTROLLER_ZNODE,
        Name.PARTITION_STATE,
        Name.TOPIC_DELETION,
        Name.TRUNCATED,
    }
)
"""The events that `Known` learns from."""


def rest_ns(options: Options) -> int:
    """How long a log must not have been appended to before its replicas are compared: two fetches that wait,
    and their messages."""
    cluster = options.cluster
    wait_ms = 2 * (cluster.replica_fetch_wait_max_ms + cluster.replica_fetch_backoff_ms)
    return wait_ms * MILLISECOND + row_ns(options.network, TRIPS)


def contradictions(known: Known, beliefs: Sequence[Event], rest: int) -> Iterator[Contradiction]:
    """Everything that disagrees.

    Args:
        known: what ZooKeeper holds.
        beliefs: of all brokers, at one moment.
        rest: how long a log must not have been appended to, nanoseconds.

    Yields:
        the contradictions, in the order of the beliefs.
    """
    yield from Comparison(known, beliefs, rest).found()


@define
class Comparison:
    """One comparison of all beliefs of a moment."""

    known: Known
    beliefs: Sequence[Event]
    rest: int
    facts: dict[int, Facts] = field(factory=dict)
    replicas: dict[tuple[Key, int], tuple[int, Event]] = field(factory=dict)

    def found(self) -> Iterator[Contradiction]:
        """In the order of the beliefs."""
        seen: dict[str, set[tuple[int, Key]]] = {cause: set() for cause in Belief}
        for place, event in enumerate(self.beliefs):
            key = event.topic, event.partition
            seen.setdefault(event.cause, set()).add((event.node, key))
            if event.cause == Belief.REPLICA:
                self.replicas[key, event.node] = place, event
        for place, event in enumerate(self.beliefs):
            judge = _JUDGES.get(event.cause)
            if judge is not None:
                yield from judge(self, place, event)
        yield from self._missing(seen)

    def of(self, place: int) -> Facts:
        """The detail of a belief; an empty one if it has another form."""
        if place not in self.facts:
            detail = self.beliefs[place].detail
            try:
                self.facts[place] = from_json(detail, Facts) if detail else Facts()
            except msgspec.DecodeError:
                self.facts[place] = Facts()
        return self.facts[place]

    def _missing(self, seen: Mapping[str, set[tuple[int, Key]]]) -> Iterator[Contradiction]:
        """Partitions of which a broker believes nothing."""
        running = sorted(node for node, _ in seen[Belief.BROKER])
        for key, replicas in sorted(self.known.assigned.items(), key=str):
            for node in running:
                if (node, key) not in seen[Belief.METADATA]:
                    yield self._stale(0, key, f"broker {node} to know it", "it is not in its metadata")
                if node in replicas and (node, key) not in seen[Belief.REPLICA]:
                    yield self._stale(0, key, f"a replica at broker {node}", "none")
        if running and not seen[Belief.CONTROLLER]:
            yield self._stale(0, (None, -1), "an active controller", "none")

    def _stale(self, place: int, key: Key, expected: str, seen: str) -> Contradiction:
        return Contradiction(
            anomaly="stale_belief", expected=expected, seen=seen, place=place, topic=key[0], partition=key[1]
        )

    def compared(
        self, place: int, event: Event, *facts: tuple[str, object, object]
    ) -> Iterator[Contradiction]:
        """Each of these facts: its name, what ZooKeeper holds, what the broker believes."""
        for name, expected, seen in facts:
            if expected != seen:
                yield self._stale(
                    place,
                    (event.topic, event.partition),
                    f"broker {event.node} ({event.cause}) to believe what ZooKeeper holds: {name} {expected}",
                    f"{name} {seen}",
                )

    # ---- brokers and the controller

    def _broker(self, place: int, event: Event) -> Iterator[Contradiction]:
        """Who is alive and who controls."""
        known = self.known
        configs = self.of(place).configs
        first = next(at for at, one in enumerate(self.beliefs) if one.cause == Belief.BROKER)
        yield from self.compared(
            place,
            event,
            ("broker epoch", known.registered.get(event.node, -1), event.broker_epoch),
            ("controller epoch", known.controller_epoch, event.controller_epoch),
            ("live brokers", tuple(sorted(known.registered)), event.replicas),
            ("brokers about to stop", (), event.isr),
            ("controller", known.controller, event.leader),
            ("configurations", self.of(first).configs, configs),
            ("overrides that are not in effect", [], self.of(place).misapplied),
            ("state", RUNNING[known.controller == event.node], self.of(place).state),
        )

    def _controller(self, place: int, event: Event) -> Iterator[Contradiction]:
        """Whom it sends to, and what it has not finished."""
        known, facts = self.known, self.of(place)
        registered = {str(broker): epoch for broker, epoch in known.registered.items()}
        yield from self.compared(
            place,
            event,
            ("controller", known.controller, event.node),
            ("controller epoch", known.controller_epoch, event.controller_epoch),
            ("live brokers", tuple(sorted(known.registered)), event.replicas),
            ("brokers about to stop", (), event.isr),
            ("broker epochs", registered, facts.channels),
            ("waiting requests", 0, facts.queued),
            ("reassignments", [], facts.reassigning),
            ("deletions", [], facts.deleting),
        )

    def _controlled(self, place: int, event: Event) -> Iterator[Contradiction]:
        """A partition as the controller knows it."""
        key = event.topic, event.partition
        facts = self.of(place)
        assigned = self.known.assigned.get(key, ())
        yield from self._state(place, event, key)
        yield from self.compared(
            place,
            event,
            ("replicas", assigned, event.replicas),
            ("state", "OnlinePartition", facts.phase),
            ("states of replicas", {str(one): "OnlineReplica" for one in assigned}, facts.replicas),
        )

    def _state(self, place: int, event: Event, key: Key) -> Iterator[Contradiction]:
        state = self.known.states.get(key)
        if state is not None:
            yield from self.compared(
                place,
                event,
                ("leader", state.leader, event.leader),
                ("leader epoch", state.leader_epoch, event.leader_epoch),
                ("version", state.zk_version, event.zk_version),
                ("ISR", sorted(state.isr), sorted(event.isr)),
            )

    def _metadata(self, place: int, event: Event) -> Iterator[Contradiction]:
        """A partition as clients are answered."""
        key = event.topic, event.partition
        assigned = self.known.assigned.get(key)
        if assigned is None:
            # Nobody waits for the request that takes a topic out of the caches. It may be lost where a broker
            # registered anew or a controller was elected since; then the topic stays, as in Kafka.
            deleted = self.known.deleted.get(event.topic)
            if deleted is None or deleted > max(self.known.reign, self.known.since.get(event.node, 0)):
                forget = f"broker {event.node} to forget a deleted partition"
                yield self._stale(place, key, forget, "it is known")
            return
        yield from self._state(place, event, key)
        yield from self.compared(place, event, ("replicas", assigned, event.replicas))

    # ---- replicas

    def _replica(self, place: int, event: Event) -> Iterator[Contradiction]:
        """A role, and a log compared with the leader's."""
        key = event.topic, event.partition
        state = self.known.states.get(key)
        if state is None or event.node not in self.known.assigned.get(key, ()):
            return
        for wrong in self.of(place).files:
            yield Contradiction(
                anomaly="directory_disagrees",
                expected=f"the directory of broker {event.node} to have the files of its log, and indexes "
                f"that point at its batches",
                seen=wrong,
                place=place,
                topic=event.topic,
                partition=event.partition,
            )
        if state.leader == event.node:
            yield from self._state(place, event, key)
            replicas = sorted(self.known.assigned[key])
            yield from self.compared(place, event, ("replicas", replicas, sorted(event.replicas)))
            return
        yield from self.compared(
            place,
            event,
            ("leader", state.leader, event.leader),
            ("leader epoch", state.leader_epoch, event.leader_epoch),
        )
        leader = self.replicas.get((key, state.leader))
        if leader is not None and self.known.appended.get(key, 0) + self.rest < event.time:
            yield from self._like_leader(place, event, *leader)

    def _like_leader(self, place: int, event: Event, at: int, leader: Event) -> Iterator[Contradiction]:
        ours, theirs = self.of(place), self.of(at)
        ends = theirs.followers.get(str(event.node), event.end_offset)
        facts: list[tuple[str, object, object]] = [
            ("log end offset", leader.end_offset, event.end_offset),
            ("high watermark", leader.high_watermark, event.high_watermark),
            ("log end offset as its leader knows it", event.end_offset, ends),
        ]
        if event.log_start_offset < leader.log_start_offset:
            facts.append(("log start offset", leader.log_start_offset, event.log_start_offset))
        start = max(event.log_start_offset, leader.log_start_offset)
        for number, last in sorted(theirs.producers.items()):
            if last[2] >= start and number in ours.producers:
                facts.append((f"last batch of producer {number}", last, ours.producers[number]))
        facts.append(("open transactions", _since(theirs.open, start), _since(ours.open, start)))
        for name, expected, seen in facts:
            if expected != seen:
                yield Contradiction(
                    anomaly="replicas_disagree",
                    expected=f"broker {event.node} to have what leader {leader.node} has: {name} {expected}",
                    seen=f"{name} {seen}",
                    place=place,
                    topic=event.topic,
                    partition=event.partition,
                )

    # ---- groups

    def _coordinator(self, place: int, event: Event, name: str) -> Iterator[Contradiction]:
        state = self.known.states.get((event.topic, event.partition))
        if state is not None:
            yield from self.compared(
                place,
                event,
                (f"coordinator of {name}", state.leader, event.node),
                (f"coordinator epoch of {name}", state.leader_epoch, event.leader_epoch),
            )

    def _transaction(self, place: int, event: Event) -> Iterator[Contradiction]:
        """Who coordinates it, and whether its log says the same."""
        facts = self.of(place)
        yield from self._coordinator(place, event, facts.transactional_id)
        decided, logged = facts.decided, facts.logged
        if not facts.settled or decided is None or decided == logged:
            return
        # a later append, which may be of the same millisecond, may have been given up
        if logged is None or (logged[CHANGED], logged[EPOCH]) <= (decided[CHANGED], decided[EPOCH]):
            yield self._not_stored(place, f"transactions of {facts.transactional_id}", logged, decided)

    def _group(self, place: int, event: Event) -> Iterator[Contradiction]:
        """Who serves it, and whether its log says the same."""
        facts = self.of(place)
        yield from self._coordinator(place, event, facts.group)
        if (event.topic, event.partition) not in self.known.states:
            return
        served, stored = facts.served, facts.stored
        if served is None or stored is None:
            return
        offsets = {name: stored.offsets.get(name) for name in served.offsets}
        held: list[tuple[str, object, object]] = [
            (f"committed offset of {name}", offsets[name], one)
            for name, one in served.offsets.items()
            if not _later(offsets[name], one)
        ]
        if facts.phase in SETTLED and served.generation:
            held += [
                ("generation", stored.generation, served.generation),
                ("protocol", stored.protocol, served.protocol),
                ("leader", stored.leader, served.leader),
                ("members", stored.members, served.members),
            ]
        for name, expected, seen in held:
            if expected != seen:
                yield self._not_stored(place, f"group {facts.group}: {name}", expected, seen)

    def _not_stored(self, place: int, what: str, stored: object, served: object) -> Contradiction:
        event = self.beliefs[place]
        return Contradiction(
            anomaly="group_not_stored" if event.cause == Belief.GROUP else "transaction_not_stored",
            expected=f"coordinator {event.node} to go on as its log says: {what} {stored}",
            seen=f"{served}",
            place=place,
            topic=event.topic,
            partition=event.partition,
        )


def _since(opened: Mapping[str, int], start: int) -> dict[str, int]:
    """The transactions that began at an offset or later."""
    return {number: since for number, since in opened.items() if since >= start}


def _later(stored: tuple[int, int, str] | None, served: tuple[int, int, str]) -> bool:
    """Whether the log holds a later record of the offset: one that is being written, or that was given up
    before it was known to be durable."""
    return stored is not None and stored[0] > served[0]


_JUDGES: Mapping[str, Callable[[Comparison, int, Event], Iterator[Contradiction]]] = {
    Belief.BROKER: Comparison._broker,
    Belief.CONTROLLER: Comparison._controller,
    Belief.CONTROLLED: Comparison._controlled,
    Belief.METADATA: Comparison._metadata,
    Belief.REPLICA: Comparison._replica,
    Belief.GROUP: Comparison._group,
    Belief.TRANSACTION: Comparison._transaction,
}


@define
class Beliefs:
    """The state of the rule: what ZooKeeper holds, and the beliefs with their positions."""

    findings: Findings
    options: Options
    known: Known = field(factory=Known)
    beliefs: list[tuple[int, Event]] = field(factory=list)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Facts of ZooKeeper, appends, and beliefs."""
        return {Name.BELIEF: self._belief, **dict.fromkeys(LEARNT, self._learn)}

    def _learn(self, position: int, event: Event) -> None:
        self.known.learn(event)

    def _belief(self, position: int, event: Event) -> None:
        self.beliefs.append((position, event))

    def end(self) -> None:
        """The trace is over: compare."""
        events = [event for _, event in self.beliefs]
        for one in contradictions(self.known, events, rest_ns(self.options)):
            self.findings.add(
                one.anomaly,
                expected=one.expected,
                seen=one.seen,
                topic=one.topic,
                partition=one.partition,
                offset=one.offset,
                events=(self.beliefs[one.place][0],),
            )

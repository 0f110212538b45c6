"""What disturbed whom, from when to when; and since when each subject has been calm.

Owns the one notion of calm. A disturbance is a fact that the suspect does not decide: a fault, a process that
ended, a link, what an operator or a client did, the machine. It ends with its outer cause, never with the
reaction that is owed for it: bounds.py says how long that may take. On what a subject depends is said once
(`touches`). What is away for longer than a session is not waited for any more.
"""

from bisect import bisect_left
from collections.abc import Iterator
from enum import StrEnum
from operator import attrgetter

from attrs import define, field, frozen

from fencepost.record import bounds
from fencepost.record.facts import ENDING, STOPPING, Facts, Key, Told, at, busy_since, fault_detail, place_of
from fencepost.record.settings import MILLISECOND, PAUSE_MS
from fencepost.traces.events import Event, Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC, STATE_TOPIC
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import plain

EVERYBODY: frozenset[int] = frozenset()
"""Instead of brokers: all of them."""
FOR_EVER = 1 << 62


class Subject(StrEnum):
    """What a promise is about. A subject is a pair of this and its name."""

    BROKER = "broker"
    SESSION = "session"
    """Of a broker, with ZooKeeper or with the quorum."""
    CONTROLLER = "controller"
    PARTITION = "partition"
    TOPIC = "topic"
    GROUP = "group"
    ID = "transactional id"
    CLIENT = "client"


class Kind(StrEnum):
    """What disturbs."""

    NOISE = "noise"
    """Messages are lost, doubled or held back by chance."""
    START = "start"
    """The run has not begun."""
    FAULT = "fault"
    """A pause, a cut, a slow disk: as long as it lasts, and until the last late byte has come."""
    AWAY = "away"
    """A process that ended at once, until the others know it."""
    STOP = "stop"
    """A process that was asked to stop: nobody waits for a time-out because of it."""
    BACK = "back"
    """A process that runs again, until it may be expected to serve."""
    CONTROLLER = "controller"
    """The controller is away, or a new one has been elected."""
    LINKS = "links"
    """Clients do not reach a broker."""
    REQUEST = "request"
    """An operator asked for something."""
    LATENT = "latent"
    """A disk or a clock is not what it was, whatever is seen of it."""
    BUSY = "busy"
    """A process did nothing else: a long step of its disk, or no processor."""
    UNLED = "unled"
    """A partition takes no records, because its leader or too much of its ISR is away; or a coordinator reads
    its records."""
    MEMBER = "member"
    """A member of a group came, went or stood still."""


CLIENTS_ONLY = frozenset({"client_partition", "late_requests", "broken_request"})
"""Kinds of fault that no broker notices."""
REQUESTS = (
    "reassign_",
    "create_topic",
    "delete_topic",
    "add_partitions",
    "preferred_election",
    "alter_topic",
    "delete_group",
    "delete_offsets",
    "remove_member",
)
"""How the kinds of fault begin that are requests of operators."""
LYING = frozenset({"lying_fsync", "bit_rot", "clock_jump", "clock_drift", "power_loss"})
"""Kinds of fault after which something of a host is wrong that nobody sees at once."""
WIDE = frozenset({"zookeeper_unreachable", "zookeeper_restart", "ring_partition", "majority_partition"})
"""Kinds of fault that hit all brokers, whatever their target."""
PAIRED = frozenset({"partition", "slow_link", "loss", "duplication", "reordering"})
"""Kinds of fault between the target and another broker, or all others."""
DELAYING = frozenset({"slow_link", "slow_zookeeper"})
"""Kinds of fault whose parameter is how much longer a message takes, in microseconds: so long it arrives
after their end."""


RING = "ring_partition"
AT_ONCE = "expire_session"
"""The kind of fault that is over when it begins, whatever its duration."""


@define(eq=False)
class Disturbance:
    """Something that disturbs, from `begin` to `end`, nanoseconds of the trace. Each is one of its own."""

    kind: Kind
    begin: int
    end: int
    # In one clause.
    what: str
    # Which brokers; EVERYBODY: all.
    brokers: frozenset[int] = EVERYBODY
    # What else it names: a topic of an operator's request, a partition, a group of a member.
    topic: str | None = None
    partition: int = -1
    group: str | None = None
    # The event that it began with, as a position in the trace.
    position: int = -1
    # Whether one of the brokers was the controller meanwhile.
    decides: bool = False
    # Whether it is between brokers, each of which is well.
    between: bool = False


@frozen
class Calm:
    """A stretch without a disturbance of a subject."""

    begin: int
    end: int
    # The last disturbance; None: there was none.
    before: Disturbance | None


Named = tuple[Subject, object]
OF_BROKERS = frozenset({Subject.BROKER, Subject.SESSION, Subject.CONTROLLER})
"""Subjects that no topic has to do with."""


EVERY_CLIENT: Named = (Subject.CLIENT, None)
"""What touches one touches all."""
_begin = attrgetter("begin")


@define
class Timeline:
    """The disturbances of a run."""

    facts: Facts
    disturbances: tuple[Disturbance, ...]
    _calms: dict[tuple[Named, frozenset[Kind]], tuple[Calm, ...]] = field(factory=dict)
    _touching: dict[Named, tuple[Disturbance, ...]] = field(factory=dict)

    def calms(self, subject: Named, through: frozenset[Kind] = frozenset()) -> tuple[Calm, ...]:
        """The stretches in which a subject is calm.

        Args:
            subject: its kind and name.
            through: disturbances that do not count, unless it was the controller that went away.
        """
        if subject[0] is Subject.CLIENT:
            subject = EVERY_CLIENT
        known = self._calms.get((subject, through))
        if known is None:
            touching = [one for one in self.touching(subject) if not _passes(one, subject, through)]
            known = self._calms[subject, through] = tuple(gaps(touching, self.facts.end))
        return known

    def calm_at(self, subject: Named, moment: int, through: frozenset[Kind] = frozenset()) -> Calm | None:
        """The stretch of calm that a moment lies in; None in a disturbance."""
        calms = self.calms(subject, through)
        place = bisect_left(calms, moment + 1, key=_begin) - 1
        if place >= 0 and moment <= calms[place].end:
            return calms[place]
        return None

    def touching(self, subject: Named) -> tuple[Disturbance, ...]:
        """The disturbances of a subject, by their beginning."""
        if subject[0] is Subject.CLIENT:
            subject = EVERY_CLIENT
        known = self._touching.get(subject)
        if known is None:
            known = tuple(one for one in self.disturbances if touches(self.facts, one, subject))
            self._touching[subject] = known
        return known


def _passes(one: Disturbance, subject: Named, through: frozenset[Kind]) -> bool:
    """Whether a disturbance does not count for a row: who decides may be replaced, but somebody must."""
    return one.kind in through and not (
        one.decides and one.kind is Kind.AWAY and subject[0] not in OF_BROKERS
    )


def gaps(touching: list[Disturbance], end: int) -> Iterator[Calm]:
    """The stretches without any of these disturbances.

    Args:
        touching: ascending by beginning.
        end: of the last stretch, nanoseconds.
    """
    reached, last = 0, None
    for one in touching:
        if one.begin > reached:
            yield Calm(reached, one.begin - 1, last)
        if one.end + 1 > reached:
            reached, last = one.end + 1, one
    if reached <= end:
        yield Calm(reached, end, last)


# ---- on what a subject depends


def touches(facts: Facts, one: Disturbance, subject: Named) -> bool:
    """Whether a disturbance touches a subject: one of the things on which it depends.

    A broker depends on itself; its session on itself and on the way to ZooKeeper, or to the brokers that are
    the quorum; the controller on every broker that is one; a partition on the brokers of its
    replicas, and on who decides; a topic on its partitions; a group on its partition of the offsets topic and
    on its members; a transactional id on its coordinator's partition and on what it writes; a client on
    every broker.
    """
    kind, name = subject
    if one.kind is Kind.MEMBER:
        if kind is Subject.GROUP:
            return one.group is None or plain(one.group) == plain(str(name))
        return kind in (Subject.CLIENT, Subject.ID)
    if one.kind is Kind.UNLED:
        return _needs(facts, subject, (one.topic or "", one.partition))
    if one.kind is Kind.LINKS:
        return kind in (Subject.GROUP, Subject.CLIENT, Subject.ID)
    if one.kind is Kind.REQUEST and one.topic is not None:
        return _about(subject, one.topic)
    if one.kind is Kind.CONTROLLER:
        return kind not in (Subject.BROKER, Subject.SESSION)
    if kind is Subject.SESSION and one.between and not facts.settings.has_quorum:
        return False
    if not one.brokers:
        return True
    if kind in (Subject.BROKER, Subject.SESSION):
        return name in one.brokers or (one.decides and one.between)
    if one.decides:
        return True
    if kind is Subject.PARTITION:
        return not one.brokers.isdisjoint(_replicas(facts, name, one))  # type: ignore[arg-type]
    if kind is Subject.TOPIC:
        keys = (key for key in facts.assigned if key[0] == name)
        return any(not one.brokers.isdisjoint(_replicas(facts, key, one)) for key in keys)
    return True  # a group, an id and a client may have to do with any broker


def _needs(facts: Facts, subject: Named, key: Key) -> bool:
    """Whether a group or an id needs this partition: its coordinator's, or one that it reads or may write."""
    kind, name = subject
    coordinators = {Subject.GROUP: OFFSETS_TOPIC, Subject.ID: STATE_TOPIC}.get(kind)
    if key[0] != coordinators:
        read = (plain(key[0]), key[1])
        return kind is Subject.ID or (kind is Subject.GROUP and read in facts.read_by(str(name)))
    partitions = sum(each[0] == coordinators for each in facts.states)
    return key[1] == place_of(plain(str(name)), partitions)


def _about(subject: Named, topic: str) -> bool:
    """A request says nothing of which topic of a name it is for."""
    kind, name = subject
    if kind is Subject.PARTITION:
        name = name[0] if isinstance(name, tuple) else ""
    elif kind is not Subject.TOPIC:
        return kind not in OF_BROKERS
    return plain(str(name)) == plain(topic)


def _replicas(facts: Facts, key: Key, one: Disturbance) -> set[int]:
    """Those of a partition at any time of a disturbance."""
    told = facts.assigned.get(key, ())
    found = set(facts.replicas(key, one.begin))
    found.update(*(each.value for each in told if one.begin <= each.time <= one.end))
    for each in facts.moving.get(key, ()):
        found.update(each.value)
    return found


# ---- what disturbs


def timeline_of(facts: Facts) -> Timeline:
    """The disturbances of a trace.

    Args:
        facts: of the trace.
    """
    found: list[Disturbance] = []
    sources = (
        _of_the_run,
        _of_faults,
        _of_processes,
        _of_controllers,
        _of_leaders,
        _of_operators,
        _of_clients,
    )
    for source in sources:
        found.extend(source(facts))
    found.sort(key=lambda one: (one.begin, one.end))
    for one in found:
        one.decides = _decides(facts, one)
    return Timeline(facts, tuple(found))


def _decides(facts: Facts, one: Disturbance) -> bool:
    if not one.brokers:
        return False
    held = at(facts.controller, one.begin)
    during = [told for told in facts.controller if one.begin <= told.time <= one.end]
    return any(not one.brokers.isdisjoint(told.value) for told in (held, *during) if told is not None)


def _of_the_run(facts: Facts) -> Iterator[Disturbance]:
    if facts.begun > 0:
        yield Disturbance(Kind.START, 0, facts.begun, "the run had not begun")
    settled = next((event.time for _, event in facts.of(Name.PHASE) if event.cause == "settled"), FOR_EVER)
    if facts.settings.noisy:
        yield Disturbance(Kind.NOISE, 0, settled, "messages are lost, doubled or held back by chance")
    if facts.settings.hurried:
        yield Disturbance(Kind.NOISE, 0, FOR_EVER, "the controller does not wait for a usual answer")
    for position, event in facts.of(Name.BUSY):
        since = busy_since(event)
        yield Disturbance(
            Kind.BUSY,
            since,
            event.time,
            f"{_who(event.node)} did nothing else for {(event.time - since) // 1_000_000} ms",
            _one(event.node),
            position=position,
        )


def _who(node: int) -> str:
    return f"broker {node}" if node >= 0 else "the machine"


def _of_faults(facts: Facts) -> Iterator[Disturbance]:
    """Faults that do not end a process: those are processes'."""
    open_: dict[int, tuple[int, Event]] = {}
    for position, event in facts.of(Name.FAULT_BEGAN, Name.FAULT_ENDED):
        number = fault_detail(event).fault
        if event.name is Name.FAULT_BEGAN:
            open_[number] = position, event
        elif (begun := open_.pop(number, None)) is not None:
            yield from _fault(facts, *begun, event.time)
    for begun in open_.values():
        yield from _fault(facts, *begun, FOR_EVER)


def _fault(facts: Facts, position: int, event: Event, end: int) -> Iterator[Disturbance]:
    kind, detail = event.cause, fault_detail(event)
    if kind in LYING:
        yield Disturbance(
            Kind.LATENT,
            event.time,
            FOR_EVER,
            f"{kind} of broker {event.node}",
            _one(event.node),
            position=position,
        )
    if kind in ENDING or kind == STOPPING or kind.startswith(REQUESTS):
        return
    if kind == AT_ONCE:
        end = event.time
    late = facts.settings.trips(2)
    if kind in DELAYING:
        late += detail.parameter * 1_000
    if "zookeeper" in kind:  # whose connection broke looks for another one within its session
        late += bounds.session(facts.settings)
    brokers = _one(event.node)
    if kind in WIDE:
        brokers = EVERYBODY
    elif kind in PAIRED:
        brokers = EVERYBODY if detail.other is None else frozenset({event.node, detail.other})
    word = Kind.LINKS if kind in CLIENTS_ONLY else Kind.FAULT
    what = f"{kind} of broker {event.node}" if brokers else kind
    until = min(end + late, FOR_EVER)
    yield Disturbance(
        word, event.time, until, what, brokers, position=position, between=kind in PAIRED or kind == RING
    )


def _one(node: int) -> frozenset[int]:
    return frozenset({node}) if node >= 0 else EVERYBODY


def _of_processes(facts: Facts) -> Iterator[Disturbance]:
    settings = facts.settings
    for broker, told in facts.stopping.items():
        for begun in told:
            if begun.value:
                yield Disturbance(
                    Kind.STOP,
                    begun.time,
                    begun.time + bounds.led(settings),
                    f"broker {broker} was asked to stop",
                    _one(broker),
                    position=begun.position,
                )
    for broker, told in facts.runs.items():
        for change in told:
            if not change.value:
                if not facts.is_stopping(broker, change.time) or facts.is_registered(broker, change.time):
                    yield from _away(facts, broker, change)
            elif change.time > 0:
                yield _back(facts, broker, change)


def _away(facts: Facts, broker: int, ended: Told) -> Iterator[Disturbance]:
    """Until its session is over: ZooKeeper says when, else it may last as long as was agreed."""
    known = ended.time + bounds.session(facts.settings)
    for told in facts.registered.get(broker, ()):
        if not told.value and ended.time <= told.time < known:
            known = told.time
            break
    what = f"broker {broker} ended"
    yield Disturbance(Kind.AWAY, ended.time, known, what, _one(broker), position=ended.position)


def _back(facts: Facts, broker: int, started: Told) -> Disturbance:
    """Until it is registered, at most until it must be."""
    until = started.time + bounds.registered(facts.settings)
    for told in facts.registered.get(broker, ()):
        if told.value and started.time <= told.time < until:
            until = told.time
            break
    what = f"broker {broker} started"
    return Disturbance(Kind.BACK, started.time, until, what, _one(broker), position=started.position)


def _of_controllers(facts: Facts) -> Iterator[Disturbance]:
    """Whoever is elected takes over what there is; nobody decides before."""
    settings = facts.settings
    for position, event in facts.of(Name.CONTROLLER_EPOCH):
        until = event.time + bounds.failed_over(settings)
        what = f"broker {event.node} became controller"
        yield Disturbance(Kind.CONTROLLER, event.time, until, what, position=position)
    for told in facts.controller:
        if not told.value:
            until = told.time + bounds.quorum(settings)
            what = "there was no controller"
            yield Disturbance(Kind.CONTROLLER, told.time, until, what, position=told.position)


def _of_leaders(facts: Facts) -> Iterator[Disturbance]:
    """Partitions that are no use to who needs them, and coordinators that have to read records first."""
    if not any(one.group for one in facts.operations) and Name.TRANSACTION_PHASE not in facts.events:
        return
    for key in facts.states:
        for begin, end in facts.useless(key):
            what = f"{key[0]}-{key[1]} took no records"
            until = end + bounds.delivered(facts.settings)
            yield Disturbance(Kind.UNLED, begin, until, what, topic=key[0], partition=key[1])
    for position, event in facts.of(*_elections(facts)):
        if event.topic in (OFFSETS_TOPIC, STATE_TOPIC):
            until = event.time + bounds.loaded(facts.settings, event.topic, max(0, event.offset))
            what = f"broker {event.leader} had to read {event.topic}-{event.partition}"
            topic, partition = event.topic, event.partition
            yield Disturbance(
                Kind.UNLED, event.time, until, what, topic=topic, partition=partition, position=position
            )


def _elections(facts: Facts) -> tuple[Name, ...]:
    """The events that say who leads: of brokers that say so themselves, else of ZooKeeper or the quorum."""
    return (Name.BECAME_LEADER,) if Name.BECAME_LEADER in facts.events else (Name.PARTITION_STATE,)


def _of_operators(facts: Facts) -> Iterator[Disturbance]:
    settings = facts.settings
    for position, event in facts.of(Name.FAULT_BEGAN):
        if event.cause.startswith(REQUESTS):
            _, _, topic = fault_detail(event).target.partition(" ")
            yield Disturbance(
                Kind.REQUEST,
                event.time,
                event.time + bounds.led(settings),
                f"an operator asked for {event.cause}",
                topic=topic.rpartition("-")[0] or topic if event.cause.startswith("reassign") else topic,
                position=position,
            )
    for name in (Name.REASSIGNMENT, Name.ASSIGNMENT, Name.TOPIC_DELETION):
        for position, event in facts.of(name):
            until = event.time + bounds.led(settings)
            what = f"{event.name.value} of {event.topic}"
            yield Disturbance(Kind.REQUEST, event.time, until, what, topic=event.topic, position=position)


def _of_clients(facts: Facts) -> Iterator[Disturbance]:
    """Members that come, go and stand still: as their clients did it, or as the plan has it."""
    settings = facts.settings
    if settings.hasty:
        what = "members have less patience than a step of theirs takes"
        yield Disturbance(Kind.MEMBER, 0, FOR_EVER, what)
    came: dict[str | None, list[tuple[int, int]]] = {}
    seen: set[tuple[int, int]] = set()
    groups: dict[int, str] = {}
    gone = list(facts.leavings())  # gone at once, if its last commit takes too long
    rows: dict[int, list[Operation]] = {}
    for one in sorted(facts.operations, key=lambda one: one.invoke_time):
        who = one.process, one.session
        rows.setdefault(one.process, []).append(one)
        begins = one.member or one.function in (Function.JOIN, Function.ASSIGN)
        if one.group is not None and begins and who not in seen:
            seen.add(who)
            groups[one.process] = one.group
            came.setdefault(one.group, []).append((one.invoke_time, one.process))
            what = f"process {one.process} became a member"
            yield Disturbance(Kind.MEMBER, one.invoke_time, one.invoke_time, what, group=one.group)
        elif one.function is Function.CRASH:
            gone.append((one.process, one.invoke_time))
        elif one.function is Function.SUBSCRIBE and one.group is not None:
            what, until = (
                f"process {one.process} subscribed again",
                one.invoke_time + bounds.expelled(settings),
            )
            yield Disturbance(Kind.MEMBER, one.invoke_time, until, what, group=one.group)
    for process, moment in gone:
        group = groups.get(process)
        until = min(moment + bounds.expelled(settings), _let_go(moment, rows.get(process, [])))
        until = max(until, _alone(moment, came.get(group, []), gone))
        yield Disturbance(Kind.MEMBER, moment, until, f"process {process} ended", group=group)
    still: dict[int, int] = {}  # until when a process does; one that is told meanwhile works after that
    for planned in sorted(settings.operations, key=lambda one: one.at_ms):
        if planned.function == "pause":
            begin = facts.begun + planned.at_ms * MILLISECOND
            end = max(begin, still.get(planned.process, 0)) + planned.records * PAUSE_MS * MILLISECOND
            still[planned.process] = end
            what = f"process {planned.process} stood still"
            yield Disturbance(Kind.MEMBER, begin, end, what, group=groups.get(planned.process))


def _let_go(moment: int, rows: list[Operation]) -> int:
    """When the coordinator has let a process go that ended or left then: once it has answered its LeaveGroup,
    if it joined no more."""
    session = max((one.session for one in rows if one.invoke_time <= moment), default=-1)
    asked = [
        one for one in rows if one.session == session and one.function in (Function.JOIN, Function.LEAVE)
    ]
    left = asked and asked[-1].function is Function.LEAVE and asked[-1].outcome is Outcome.OK
    return max(moment, asked[-1].completion_time or moment) if left else FOR_EVER


def _alone(moment: int, came: list[tuple[int, int]], gone: list[tuple[int, int]]) -> int:
    """When a group has a member again, if none outlives this moment, but one came later; else the moment.
    came: when, and which process; gone: which, and when."""
    here = {process: time for time, process in came if time <= moment}
    for process, time in gone:
        if here.get(process, FOR_EVER) <= time <= moment:
            del here[process]
    return moment if here else next((time for time, _ in came if time > moment), moment)

"""The facts of a trace by what they are about, so that a rule can ask what held at a moment.

Owns the index. Facts are what ZooKeeper or the metadata log committed, what the run did, and which processes
ran: never what a broker believes. Must not know rules or disturbances.
"""

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import msgspec
from attrs import define, field, frozen

from fencepost.record.settings import MILLISECOND, Settings
from fencepost.record.subscriptions import differ, subscriptions_of
from fencepost.traces.decoding import from_json
from fencepost.traces.events import DELETION_ANSWERED, MEMBER_LEFT, Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import CLOSING_MS, IN_ORDER
from fencepost.traces.trace import name_of, plain

Key = tuple[str, int]
"""Topic and partition number."""
ENDING = frozenset({"crash", "bounce", "power_loss", "bit_rot"})
"""Kinds of fault that end a process at once."""
STOPPING = "clean_restart"
"""The kind of fault that asks a process to stop."""
NOT_RUNNING = "NotRunning"
NOBODY = -1
JOIN_LAPSE_MS = 5_000
"""How much longer than its poll interval a member waits for the answer to its JoinGroup, as Kafka's does."""
SMALLEST = 1 << 31
"""The absolute value of the smallest integer of 32 bits, which Utils.abs makes 0."""


Made = TypeVar("Made")


class FaultDetail(msgspec.Struct, frozen=True):
    """The detail of a fault's beginning."""

    fault: int = -1
    target: str = ""
    parameter: int = 0
    other: int | None = None


class Left(msgspec.Struct, frozen=True):
    """The detail of a member that left."""

    process: int = -1


class Since(msgspec.Struct, frozen=True):
    """The detail of a busy stretch."""

    since: int = 0


@frozen
class State:
    """What was committed as a partition's state."""

    time: int
    # Of the event in the trace.
    position: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    # The broker that wrote it.
    writer: int


@frozen
class Told:
    """A value that holds from a moment on."""

    time: int
    position: int
    value: tuple[int, ...]


_time = attrgetter("time")
_position = _first = itemgetter(0)


def at(told: Sequence[Told], moment: int) -> Told | None:
    """The last of these at or before a moment. told: ascending by time."""
    place = bisect_right(told, moment, key=_time)
    return told[place - 1] if place else None


@define
class Facts:
    """What held when. Lists are ascending by time."""

    settings: Settings
    # When the last event or operation was.
    end: int = 0
    # When the run began to work, and to heal; -1: it did not.
    begun: int = -1
    # The positions and events of each name.
    events: dict[Name, list[tuple[int, Event]]] = field(factory=dict)
    operations: Sequence[Operation] = ()
    # Whether rows are asked about what is well, too: only to be counted. Else a row may leave it out early.
    counting: bool = False
    # What ZooKeeper or the metadata log holds of each partition.
    states: dict[Key, list[State]] = field(factory=dict)
    # Replicas of each partition; () when it is gone.
    assigned: dict[Key, list[Told]] = field(factory=dict)
    # Targets of reassignments; () when one is over.
    moving: dict[Key, list[Told]] = field(factory=dict)
    # By broker: (1,) when it was registered, () when it was not any more.
    registered: dict[int, list[Told]] = field(factory=dict)
    # The controller, as a tuple of one; () when nobody was.
    controller: list[Told] = field(factory=list)
    # By broker: (1,) when its process ran, () when it had ended.
    runs: dict[int, list[Told]] = field(factory=dict)
    # By broker: (1,) when it was asked to stop, () when it was started again.
    stopping: dict[int, list[Told]] = field(factory=dict)
    # By topic: when its deletion was asked for (1,), and done ().
    deleted: dict[str, list[Told]] = field(factory=dict)
    # By topic: when it was first heard of.
    began: dict[str, int] = field(factory=dict)
    _read: dict[str, frozenset[Key]] = field(factory=dict)
    _small: dict[Key, list[tuple[int, int]]] = field(factory=dict)
    _made: dict[Callable[["Facts"], Any], Any] = field(factory=dict)

    def once(self, make: Callable[["Facts"], Made]) -> Made:
        """What this makes of the facts; made once, though several rows ask for it."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made

    def of(self, *names: Name) -> Iterator[tuple[int, Event]]:
        """The events of these names with their positions, in the order of the trace."""
        if len(names) == 1:
            return iter(self.events.get(names[0], ()))
        found = (pair for name in names for pair in self.events.get(name, ()))
        return iter(sorted(found, key=_position))

    def replicas(self, key: Key, moment: int) -> tuple[int, ...]:
        """The replicas of a partition; () if there is none then.

        Args:
            key: topic and partition.
            moment: nanoseconds.
        """
        told = at(self.assigned.get(key, ()), moment)
        return () if told is None else told.value

    def holds(self, told: Sequence[Told] | None, moment: int) -> bool:
        """Whether the last of these values says yes.

        Args:
            told: ascending by time.
            moment: nanoseconds.
        """
        found = at(told or (), moment)
        return found is not None and bool(found.value)

    def is_registered(self, broker: int, moment: int) -> bool:
        """Whether the broker has its node, or is unfenced.

        Args:
            broker: its number.
            moment: nanoseconds.
        """
        return self.holds(self.registered.get(broker), moment)

    def has_joined(self, broker: int, moment: int) -> bool:
        """Whether its process, not only a former one of it, is registered.

        Args:
            broker: its number.
            moment: nanoseconds.
        """
        registered, run = at(self.registered.get(broker, ()), moment), at(self.runs.get(broker, ()), moment)
        return (
            registered is not None and bool(registered.value) and (run is None or run.time <= registered.time)
        )

    def candidates(self, brokers: Iterable[int], since: int, until: int) -> Iterator[tuple[int, int]]:
        """The stretches of time in which one of these brokers or more was registered.

        Args:
            brokers: their numbers.
            since, until: nanoseconds.
        """
        brokers = tuple(brokers)
        changes = sorted({each.time for broker in brokers for each in self.registered.get(broker, ())})
        moments = [since, *(moment for moment in changes if since < moment < until), until]
        begin = -1
        for moment in moments[:-1]:
            there = any(self.is_registered(broker, moment) for broker in brokers)
            if there and begin < 0:
                begin = moment
            elif not there and begin >= 0:
                yield begin, moment
                begin = -1
        if begin >= 0:
            yield begin, until

    def is_running(self, broker: int, moment: int) -> bool:
        """Whether its process is there, as far as faults and starts say.

        Args:
            broker: its number.
            moment: nanoseconds.
        """
        return self.holds(self.runs.get(broker), moment)

    def is_stopping(self, broker: int, moment: int) -> bool:
        """Whether it was asked to stop and not started since.

        Args:
            broker: its number.
            moment: nanoseconds.
        """
        return self.holds(self.stopping.get(broker), moment)

    def life(self, topic: str, moment: int) -> str:
        """Which topic of a name was there, or was there last.

        Args:
            topic: its name, as clients know it.
            moment: nanoseconds.
        """
        if topic not in self.once(_used_again):
            return topic
        life = 0
        while self.began.get(name_of(topic, life + 1), moment + 1) <= moment:
            life += 1
        return name_of(topic, life)

    def is_going(self, topic: str | None, moment: int) -> bool:
        """Whether the deletion of the topic was asked for and is not done.

        Args:
            topic: its name.
            moment: nanoseconds.
        """
        return topic is not None and self.holds(self.deleted.get(topic), moment)

    def is_moving(self, key: Key, moment: int) -> bool:
        """Whether the partition is being reassigned.

        Args:
            key: topic and partition.
            moment: nanoseconds.
        """
        return self.holds(self.moving.get(key), moment)

    def all_there(self, brokers: Iterable[int], since: int, until: int) -> int:
        """From a moment on, when all of these brokers were registered and stayed so until another moment, or
        the end; that later one if they never were."""
        until = min(until, self.end)
        for broker in brokers:
            if not self.is_registered(broker, until):
                return until
            told = self.registered.get(broker, ())
            since = max([since, *(each.time for each in told if each.value and since < each.time <= until)])
        return since

    def leavings(self) -> Iterator[tuple[int, int]]:
        """Who left a group because its run wanted it to: process and moment."""
        for planned in self.settings.operations:
            if planned.function == "unsubscribe":
                yield planned.process, self.begun + planned.at_ms * MILLISECOND
                if planned.argument == IN_ORDER:
                    yield planned.process, self.begun + (planned.at_ms + CLOSING_MS) * MILLISECOND
        for _, event in self.of(Name.MARK):
            if event.cause == MEMBER_LEFT:
                try:
                    yield from_json(event.detail or "{}", Left).process, event.time
                except msgspec.DecodeError:
                    continue

    def subscribed(self, group: str, topic: str, moment: int) -> tuple[int, int]:
        """The first stretch that ends after a moment in which a process of the group was to read this topic,
        by the plan; the whole run where all of them read the same topics.

        Args:
            group: its name.
            topic: as clients know it.
            moment: nanoseconds.
        """
        stretches = self.once(_subscriptions).get((group, topic))
        if stretches is None:
            return 0, self.end + 1
        return next((one for one in stretches if one[1] > moment), (self.end + 1, self.end + 1))

    def read_by(self, group: str) -> frozenset[Key]:
        """The partitions that members of a group polled."""
        known = self._read.get(group)
        if known is None:
            polls = (one for one in self.operations if one.group == group)
            known = frozenset((place.topic, place.partition) for one in polls for place in one.positions)
            self._read[group] = known
        return known

    def useless(self, key: Key) -> Iterator[tuple[int, int]]:
        """The stretches in which a partition took no records: its leader did not run, or there was none, or
        its ISR was smaller than it must be."""
        states, begin = self.states.get(key, []), -1
        least = self.settings.topic(key[0]).min_insync_replicas
        leaders = {state.leader for state in states}
        moments = {state.time for state in states}
        moments |= {each.time for broker in leaders for each in self.runs.get(broker, ())}
        moments |= {each.time for each in self.assigned.get(key, ())}
        at_first = states[0].time if states else 0
        place = 0
        for moment in sorted(moments):
            while place + 1 < len(states) and states[place + 1].time <= moment:
                place += 1
            state = states[place]
            gone = key in self.assigned and not self.replicas(key, moment)
            useful = gone or (self.is_running(state.leader, moment) and len(state.isr) >= least)
            if moment >= at_first and not useful and begin < 0:
                begin = moment
            elif useful and begin >= 0:
                yield begin, moment
                begin = -1
        if begin >= 0:
            yield begin, self.end

    def _unwritable(self, key: Key) -> list[tuple[int, int]]:
        """The stretches in which the ISR of a partition was smaller than it must be, or nobody led."""
        known = self._small.get(key)
        if known is None:
            states, least = self.states.get(key, []), self.settings.topic(key[0]).min_insync_replicas
            known = self._small[key] = [
                (
                    state.time,
                    next((each.time for each in states[place + 1 :] if each.time > state.time), self.end),
                )
                for place, state in enumerate(states)
                if state.leader < 0 or len(state.isr) < least
            ]
        return known

    def writable(self, key: Key, since: int, until: int) -> int:
        """From a moment on, when the ISR of a partition was as large as it must be, and stayed so until
        another moment, or the end; that later one if it was not.

        Args:
            key: topic and partition.
            since, until: nanoseconds.
        """
        until = min(until, self.end)
        for begin, end in self._unwritable(key):
            if begin <= until:
                since = max(since, min(end, until))
        return since

    def dead(self, begin: int, end: int) -> int:
        """How many brokers did not run at some moment from begin to end: a client may ask each, in turn, and
        waits for nothing until its request times out."""
        return sum(any(since <= end and until > begin for since, until in down) for down in self.once(_down))

    def asks_the_dead(self, begin: int, end: int) -> int:
        """The time that a member of a group waits for a broker that does not run, or has started since, if
        there may be one: for the answer to a JoinGroup, and then once more for another one.

        Args:
            begin, end: nanoseconds.
        """
        consumer = self.settings.consumer
        patience_ms = consumer.max_poll_interval_ms + JOIN_LAPSE_MS
        patience_ms += consumer.request_timeout_ms + consumer.retry_backoff_ms
        patience = patience_ms * MILLISECOND
        return patience if self.dead(begin - patience, end) else 0

    def names_of(self, kind: str) -> Iterable[object]:
        """All subjects of a kind.

        Args:
            kind: as in timeline.Subject.
        """
        if kind in ("broker", "session"):
            return self.brokers()
        if kind == "controller":
            return (None,)
        if kind == "partition":
            return self.states
        if kind == "topic":
            return {topic for topic, _ in self.assigned}
        if kind == "group":
            return {one.group for one in self.operations if one.group}
        return {one.process for one in self.operations}

    def brokers(self) -> tuple[int, ...]:
        """All brokers of the run."""
        return tuple(range(1, self.settings.cluster.brokers + 1))


def acknowledged(facts: Facts) -> Iterator[Operation]:
    """The appends that were acknowledged with an offset. facts: of the trace."""
    for one in facts.operations:
        if one.function is not Function.APPEND or one.outcome is not Outcome.OK:
            continue
        if one.topic is None or one.partition is None or one.offset is None or one.completion_time is None:
            continue
        yield one


def overrides_of(event: Event) -> dict[str, str]:
    """The settings in a topic_configured event; none if it cannot be read."""
    return _detail(event, dict[str, str], {})


def _detail(event: Event, kind: type[Made], otherwise: Made) -> Made:
    """The detail of an event; `otherwise` if it cannot be read: a trace may come from any tool."""
    try:
        found: Made = from_json(event.detail or "{}", kind)
    except msgspec.DecodeError:
        return otherwise
    return found


def _subscriptions(facts: Facts) -> dict[tuple[str, str], list[tuple[int, int]]]:
    operations = facts.settings.operations
    return subscriptions_of(operations, facts.begun, facts.end) if differ(operations) else {}


def facts_of(
    events: Iterable[tuple[int, Event]], operations: Sequence[Operation], settings: Settings
) -> Facts:
    """The index of a trace.

    Args:
        events: in the order of the trace, with their positions; each topic has a name of its own.
        operations: of its clients.
        settings: of its cluster.
    """
    facts = Facts(settings, operations=operations)
    of, end = facts.events, 0
    for pair in events:
        position, event = pair
        name = event.name
        known = of.get(name)
        if known is None:
            known = of[name] = []
        known.append(pair)
        if event.time > end:
            end = event.time
        if name in _LEARN:
            _LEARN[name](facts, position, event)
    ends = (operation.completion_time or operation.invoke_time for operation in operations)
    facts.end = max(end, max(ends, default=0))
    return facts


def _down(facts: Facts) -> list[list[tuple[int, int]]]:
    """The stretches in which a broker did not run, as far as it is told of any, of each that there is."""
    return [list(_down_of(facts.runs.get(broker, []))) for broker in facts.brokers()]


def _down_of(told: list[Told]) -> Iterator[tuple[int, int]]:
    since = 0 if told else None
    for each in told:
        if each.value and since is not None:
            yield since, each.time
            since = None
        elif not each.value and since is None:
            since = each.time
    if since is not None:
        yield since, sys.maxsize


def _used_again(facts: Facts) -> frozenset[str]:
    """The names of topics that there were several of."""
    return frozenset(plain(name) for name in facts.began if plain(name) != name)


def _key(event: Event) -> Key:
    return event.topic or "", event.partition


def _state(facts: Facts, position: int, event: Event) -> None:
    facts.began.setdefault(event.topic or "", event.time)
    facts.states.setdefault(_key(event), []).append(
        State(event.time, position, event.leader, event.leader_epoch, event.isr, event.node)
    )


def _assignment(facts: Facts, position: int, event: Event) -> None:
    key = _key(event)
    facts.began.setdefault(key[0], event.time)
    facts.assigned.setdefault(key, []).append(Told(event.time, position, event.replicas))
    if not event.replicas and key in facts.states:  # nobody leads what is gone
        facts.states[key].append(State(event.time, position, NOBODY, -1, (), event.node))


def _reassignment(facts: Facts, position: int, event: Event) -> None:
    facts.moving.setdefault(_key(event), []).append(Told(event.time, position, event.replicas))


def _deletion(facts: Facts, position: int, event: Event) -> None:
    value = () if event.cause in ("done", DELETION_ANSWERED) else (1,)
    facts.deleted.setdefault(event.topic or "", []).append(Told(event.time, position, value))


def _znode(facts: Facts, position: int, event: Event) -> None:
    value = (1,) if event.broker_epoch >= 0 else ()
    facts.registered.setdefault(event.node, []).append(Told(event.time, position, value))
    if value and event.node not in facts.runs:  # it ran before the trace began
        _told(facts.runs, position, event, value)


def _controller(facts: Facts, position: int, event: Event) -> None:
    value = (event.leader,) if event.leader >= 0 else ()
    facts.controller.append(Told(event.time, position, value))


def _started(facts: Facts, position: int, event: Event) -> None:
    _told(facts.runs, position, event, (1,))
    took = (one for _, one in facts.of(Name.BUSY) if (one.node, one.time) == (event.node, event.time))
    began = min(map(busy_since, took), default=event.time)  # it may be asked to stop while it starts
    if facts.is_stopping(event.node, event.time) and facts.stopping[event.node][-1].time < began:
        _told(facts.stopping, position, event, ())


def _told(of: dict[int, list[Told]], position: int, event: Event, value: tuple[int, ...]) -> None:
    of.setdefault(event.node, []).append(Told(event.time, position, value))


def _fault(facts: Facts, position: int, event: Event) -> None:
    if event.cause in ENDING:
        _told(facts.runs, position, event, ())
    elif event.cause == STOPPING:
        _told(facts.stopping, position, event, (1,))


def _broker_state(facts: Facts, position: int, event: Event) -> None:
    if event.cause == NOT_RUNNING:
        _told(facts.runs, position, event, ())


def _failed(facts: Facts, position: int, event: Event) -> None:
    if event.node >= 0:
        _told(facts.runs, position, event, ())


def _phase(facts: Facts, position: int, event: Event) -> None:
    if event.cause == "safety":
        facts.begun = event.time


_LEARN = {
    Name.PARTITION_STATE: _state,
    Name.ASSIGNMENT: _assignment,
    Name.REASSIGNMENT: _reassignment,
    Name.TOPIC_DELETION: _deletion,
    Name.BROKER_ZNODE: _znode,
    Name.CONTROLLER_ZNODE: _controller,
    Name.BROKER_STARTED: _started,
    Name.FAULT_BEGAN: _fault,
    Name.BROKER_STATE: _broker_state,
    Name.LOG_DIRECTORY_FAILED: _failed,
    Name.IMPLEMENTATION_ERROR: _failed,
    Name.PHASE: _phase,
}


@lru_cache(maxsize=1_024)
def place_of(name: str, partitions: int) -> int:
    """The partition of this name. String.hashCode: the sum of the UTF-16 units, each times a power of 31."""
    encoded = name.encode("utf-16-be")
    units = [int.from_bytes(encoded[at : at + 2], "big") for at in range(0, len(encoded), 2)]
    number: int = sum(unit * 31**power for power, unit in enumerate(reversed(units))) % (2 * SMALLEST)
    positive = number if number < SMALLEST else 2 * SMALLEST - number
    return positive % SMALLEST % partitions


def fault_of(event: Event) -> str:
    """What tells a fault from others: the number at the beginning of its detail."""
    return event.detail.split(",")[0].rstrip("}")


def fault_detail(event: Event) -> FaultDetail:
    """The detail of a fault; an empty one where it cannot be read."""
    return _detail(event, FaultDetail, FaultDetail())


def busy_since(event: Event) -> int:
    """When a busy stretch began, nanoseconds."""
    return min(_detail(event, Since, Since(event.time)).since, event.time)

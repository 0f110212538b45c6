"""Rows about partitions: who leads, who is in sync, who was told, and what is cut.

Owns these rows. The state of a partition is what ZooKeeper or the metadata log holds; a role is what a broker
says that it took.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from fencepost.checkers.liveness.forms import Case, Form, Row, came
from fencepost.record import bounds
from fencepost.record.facts import Facts, Key, State
from fencepost.record.timeline import FOR_EVER, Kind, Subject, Timeline
from fencepost.traces.events import Name
from fencepost.traces.trace import plain


def _spans(facts: Facts, key: Key) -> Iterator[tuple[State, int]]:
    """The states of a partition that is there, each with its end."""
    states = facts.states[key]
    for place, state in enumerate(states):
        until = states[place + 1].time if place + 1 < len(states) else FOR_EVER
        if state.leader_epoch >= 0 and until > state.time:
            yield state, until


class Present(NamedTuple):
    """Which brokers are registered from a moment on, and which of these were not asked to stop."""

    since: int
    there: frozenset[int]
    able: frozenset[int]


_since = attrgetter("since")


def _presence(facts: Facts) -> list[Present]:
    of = (facts.registered, facts.stopping)
    moments = {told.time for told_of in of for each in told_of.values() for told in each}
    found = []
    for moment in sorted({-1, *moments}):
        there = frozenset(one for one in facts.registered if facts.is_registered(one, moment))
        able = frozenset(one for one in there if not facts.is_stopping(one, moment))
        found.append(Present(moment, there, able))
    return found


def _able(facts: Facts, broker: int, moment: int) -> bool:
    presence = facts.once(_presence)
    return broker in presence[bisect_right(presence, moment, key=_since) - 1].able


class Stretch(NamedTuple):
    """A state of a partition, while no broker comes or goes and no operator asks for anything."""

    state: State
    begin: int
    end: int
    replicas: tuple[int, ...]
    # Brokers that are registered, and those that were not asked to stop either.
    there: frozenset[int]
    able: frozenset[int]
    # Whether its topic is not being deleted.
    stays: bool


def _stretches(facts: Facts) -> dict[Key, list[Stretch]]:
    """The states of each partition, cut where a broker came or went, and where an operator asked."""
    return {key: list(_stretches_of(facts, key)) for key in facts.states}


def _stretches_of(facts: Facts, key: Key) -> Iterator[Stretch]:
    presence = facts.once(_presence)
    asked = (*facts.deleted.get(key[0], ()), *facts.moving.get(key, ()), *facts.assigned.get(key, ()))
    changes = sorted({told.time for told in asked})
    for state, until in _spans(facts, key):
        place = bisect_right(presence, state.time, key=_since) - 1
        cuts = [*changes[bisect_right(changes, state.time) : bisect_left(changes, until)], until]
        begin = state.time
        while begin < until:
            _, there, able = presence[place]
            later = presence[place + 1].since if place + 1 < len(presence) else until
            end = min(later, cuts[0])
            stays = not facts.is_going(key[0], begin)
            yield Stretch(state, begin, end, facts.replicas(key, begin), there, able, stays)
            place += end == later
            cuts = cuts[end == cuts[0] :]
            begin = end


MANY_BATCHES = 1 << 16
"""Bytes of a segment that has many batches."""


class Lack(NamedTuple):
    """What is missing in a state, for a while."""

    state: State
    since: int
    until: int
    # Which brokers it is about.
    who: tuple[int, ...]


def _at_once(facts: Facts, key: Key) -> int:
    """Nothing to copy first."""
    return 0


def _lasting(
    facts: Facts,
    bound: int,
    lacks: Callable[[Facts, Key], Iterator[Lack]],
    words: str,
    more: Callable[[Facts, Key], int] = _at_once,
) -> Iterator[Case]:
    """A case for each lack of a partition that may have lasted longer than bound and more (nanoseconds);
    those of one thing that follow each other without a gap are one. words: what should have been, with a
    place for the brokers."""
    for key in facts.states:
        last: Lack | None = None
        for lack in lacks(facts, key):
            if last is not None and (last.who, last.until) == (lack.who, lack.since):
                last = last._replace(until=lack.until)
                continue
            yield from _case(facts, key, bound, last, words, more)
            last = lack
        yield from _case(facts, key, bound, last, words, more)


def _case(
    facts: Facts, key: Key, bound: int, lack: Lack | None, words: str, more: Callable[[Facts, Key], int]
) -> Iterator[Case]:
    if lack is None or (not facts.counting and came(facts, lack.since, lack.until, bound)):
        return
    state = lack.state
    yield Case(
        subject=(Subject.PARTITION, key),
        since=lack.since,
        until=lack.until,
        expected=words.format(who=list(lack.who), one=lack.who[0]),
        seen=f"leader {state.leader} of epoch {state.leader_epoch}, ISR {list(state.isr)}",
        topic=key[0],
        partition=key[1],
        more=more(facts, key),
        events=(state.position,),
    )


def _unled(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    words = "broker {one}, which is registered, in the ISR or allowed to lead without, to lead"
    return _lasting(facts, bounds.led(facts.settings), _unled_of, words)


def _unled_of(facts: Facts, key: Key) -> Iterator[Lack]:
    unclean = plain(key[0]) in facts.settings.unclean and not facts.once(_configured) & {key[0], None}
    for one in facts.once(_stretches)[key]:
        if one.stays and one.state.leader not in one.there:
            able = [member for member in one.state.isr if member in one.able]
            able += [replica for replica in one.replicas if unclean and replica in one.able]
            if able:
                yield Lack(one.state, one.begin, one.end, (able[0],))


def _configured(facts: Facts) -> frozenset[str | None]:
    """Topics whose settings were changed; None: those of all."""
    return frozenset(event.topic for _, event in facts.of(Name.TOPIC_CONFIGURED))


def _dead_in_sync(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    words = "brokers {who}, which are gone, to be out of the ISR"
    return _lasting(facts, bounds.led(facts.settings), _dead_of, words)


def _dead_of(facts: Facts, key: Key) -> Iterator[Lack]:
    """The controller takes out who goes. Whom a leader takes in when it had gone already, only that leader
    takes out, when there are records that it has not: another row asks whether those are committed."""
    states = facts.states[key]
    of_leaders = {now.position for before, now in pairwise(states) if now.leader_epoch == before.leader_epoch}
    for one in facts.once(_stretches)[key]:
        state = one.state
        if not one.stays or one.there.issuperset(state.isr):
            continue
        dead = tuple(
            member
            for member in state.isr
            if member not in one.there
            and (state.position not in of_leaders or facts.is_registered(member, state.time))
        )
        if dead and len(state.isr) > len(dead):
            yield Lack(state, one.begin, one.end, dead)


def _out_of_sync(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    words = "brokers {who}, which are replicas and run, to be in the ISR"
    return _lasting(facts, bounds.caught_up(facts.settings), _out_of, words, _copied)


def _copied(facts: Facts, key: Key) -> int:
    """A fetch returns records of one segment: where these are small, each batch is a round trip."""
    if facts.settings.topic(key[0]).segment_bytes >= MANY_BATCHES and key[0] not in facts.once(_configured):
        return 0
    appends = facts.of(Name.APPENDED)
    batches = sum((one.topic, one.partition, one.cause) == (*key, "leader") for _, one in appends)
    return facts.settings.trips(2 * batches) + facts.settings.syncs(batches)


def _out_of(facts: Facts, key: Key) -> Iterator[Lack]:
    for one in facts.once(_stretches)[key]:
        if not one.stays or one.state.leader not in one.there:
            continue
        lacking = tuple(
            broker for broker in one.replicas if broker in one.able and broker not in one.state.isr
        )
        if lacking and not facts.is_moving(key, one.begin):
            yield Lack(one.state, one.begin, one.end, lacking)


def _preferred(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    if not facts.settings.cluster.leader_imbalance_check_ms:
        return iter(())
    words = "broker {one}, the preferred replica, to lead"
    return _lasting(facts, bounds.balanced(facts.settings), _preferred_of, words)


def _preferred_of(facts: Facts, key: Key) -> Iterator[Lack]:
    for one in facts.once(_stretches)[key]:
        first, leader = next(iter(one.replicas), -1), one.state.leader
        able = first in one.able and first in one.state.isr
        if not one.stays or not able or not 0 <= leader != first or facts.is_moving(key, one.begin):
            continue
        preferred = sum(facts.replicas(other, one.begin)[:1] == (first,) for other in facts.states)
        if preferred * IMBALANCE_PERCENT < 100:  # else one that is led elsewhere is no imbalance
            yield Lack(one.state, one.begin, one.end, (first,))


# ---- what must follow


def _roles(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """Each replica that runs takes its role in the epoch of a decision, or in a later one."""
    bound = -1 if facts.counting else bounds.delivered(facts.settings)
    taken: dict[tuple[int, Key], list[tuple[int, int]]] = {}
    for _, event in facts.of(Name.BECAME_LEADER, Name.BECAME_FOLLOWER):
        place = event.node, (event.topic or "", event.partition)
        taken.setdefault(place, []).append((event.time, event.leader_epoch))
    if not taken:
        return
    for key, states in facts.states.items():
        epoch = -1
        for state in states:
            decided, epoch = state.leader_epoch != epoch, state.leader_epoch
            if not decided or state.leader < 0:
                continue
            if facts.is_moving(key, state.time) or facts.is_going(key[0], state.time):
                continue
            for broker in facts.replicas(key, state.time):
                until = _taken(taken.get((broker, key), []), state)
                if until - state.time <= bound:
                    continue
                if _able(facts, broker, state.time) and _serves(facts, broker, state.time):
                    case = _role(facts, key, state, broker, until)
                    last = max(
                        (time for time, _ in taken.get((broker, key), []) if time <= state.time), default=0
                    )
                    case.more = facts.settings.trips(4 * _written(facts, last, state.time))
                    yield case


def _written(facts: Facts, since: int, until: int) -> int:
    """How many decisions and registrations were written then: a controller tells of one after the other, and
    while messages are lost they queue."""
    told = [
        one.time for changes in (facts.states, facts.registered) for many in changes.values() for one in many
    ]
    return sum(since < time <= until for time in told)


def _serves(facts: Facts, broker: int, moment: int) -> bool:
    """Whether it runs, and has registered since it began: a node may be that of the process before."""
    return facts.is_running(broker, moment) and facts.has_joined(broker, moment)


def _taken(taken: list[tuple[int, int]], state: State) -> int:
    """When a role in the epoch of a state, or in a later one, was taken after it."""
    for place in range(bisect_left(taken, (state.time,)), len(taken)):
        time, epoch = taken[place]
        if epoch >= state.leader_epoch:
            return time
    return FOR_EVER


def _role(facts: Facts, key: Key, state: State, broker: int, until: int) -> Case:
    gone = [
        told.time for told in facts.registered.get(broker, ()) if not told.value and told.time > state.time
    ]
    gone += [told.time for told in facts.runs.get(broker, ()) if not told.value and told.time > state.time]
    gone += [told.time for told in facts.deleted.get(key[0], ()) if told.time > state.time]
    gone += [told.time for told in facts.assigned.get(key, ()) if told.time > state.time]
    return Case(
        subject=(Subject.PARTITION, key),
        since=state.time,
        until=min([until, *gone]),
        expected=f"broker {broker} to take its role in leader epoch {state.leader_epoch}",
        seen="it did not" if until == FOR_EVER else "it took longer",
        topic=key[0],
        partition=key[1],
        events=(state.position,),
    )


def _moves(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A reassignment that was accepted is over."""
    for key, told in facts.moving.items():
        for place, asked in enumerate(told):
            if not asked.value:
                continue
            until = next((each.time for each in told[place + 1 :]), FOR_EVER)
            gone = (each.time for each in facts.deleted.get(key[0], ()) if each.time >= asked.time)
            yield Case(
                subject=(Subject.PARTITION, key),
                since=facts.writable(
                    key, facts.all_there(asked.value, asked.time, until), until
                ),  # a dead target holds it up, and so does a partition without a leader
                until=min(until, next(gone, FOR_EVER)),
                expected=f"the reassignment to {list(asked.value)} to be over",
                seen="it was not",
                topic=key[0],
                partition=key[1],
                events=(asked.position,),
            )


# ---- what must not happen, and what needs a cause


def _cuts(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    for position, event in facts.of(Name.TRUNCATED):
        if event.end_offset > event.offset and event.cause != "full":
            yield Case(
                subject=(Subject.PARTITION, (event.topic or "", event.partition)),
                since=event.time,
                expected=f"broker {event.node} to keep its log",
                seen=f"it cut it from {event.end_offset} to {event.offset}",
                topic=event.topic,
                partition=event.partition,
                offset=event.offset,
                events=(position,),
            )


def _shrinks(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A leader's own change of the ISR: the controller's begin an epoch."""
    for key, states in facts.states.items():
        for before, state in pairwise(states):
            if state.leader_epoch != before.leader_epoch or state.leader < 0:
                continue
            for member in before.isr:
                if member not in state.isr:
                    yield Case(
                        subject=(Subject.PARTITION, key),
                        since=state.time,
                        expected=f"broker {member} to stay in the ISR {list(before.isr)}",
                        seen=f"the ISR became {list(state.isr)}",
                        topic=key[0],
                        partition=key[1],
                        decider=(state.leader, state.leader_epoch),
                        events=(before.position, state.position),
                    )


IMBALANCE_PERCENT = 10
"""leader.imbalance.per.broker.percentage: as long as not more of the partitions that a broker is to lead are
led elsewhere, they stay there."""
TROUBLE = frozenset({Kind.NOISE, Kind.START, Kind.FAULT, Kind.BUSY, Kind.AWAY, Kind.BACK, Kind.CONTROLLER})
ROWS = (
    Row(
        name="slow_election",
        form=Form.HOLD,
        only_wrong=True,
        subject=Subject.PARTITION,
        cases=_unled,
        bound=bounds.led,
    ),
    Row(
        name="late_removal",
        form=Form.HOLD,
        only_wrong=True,
        subject=Subject.PARTITION,
        cases=_dead_in_sync,
        bound=bounds.led,
    ),
    Row(
        name="slow_recovery",
        form=Form.HOLD,
        only_wrong=True,
        subject=Subject.PARTITION,
        cases=_out_of_sync,
        bound=bounds.caught_up,
    ),
    Row(
        name="late_preferred_election",
        form=Form.HOLD,
        only_wrong=True,
        subject=Subject.PARTITION,
        cases=_preferred,
        bound=bounds.balanced,
    ),
    Row(
        name="late_decision",
        form=Form.FOLLOW,
        subject=Subject.PARTITION,
        cases=_roles,
        bound=bounds.delivered,
        through=frozenset({Kind.REQUEST, Kind.STOP, Kind.AWAY, Kind.BACK}),
    ),
    Row(
        name="late_reassignment",
        form=Form.FOLLOW,
        subject=Subject.PARTITION,
        cases=_moves,
        bound=lambda of: bounds.caught_up(of) + 2 * bounds.led(of),
        through=frozenset({Kind.REQUEST}),
    ),
    Row(
        name="needless_truncation",
        form=Form.NEVER,
        only_wrong=True,
        subject=Subject.PARTITION,
        cases=_cuts,
        bound=bounds.caught_up,
    ),
    Row(
        name="needless_shrink",
        form=Form.CAUSE,
        subject=Subject.PARTITION,
        cases=_shrinks,
        bound=lambda of: bounds.caught_up(of) + bounds.shrunk(of),
        causes=TROUBLE | {Kind.STOP, Kind.REQUEST},
    ),
)

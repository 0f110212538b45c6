"""Rows about what brokers answer when they are asked: they agree with what was committed, with each other,
and with what was acknowledged.

Owns these rows. They read answers to questions of the protocol, which every system gets (traces/events.py:
Question). An answer that access rules may have filtered, or that did not come, says nothing.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.checkers.liveness.rows.group_rows import plain_groups
from fencepost.record import bounds
from fencepost.record.facts import Facts, Key, Told
from fencepost.record.timeline import Kind, Named, Subject, Timeline
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name, Question
from fencepost.traces.trace import plain

EVERYBODY: Named = (Subject.CONTROLLER, None)
"""The subject that any broker's trouble touches."""


class Detail(msgspec.Struct, frozen=True):
    """The part of a detail that every question has, and what some answer."""

    asked: int = 0
    error: str = ""
    filtered: bool = False
    same: tuple[int, ...] = ()
    errors: dict[str, str] = {}
    logs: tuple[tuple[str, int, int, int], ...] = ()
    group: str = ""
    state: str = ""
    members: tuple[tuple[Any, ...], ...] = ()
    clients: dict[str, str] = {}
    offsets: tuple[tuple[str, int, int, int], ...] = ()
    producers: tuple[tuple[int, ...], ...] = ()
    ranges: tuple[tuple[int, int, str], ...] = ()
    keys: dict[str, tuple[int, str]] = {}
    of: tuple[str, int] | None = None
    records: tuple[tuple[Any, ...], ...] = ()
    cut: bool = False
    ends: tuple[tuple[int, int, int], ...] = ()
    refused: tuple[tuple[int, str], ...] = ()
    transactional_id: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    started_ms: int = -1
    timeout_ms: int = -1
    partitions: tuple[tuple[str, int], ...] = ()
    settings: tuple[tuple[str, str, str], ...] = ()
    dynamic: tuple[tuple[str, str, str], ...] = ()
    reassignments: tuple[tuple[Any, ...], ...] = ()
    left_out: tuple[str, ...] = ()


def answers(facts: Facts, *questions: Question) -> Iterator[tuple[int, Event, Detail]]:
    """The answers to these questions that say something, with their positions.

    Args:
        facts: of the trace.
        questions: of the protocol.
    """
    for position, event in facts.of(Name.ASKED):
        if event.cause not in questions:
            continue
        try:
            detail = from_json(event.detail or "{}", Detail)
        except msgspec.DecodeError:
            continue  # a trace may come from any tool
        if not (detail.error or detail.filtered):
            yield position, event, detail


def case_of(event: Event, detail: Detail, position: int, subject: Named, **columns: Any) -> Case:
    """A point in time, which the calm must have held since before it was asked.

    Args:
        event: the answer.
        detail: its detail.
        position: of the event.
        subject: what must be calm.
        columns: of the case.
    """
    return Case(
        subject=subject, since=event.time, more=event.time - detail.asked, events=(position,), **columns
    )


def _unknown_brokers(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    for position, event, detail in answers(facts, Question.BROKERS):
        there = [broker for broker in facts.brokers() if facts.is_registered(broker, detail.asked)]
        if not facts.registered or not facts.is_registered(event.node, detail.asked):
            continue
        yield case_of(
            event,
            detail,
            position,
            EVERYBODY,
            fine={one for one in there if not facts.is_stopping(one, detail.asked)}
            <= set(event.replicas)
            <= set(there),
            expected=f"broker {event.node} to know the brokers {there}, which are registered",
            seen=f"its Metadata name {sorted(event.replicas)}",
        )


def _stale_partitions(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    bound = bounds.delivered(facts.settings)
    for position, event, detail in answers(facts, Question.PARTITION):
        key = event.topic or "", event.partition
        states = facts.states.get(key)
        if not states or facts.is_going(key[0], event.time):
            continue
        held = [state for state in states if state.time <= event.time]
        late = [state for state in held if state.time > detail.asked - bound]
        possible = {(state.leader, state.leader_epoch) for state in (*held[-1 - len(late) :],)}
        who = [broker for broker in (event.node, *detail.same) if facts.is_registered(broker, detail.asked)]
        if not held or not who or held[-1].leader_epoch < 0:
            continue
        last = held[-1]
        yield case_of(
            event,
            detail,
            position,
            EVERYBODY,
            fine=(event.leader, event.leader_epoch) in possible or event.leader_epoch < 0,
            expected=f"brokers {who} to name leader {last.leader} of epoch {last.leader_epoch}",
            seen=f"they name leader {event.leader} of epoch {event.leader_epoch}",
            topic=event.topic,
            partition=event.partition,
        )


def _behind(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A member of the ISR has every record below the high watermark that the leader showed before."""
    shown: dict[Key, tuple[int, int]] = {}
    for position, event, detail in answers(facts, Question.LOG):
        key = event.topic or "", event.partition
        if event.high_watermark >= 0:
            shown[key] = event.high_watermark, position
        if key not in shown or event.end_offset < 0 or detail.errors:
            continue
        states = [state for state in facts.states.get(key, ()) if state.time <= event.time]
        high_watermark, before = shown[key]
        if not states or event.node not in states[-1].isr or states[-1].time > detail.asked:
            continue
        yield Case(
            subject=(Subject.PARTITION, key),
            since=event.time,
            more=event.time - detail.asked,
            fine=event.end_offset >= high_watermark,
            expected=f"broker {event.node}, which is in the ISR, to have what is below {high_watermark}",
            seen=f"its log ends at {event.end_offset}",
            topic=event.topic,
            partition=event.partition,
            offset=event.end_offset,
            events=(before, position),
        )


def _directories(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    bound = bounds.led(facts.settings)
    history: dict[Key, list[Told]] = {}
    for (topic, number), told in facts.assigned.items():
        history.setdefault((plain(topic), number), []).extend(told)
    for position, event, detail in answers(facts, Question.LOG_DIRECTORIES):
        if not facts.assigned:
            continue
        held = {(topic, number) for topic, number, *_ in detail.logs}
        wanted = {
            (plain(key[0]), key[1])
            for key in facts.assigned
            if event.node in facts.replicas(key, detail.asked)
        }
        changing = {
            (plain(key[0]), key[1])
            for key, told in facts.assigned.items()
            if facts.is_going(key[0], detail.asked)
            or facts.is_going(key[0], event.time)
            or facts.is_moving(key, detail.asked)
            or facts.is_moving(key, event.time)
            or any(detail.asked - bound < each.time <= event.time for each in told)
        }
        foreign = sorted(
            key
            for key in held - wanted - changing
            if _was_told(facts, history.get(key, []), event.node, detail.asked)
        )
        lacking = sorted(wanted - held - changing)
        yield case_of(
            event,
            detail,
            position,
            EVERYBODY,
            fine=not foreign and not lacking,
            expected=f"broker {event.node} to hold exactly its replicas",
            seen=f"it holds {_names(foreign)} in addition, and lacks {_names(lacking)}",
        )


def _was_told(facts: Facts, assigned: list[Told], broker: int, moment: int) -> bool:
    """Whether a broker was registered all the time since a partition was taken from it, and for as long
    before as the controller may take to hear of its return. One that was not may never hear of it
    (docs/spec/bugs.md, "a stray replica")."""
    since = 0
    for told in assigned:
        if told.time <= moment and broker in told.value:
            since = told.time
    taken = next((told.time for told in assigned if told.time > since), since)
    if not assigned or not facts.is_registered(broker, taken):
        return False
    known = taken - bounds.decided(facts.settings)
    return not any(known <= told.time <= moment for told in facts.registered.get(broker, ()))


def _names(keys: list[Key]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in keys) or "nothing"


def _stuck(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """Where no transaction is open, readers of committed records get as far as others."""
    open_: dict[Key, int] = {}
    shown: dict[Key, int] = {}  # the end is asked for after the last stable offset: an earlier round's counts
    for position, event, detail in answers(facts, Question.PRODUCERS, Question.LOG):
        key = event.topic or "", event.partition
        if event.cause == Question.PRODUCERS:
            if event.leader in (event.node, *detail.same):
                open_[key] = sum(len(one) > 4 and one[4] >= 0 for one in detail.producers)
            continue
        if event.offset < 0 or event.high_watermark < 0 or detail.errors:
            continue
        before = shown.get(key, -1)
        shown[key] = event.high_watermark
        if open_.pop(key, 1) or before < 0:  # an answer about producers counts after that end only
            continue
        yield case_of(
            event,
            detail,
            position,
            (Subject.PARTITION, key),
            fine=event.offset >= before,
            expected=f"the last stable offset to be {before} at least, as no transaction was open then",
            seen=f"it is {event.offset}",
            topic=event.topic,
            partition=event.partition,
            offset=event.offset,
        )


def _groups(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A group with members is stable, and no partition belongs to two of them."""
    known = facts.once(plain_groups)
    for position, event, detail in answers(facts, Question.GROUP):
        if detail.group not in known:
            continue
        owned = [tuple(place) for member in detail.members for place in _assigned(member)]
        twice = sorted({place for place in owned if owned.count(place) > 1})
        stable = detail.state == "Stable" or not detail.members
        yield case_of(
            event,
            detail,
            position,
            (Subject.GROUP, detail.group),
            fine=stable and not twice,
            expected=f"group {detail.group} to be Stable, each partition with one member",
            seen=f"it is {detail.state} with {len(detail.members)} members; {twice} belong to two",
        )


def _assigned(member: tuple[Any, ...]) -> list[Any]:
    return [place for place in member[2:] if isinstance(place, list | tuple) and len(place) == 2]


ROWS = (
    Row(
        name="broker_not_known",
        form=Form.NEVER,
        subject=Subject.BROKER,
        cases=_unknown_brokers,
        bound=bounds.delivered,
        through=frozenset({Kind.REQUEST, Kind.MEMBER}),
        where="Metadata",
    ),
    Row(
        name="stale_metadata",
        form=Form.NEVER,
        subject=Subject.BROKER,
        cases=_stale_partitions,
        bound=bounds.delivered,
        through=frozenset({Kind.MEMBER}),
        where="Metadata",
    ),
    Row(
        name="committed_record_missing",
        form=Form.NEVER,
        subject=Subject.PARTITION,
        cases=_behind,
        bound=bounds.delivered,
        where="ListOffsets of each replica",
    ),
    Row(
        name="directory_not_as_assigned",
        form=Form.NEVER,
        subject=Subject.BROKER,
        cases=_directories,
        bound=bounds.caught_up,
        through=frozenset({Kind.MEMBER}),
        where="DescribeLogDirs",
    ),
    Row(
        name="last_stable_offset_stuck",
        form=Form.NEVER,
        subject=Subject.PARTITION,
        cases=_stuck,
        bound=bounds.marked,
        where="ListOffsets and DescribeProducers",
    ),
    Row(
        name="group_not_stable",
        form=Form.NEVER,
        subject=Subject.GROUP,
        cases=_groups,
        bound=lambda of: bounds.expelled(of) + bounds.settled(of),
        where="DescribeGroups",
    ),
)

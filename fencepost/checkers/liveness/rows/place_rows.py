"""Rows about answers that name a place in a log: it is the place that was asked for.

Owns these rows. They read what clients were answered and what they appended, at any time. Records carry the
time of the client that made them (CreateTime), so one that was acknowledged is as old as its append, between
the call and the answer.
"""

from collections.abc import Iterator

import msgspec
from attrs import define, field

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.record.facts import Facts, Key, acknowledged
from fencepost.record.settings import MILLISECOND
from fencepost.record.timeline import Subject, Timeline
from fencepost.traces.decoding import from_json
from fencepost.traces.events import APPENDS_UNKNOWN, Event, Name
from fencepost.traces.operations import ACKS_ALL, BY_TIME, UNRELATED, ByTime, Function, Operation, Outcome
from fencepost.traces.trace import plain

MAY_LOSE = (Name.TRUNCATED, Name.LOG_RECOVERED, Name.BROKER_STARTED, Name.TOPIC_DELETION)
"""After these a broker may rightly lack what it acknowledged."""


@define
class Appends:
    """What the brokers acknowledged with an offset, of one partition."""

    # Of each offset, in the order of invocation: offsets are used again after an unclean election.
    at: dict[int, list[Operation]] = field(factory=dict)
    # Of each broker that acknowledged any.
    by: dict[int, list[Operation]] = field(factory=dict)


def says_appends(facts: Facts) -> bool:
    """Whether the brokers of a trace say what they append, and so where their logs begin and are cut."""
    silent = any(event.cause == APPENDS_UNKNOWN for _, event in facts.of(Name.MARK))
    return not silent and bool(facts.events.get(Name.APPENDED))


def _appends(facts: Facts) -> dict[Key, Appends]:
    found: dict[Key, Appends] = {}
    for one in acknowledged(facts):
        assert one.topic is not None and one.partition is not None and one.offset is not None
        of = found.setdefault((one.topic, one.partition), Appends())
        of.by.setdefault(one.node, []).append(one)
        for offset in range(one.offset, one.offset + max(1, len(one.records))):
            of.at.setdefault(offset, []).append(one)
    return found


@define
class Reads:
    """What polls of one partition returned."""

    # Offset, leader epoch and value of each record.
    records: set[tuple[int, int, int]] = field(factory=set)
    # Of each offset and value, when it was asked for last.
    last: dict[tuple[int, int], int] = field(factory=dict)


def _reads(facts: Facts) -> dict[Key, Reads]:
    found: dict[Key, Reads] = {}
    for one in facts.operations:
        for record in one.records if one.function is Function.POLL and one.outcome is Outcome.OK else ():
            of = found.setdefault((record.topic, record.partition), Reads())
            of.records.add((record.offset, record.leader_epoch, record.value))
            place = record.offset, record.value
            of.last[place] = max(of.last.get(place, 0), one.invoke_time)
    return found


def _value(one: Operation, offset: int) -> int:
    assert one.offset is not None, "it was acknowledged with one"
    return one.records[offset - one.offset].value if one.records else -1


def _answers(facts: Facts) -> list[tuple[Operation, Key, ByTime]]:
    return list(_read_answers(facts))


def _read_answers(facts: Facts) -> Iterator[tuple[Operation, Key, ByTime]]:
    for one in facts.operations:
        if one.function is not Function.LIST_OFFSETS or one.argument != BY_TIME or not one.result:
            continue
        if one.outcome is not Outcome.OK or one.completion_time is None:
            continue
        if one.topic is None or one.partition is None:
            continue
        try:
            yield one, (one.topic, one.partition), from_json(one.result, ByTime)
        except msgspec.DecodeError:
            continue  # a trace may come from any tool


def _end(one: Operation) -> int:
    assert one.completion_time is not None, "it was answered"
    return one.completion_time


def _case(
    asked: Operation, key: Key, answer: ByTime, expected: str, *, fine: bool, because: int = -1
) -> Case:
    if answer.offset < 0:
        seen = f"broker {asked.node} names none"
    else:
        seen = f"broker {asked.node} names offset {answer.offset} of {answer.timestamp_ms} ms"
    return Case(
        subject=(Subject.PARTITION, key),
        since=_end(asked),
        fine=fine,
        expected=f"{expected}, as the first since {answer.from_ms} ms",
        seen=seen,
        topic=key[0],
        partition=key[1],
        offset=answer.offset,
        operations=(asked.op_id,) if because < 0 else (because, asked.op_id),
    )


def _times(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """The record that is named is not older than what was asked for, and as old as its append."""
    for asked, key, answer in facts.once(_answers):
        if answer.offset < 0:
            continue
        if answer.timestamp_ms < answer.from_ms:
            yield _case(asked, key, answer, "a record that is not older", fine=False)
            continue
        made = list(_made(facts, asked, key, answer))
        if len(made) != 1 or answer.within_ms == UNRELATED:
            yield _case(asked, key, answer, "a record that is not older", fine=True)
            continue
        first, last = made[0].invoke_time // MILLISECOND, _end(made[0]) // MILLISECOND
        yield _case(
            asked,
            key,
            answer,
            f"a record of the time of its append, {first} to {last} ms",
            fine=first - answer.within_ms <= answer.timestamp_ms <= last + answer.within_ms,
            because=made[0].op_id,
        )


def _made(facts: Facts, asked: Operation, key: Key, answer: ByTime) -> Iterator[Operation]:
    """The appends of the record that an answer names: its leader epoch says so, or a reader of it."""
    if key[0] in facts.deleted:
        return  # a broker may not have heard yet which topic of the name is there
    for one in facts.once(_appends).get(key, Appends()).at.get(answer.offset, ()):
        if one.clock_id != asked.clock_id:
            continue
        if one.leader_epoch != answer.leader_epoch:
            if facts.once(says_appends):
                continue
            record = answer.offset, answer.leader_epoch, _value(one, answer.offset)
            if record not in facts.once(_reads).get(key, Reads()).records:
                continue
        yield one


def _skipped(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """No earlier record that the same broker acknowledged, and must still have, is late enough."""
    silent = not facts.once(says_appends)  # where they do not, the record must have been read afterwards
    losses = [event for _, event in facts.of(*MAY_LOSE)]
    starts = [event for _, event in facts.of(Name.LOG_START)]
    for asked, key, answer in facts.once(_answers):
        judged = False
        for one in facts.once(_appends).get(key, Appends()).by.get(asked.node, ()):
            offset = one.offset
            if offset is None or not _is_due(one, asked, answer):
                continue
            expected = f"offset {offset} or an earlier one"
            if 0 <= answer.offset <= offset:
                if not judged:
                    yield _case(asked, key, answer, expected, fine=True, because=one.op_id)
                judged = True
                continue
            of = [event for event in losses if one.invoke_time <= event.time <= _end(asked)]
            if any(loses(event, asked.node, key) for event in of):
                continue
            if any(_begins_above(event, asked, key, offset) for event in starts):
                continue
            if silent and not _is_read_after(facts, key, one, offset, _end(asked)):
                continue
            yield _case(asked, key, answer, expected, fine=False, because=one.op_id)
            break


def _is_read_after(facts: Facts, key: Key, one: Operation, offset: int, moment: int) -> bool:
    last = facts.once(_reads).get(key, Reads()).last
    return last.get((offset, _value(one, offset)), 0) > moment


def _is_due(one: Operation, asked: Operation, answer: ByTime) -> bool:
    """Whether all of the ISR had the record before the question, its broker is the one that was asked, and it
    is late enough. A record with a key may be cleaned."""
    return (
        one.acks == ACKS_ALL
        and one.key is None
        and one.node == asked.node >= 0
        and one.clock_id == asked.clock_id
        and _end(one) < asked.invoke_time
        and answer.within_ms != UNRELATED
        and one.invoke_time // MILLISECOND >= answer.from_ms + answer.within_ms
    )


def loses(event: Event, node: int, key: Key) -> bool:
    """Whether a broker may lack a record after this.

    Args:
        event: one of MAY_LOSE.
        node: the broker.
        key: topic, as clients know it, and partition.
    """
    if event.name is Name.BROKER_STARTED:
        return event.node == node
    if event.name is Name.TOPIC_DELETION:
        return plain(event.topic or "") == key[0]
    return event.node == node and _place(event) == key


def _place(event: Event) -> Key:
    return plain(event.topic or ""), event.partition


def _begins_above(event: Event, asked: Operation, key: Key, offset: int) -> bool:
    return (
        _place(event) == key
        and event.node == asked.node
        and event.time <= _end(asked)
        and event.log_start_offset > offset
    )


ROWS = (
    Row(
        name="record_of_another_time",
        form=Form.DONE,
        subject=Subject.PARTITION,
        cases=_times,
        where="clients that record what they ask by time",
    ),
    Row(
        name="record_skipped_by_time",
        form=Form.DONE,
        subject=Subject.PARTITION,
        cases=_skipped,
        where="clients that record what they ask by time; brokers that say what they append, or later reads",
    ),
)

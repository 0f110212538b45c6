"""Rows about committed offsets: what a coordinator serves, and what its log holds, is what was acknowledged.

Owns these rows. They read answers to questions of the protocol (asked_rows.py), of groups whose members do
nothing unusual. What an acknowledged commit says is the third side: both others may agree and be wrong.
"""

from collections.abc import Iterator

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.checkers.liveness.rows.asked_rows import Detail, answers, case_of
from fencepost.checkers.liveness.rows.group_rows import plain_groups
from fencepost.record import bounds
from fencepost.record.facts import Facts, Key
from fencepost.record.timeline import Kind, Subject, Timeline
from fencepost.traces.events import Event, Name, Question
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import plain

NO_OFFSET = -1
Commits = dict[tuple[str, Key], list[tuple[Operation, int]]]
"""Each commit of a plain group with its offset, by group and partition."""


def _commits(facts: Facts) -> Commits:
    known = facts.once(plain_groups)
    found: Commits = {}
    for one in facts.operations:
        if one.function is Function.COMMIT and one.group in known:
            for place in one.positions:
                found.setdefault((one.group or "", (place.topic, place.partition)), []).append(
                    (one, place.offset)
                )
    return found


def _answers(facts: Facts, question: Question) -> Iterator[tuple[int, Event, Detail]]:
    """Those of partitions whose coordinator never forgot an offset or a group."""
    forgotten = {event.partition for _, event in facts.of(Name.GROUP_OFFSET_EXPIRED, Name.GROUP_REMOVED)}
    return (answer for answer in answers(facts, question) if answer[1].partition not in forgotten)


def _served(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    commits = facts.once(_commits)
    for position, event, detail in _answers(facts, Question.COMMITTED):
        served = {(topic, number): offset for topic, number, offset, _ in detail.offsets}
        for (group, key), made in commits.items():
            if group == detail.group:
                yield _case(facts, position, event, detail, key, made, served.get(key, NO_OFFSET), "serves")


def _stored(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """The last record that counts. A tombstone may be that of a topic that was deleted."""
    commits = facts.once(_commits)
    for position, event, detail in _answers(facts, Question.OFFSET_RECORDS):
        made = commits.get((detail.group, detail.of)) if detail.of is not None else None
        counting = [one[1] for one in detail.records if len(one) > 3 and one[3] is True]
        if made is None or detail.of is None or detail.cut or not counting:
            continue
        if isinstance(counting[-1], int):
            yield _case(facts, position, event, detail, detail.of, made, counting[-1], "stores")


def _case(
    facts: Facts,
    position: int,
    event: Event,
    detail: Detail,
    key: Key,
    made: list[tuple[Operation, int]],
    seen: int,
    does: str,
) -> Case:
    gone = (
        told.time
        for topic, all_ in facts.deleted.items()
        for told in all_
        if plain(topic) == key[0] and told.time <= event.time
    )
    possible = _possible(made, detail.asked, event.time, max(gone, default=-1))
    return case_of(
        event,
        detail,
        position,
        (Subject.GROUP, detail.group),
        fine=seen in possible,
        expected=f"the committed offset of {key[0]}-{key[1]} to be one of {sorted(possible)}",
        seen=f"broker {event.node} {does} {seen}",
        topic=key[0],
        partition=key[1],
        offset=seen,
    )


def _possible(made: list[tuple[Operation, int]], asked: int, answered: int, gone: int) -> set[int]:
    """The offsets that may be served: of the last acknowledged commit, of those that overlap it or came
    later, and of those whose outcome nobody knows; none where the topic went (at `gone`) since that."""
    done = [(one, offset) for one, offset in made if one.outcome is Outcome.OK and _end(one) <= asked]
    last = max((one.invoke_time for one, _ in done), default=-1)
    found = {offset for one, offset in made if one.invoke_time <= answered and _end(one) > last}
    found |= {offset for one, offset in made if one.outcome is not Outcome.OK and one.invoke_time <= answered}
    return found if done and last > gone else found | {NO_OFFSET}


def _end(one: Operation) -> int:
    return one.invoke_time if one.completion_time is None else one.completion_time


ROWS = (
    Row(
        name="commit_not_served",
        form=Form.NEVER,
        subject=Subject.GROUP,
        cases=_served,
        bound=lambda of: bounds.expelled(of) + bounds.rejoined(of),
        where="OffsetFetch",
    ),
    Row(
        name="commit_not_stored",
        form=Form.NEVER,
        subject=Subject.GROUP,
        cases=_stored,
        bound=lambda of: bounds.failed_over(of) + bounds.committed(of),
        through=frozenset({Kind.MEMBER, Kind.REQUEST}),
        where="Fetch of `__consumer_offsets`",
    ),
)

"""Rows about what replicas and coordinators hold, as any system is asked for it: replicas agree, and what was
decided is carried out.

Owns these rows. They read answers to questions of the protocol (asked_rows.py).
"""

from collections.abc import Iterator

from attrs import define

from fencepost.checkers.invariants.decided import PREPARED
from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.checkers.liveness.rows.asked_rows import Detail, answers, case_of
from fencepost.record import bounds
from fencepost.record.facts import Facts, Key
from fencepost.record.timeline import Kind, Subject, Timeline
from fencepost.traces.events import Event, Question


def _contents(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """Two replicas have the same records in each range that both were read in, which is below the high
    watermark of either. That needs no bound: what is committed never changes. Where records have keys, a
    cleaner may have been further in one of them."""
    read: dict[Key, list[tuple[int, Event, Detail]]] = {}
    for position, event, detail in answers(facts, Question.CONTENT):
        key = event.topic or "", event.partition
        before = read.setdefault(key, [])
        for other_position, other, others in before:
            if detail.keys or others.keys or other.node == event.node:
                continue
            known = {(first, end): digest for first, end, digest in others.ranges}
            shared = [one for one in detail.ranges if one[:2] in known]
            if not shared:
                continue
            differ = next((one for one in shared if known[one[0], one[1]] != one[2]), None)
            first, end, _ = differ or shared[0]
            yield Case(
                subject=(Subject.PARTITION, key),
                since=event.time,
                more=event.time - others.asked,
                fine=differ is None,
                expected=f"brokers {other.node} and {event.node} to have the same records",
                seen=f"they differ from offset {first} to {end}",
                topic=event.topic,
                partition=event.partition,
                offset=first,
                events=(other_position, position),
            )
        before.append((position, event, detail))


@define
class Waiting:
    """A decided transaction, as it was first seen."""

    same: tuple[int, int, int, str]
    position: int
    time: int


def _prepared(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A coordinator that was in the middle of carrying out a decision has done so the next time it is
    asked, if it had the bound for it."""
    waiting: dict[str, Waiting] = {}
    for position, event, detail in answers(facts, Question.TRANSACTION):
        name = detail.transactional_id
        same = detail.producer_id, detail.producer_epoch, detail.started_ms, detail.state
        first = waiting.get(name)
        if first is not None:
            stands = first.same == same
            yield case_of(
                event,
                detail,
                position,
                (Subject.ID, name),
                fine=not stands or detail.asked - first.time <= bounds.marked(facts.settings),
                expected=f"the transaction of {name}, which was decided, to be complete",
                seen=f"it is {detail.state}, as it was {(detail.asked - first.time) // 1_000_000} ms before",
                topic=event.topic,
                partition=event.partition,
            )
            if stands:
                continue
            del waiting[name]
        if detail.state in PREPARED:
            waiting[name] = Waiting(same, position, event.time)


ROWS = (
    Row(
        name="replicas_differ",
        form=Form.NEVER,
        subject=Subject.PARTITION,
        cases=_contents,
        through=frozenset({Kind.MEMBER}),
        where="Fetch of each replica",
    ),
    Row(
        name="decision_stands",
        form=Form.NEVER,
        subject=Subject.ID,
        cases=_prepared,
        bound=bounds.marked,
        where="DescribeTransactions",
    ),
)

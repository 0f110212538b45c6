"""The rules for a live cluster of which only answers are known, as `fencepost doctor` records them.

Owns the list of rules, what is a finding and what a note, and what could not be judged. The other rows know
faults and settings; these judge a trace that has neither.
"""

from collections.abc import Iterator, Sequence

from fencepost.checkers.liveness.forms import CHECK
from fencepost.checkers.liveness.live import (
    group_rules,
    partition_rules,
    reassignment_rules,
    setting_rules,
    transaction_rules,
)
from fencepost.checkers.liveness.live.sights import BOOTSTRAP, SECOND, Answer, LiveRow, Seen, Shown, shown
from fencepost.checkers.verdict import Finding
from fencepost.traces.events import NO_ROOM, Event, Name, Question

__all__ = [
    "BOOTSTRAP",
    "LIVE_ROWS",
    "LiveRow",
    "Shown",
    "answers_only",
    "live_findings",
    "not_judged",
    "shown_by",
]

LIVE_ROWS = (
    *partition_rules.ROWS,
    *setting_rules.ROWS,
    *reassignment_rules.ROWS,
    *transaction_rules.ROWS,
    *group_rules.ROWS,
)
NEEDED_FOR = {
    Question.PARTITION: "leaders and in-sync replicas",
    Question.SETTINGS: "min.insync.replicas, and settings that allow a loss",
    Question.LOG: "high watermarks, last stable offsets and committed offsets",
    Question.PRODUCERS: "open transactions in logs",
    Question.TRANSACTION: "what coordinators say of transactions",
    Question.GROUP: "classic groups",
    Question.CONSUMER_GROUP: "groups of the consumer protocol",
    Question.COMMITTED: "committed offsets",
    Question.OFFSET_RECORDS: "committed offsets against those that are stored",
    Question.REASSIGNMENTS: "reassignments",
}
"""What is not judged without an answer."""
PARTS = {"log_ends": Question.LOG, "groups": Question.GROUP, "transactions": Question.TRANSACTION}
"""Parts of a round by the answer that they bring, where the names differ."""


SAYS_NOTHING = (NO_ROOM, "GROUP_ID_NOT_FOUND")
"""Errors that are said elsewhere, or that mean a group of the other protocol."""


def answers_only(events: Sequence[Event]) -> bool:
    """Whether a trace has nothing but answers of brokers, so that nobody knows any fault in it."""
    return bool(events) and all(event.name is Name.ASKED for event in events)


def shown_by(events: Sequence[Event]) -> tuple[Shown, ...]:
    """What the answers show: what lasted for its bound, and what did not yet, of each row and subject.

    Args:
        events: ASKED, with nothing else.
    """
    seen = Seen(events)
    return tuple(one for row in LIVE_ROWS for one in shown(row, seen))


def live_findings(events: Sequence[Event]) -> tuple[Finding, ...]:
    """The findings; notes are none.

    Args:
        events: ASKED, with nothing else.
    """
    return tuple(_finding(one) for one in shown_by(events) if one.is_due and not one.row.note)


def _finding(one: Shown) -> Finding:
    bound = f" within {one.row.bound_s} s" if one.row.bound_s else ""
    return Finding(
        anomaly=one.row.name,
        check=CHECK,
        expected=f"{one.last.expected}{bound}",
        seen=f"{one.last.seen}; {one.count} answers in {one.lasted / SECOND:.1f} s",
        topic=one.last.topic,
        partition=one.last.partition,
        offset=one.last.offset,
        events=tuple(dict.fromkeys((one.first.event, one.last.event))),
    )


def not_judged(events: Sequence[Event]) -> Iterator[str]:
    """What could not be judged for lack of an answer or of time, one line each.

    Args:
        events: ASKED, with nothing else.
    """
    seen = Seen(events)
    answered = {one.event.cause for one in seen.of(*Question)}
    for question, what in NEEDED_FOR.items():
        errors = sorted(
            {f"{one.detail.error} of broker {one.event.node}" for one in seen.all if _failed(one, question)}
        )
        if errors:
            part = "in part only" if question in answered else "not at all"
            yield f"{what}: {part}, for {question} was answered with {', '.join(errors[:3])}"
    for name in sorted({name for one in seen.all for name in one.detail.left_out}):
        what = NEEDED_FOR[PARTS[name]] if name in PARTS else name
        yield f"{what}: not in every round, for time was over"
    late = {row.bound_s for row in LIVE_ROWS if row.bound_s * SECOND > seen.watched}
    for bound_s in sorted(late):
        names = sorted({row.name for row in LIVE_ROWS if row.bound_s == bound_s})
        yield f"{', '.join(names)}: needs {bound_s} s, and answers came for {seen.watched / SECOND:.0f} s"


def _failed(one: Answer, question: Question) -> bool:
    return one.event.cause == question and bool(one.detail.error) and one.detail.error not in SAYS_NOTHING

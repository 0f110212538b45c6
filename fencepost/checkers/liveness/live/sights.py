"""What answers show, one after the other, of a cluster of which nothing else is known.

Owns the form of a rule for such a cluster, and when it is a finding. Must not know any rule. No
faults, settings or operations were recorded: a state is judged by how long it lasts. It lasts from the end of
the first answer that shows it to the question of the last one, and every answer between them shows the same.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec
from attrs import define, frozen

from fencepost.checkers.liveness.rows.asked_rows import Detail
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name, Question

SECOND = 1_000_000_000
BOOTSTRAP = "BOOTSTRAP"
"""In a command, for the bootstrap servers."""
Key = tuple[str, int]
"""Topic and partition."""


@frozen(kw_only=True)
class Answer:
    """One answer to a question."""

    # Its place in the events of the trace.
    position: int
    event: Event
    detail: Detail

    @property
    def key(self) -> Key:
        """The partition that it is about."""
        return self.event.topic or "", self.event.partition

    @property
    def brokers(self) -> tuple[int, ...]:
        """Who said it."""
        return (self.event.node, *self.detail.same)


@define(eq=False)
class Seen:
    """The answers of a trace."""

    events: Sequence[Event]

    @cached_property
    def all(self) -> tuple[Answer, ...]:
        """Every answer that can be read, errors included."""
        found = []
        for position, event in enumerate(self.events):
            if event.name is Name.ASKED:
                try:
                    detail = from_json(event.detail or "{}", Detail)
                except msgspec.DecodeError:
                    continue  # a trace may come from any tool
                found.append(Answer(position=position, event=event, detail=detail))
        return tuple(found)

    def of(self, *questions: Question) -> Iterator[Answer]:
        """The answers to these questions that say something, in the order of their times."""
        for one in self.all:
            if one.event.cause in questions and not (one.detail.error or one.detail.filtered):
                yield one

    @property
    def watched(self) -> int:
        """Nanoseconds from the first answer to the last question."""
        return max((one.detail.asked for one in self.all), default=0) - min(
            (one.event.time for one in self.all), default=0
        )


@frozen(kw_only=True)
class Sight:
    """What one answer shows of one subject."""

    subject: Hashable
    # Nanoseconds: the question, the answer.
    begin: int
    end: int
    # None: all is as it should be. Equal values: the same state.
    wrong: Hashable = None
    expected: str = ""
    seen: str = ""
    topic: str | None = None
    partition: int = -1
    offset: int = -1
    # The place of the answer.
    event: int = -1
    # What an operator can do, with Kafka's own tools.
    command: str = ""


def sight(answer: Answer, subject: Hashable, wrong: Hashable = None, **more: str | int | None) -> Sight:
    """What an answer shows.

    Args:
        answer: it.
        subject: of what.
        wrong: as of Sight.
        more: of Sight, instead of the partition that the answer is about.
    """
    at = {"topic": answer.event.topic, "partition": answer.event.partition, **more}
    return Sight(
        subject=subject,
        begin=answer.detail.asked,
        end=answer.event.time,
        wrong=wrong,
        event=answer.position,
        **at,  # type: ignore[arg-type]
    )


@frozen(kw_only=True)
class LiveRow:
    """One rule. Its name is an anomaly, or for a note what it is about."""

    name: str
    sights: Callable[[Seen], Iterable[Sight]]
    # Seconds that a state must last, with the reason.
    bound_s: int = 0
    reason: str = ""
    # Answers that must show it: two, if the state names its version, so that there was no other between them.
    least: int = 2
    # Whether it may be meant to be so.
    note: bool = False


@frozen(kw_only=True)
class Shown:
    """A state that was seen for a while."""

    row: LiveRow
    first: Sight
    last: Sight
    # How many answers showed it.
    count: int

    @property
    def lasted(self) -> int:
        """Nanoseconds."""
        return max(self.last.begin - self.first.end, 0)

    @property
    def is_due(self) -> bool:
        """Whether it lasted for the row's bound."""
        return self.count >= self.row.least and self.lasted >= self.row.bound_s * SECOND


def shown(row: LiveRow, seen: Seen) -> Iterator[Shown]:
    """Of each subject the state that lasted longest. row: the rule; seen: the answers."""
    runs: dict[Hashable, Shown] = {}
    longest: dict[Hashable, Shown] = {}
    for one in row.sights(seen):
        run = runs.pop(one.subject, None)
        if one.wrong is None:
            continue
        if run is not None and run.last.wrong == one.wrong:
            run = Shown(row=row, first=run.first, last=one, count=run.count + 1)
        else:
            run = Shown(row=row, first=one, last=one, count=1)
        runs[one.subject] = run
        best = longest.get(one.subject)
        if best is None or (run.lasted, run.count) >= (best.lasted, best.count):
            longest[one.subject] = run
    yield from longest.values()

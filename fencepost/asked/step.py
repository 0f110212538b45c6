"""What a round consists of: questions to brokers, replies to them, and the events that say what was seen.

Owns these shapes, and what of an event is the same for every question. Must not know any question.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import msgspec
from attrs import define, evolve, field, frozen

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import NO_ANSWER, NO_COORDINATOR, Event, Name, Question
from fencepost.traces.kafka_names.outcomes import ErrorCode

NOBODY = -1
"""The broker of a question for which no broker is known, and the leader of a partition without one."""
REFUSED = "_AUTHORIZATION_FAILED"
"""How the names of Kafka's errors end that an access rule causes."""


@frozen(kw_only=True)
class Step:
    """One question to one broker."""

    # The broker that is asked.
    broker: int
    question: Question
    # Of impl/messages, or of wire_only.py; the transport sets its correlation id.
    request: Any
    # What it is about; None: the broker as a whole.
    key: TopicPartition | None = None
    # The leader of that partition by the Metadata of this round.
    leader: int = NOBODY
    # More of what it is about, for the detail.
    about: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Reply:
    """What came of a step."""

    # The response; None if none came in time.
    message: Any
    # Nanoseconds of the trace at which the question was sent, and at which the answer came.
    asked: int
    answered: int
    # The broker had been silent before and was not asked.
    skipped: bool = False
    # The error if there is no response.
    why: str = NO_ANSWER


@define(eq=False)
class OutOfRoomError(Exception):
    """Thrown into a round: no more rows. It may yield one event then, for what it leaves out."""

    # Nanoseconds of the trace.
    now: int
    # What was to be asked, or had been asked last.
    question: Question


Round = Generator[Step | Event, Reply | None, None]
"""Yields a step, which is carried out and whose reply is sent back, or an event, which is recorded."""
Part = Generator[Step | Event, Reply | None, Any]
"""A part of a round."""


@frozen(kw_only=True)
class Scope:
    """What one round asks about."""

    brokers: tuple[int, ...]
    # The cluster's names.
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    # Names of the parts of the round; None: all that a run asks.
    parts: frozenset[str] | None = None
    # Whether of each log only the leader is asked, and the replicas that are not in sync: what a cluster in
    # use can bear.
    spare: bool = False
    # Whether the content of replicas is read, which is expensive.
    last: bool = False
    # The trace's name of a topic, by the cluster's; others keep theirs.
    names: Mapping[str, str] = field(factory=dict)
    # Whether access rules may be in force: what such a cluster leaves out proves nothing.
    guarded: bool = False
    # speaks(broker, type of request): whether that question can be asked there.
    speaks: Callable[[int, type], bool] = lambda broker, request: True

    def name(self, topic: str) -> str:
        """The trace's name of a topic."""
        return self.names.get(topic, topic)

    def place(self, key: TopicPartition) -> list[Any]:
        """[topic, partition], for a detail."""
        return [self.name(key.topic), key.partition]


def seen(
    scope: Scope,
    step: Step,
    reply: Reply,
    *,
    error: str = "",
    filtered: bool = False,
    detail: Mapping[str, Any] | None = None,
    **columns: Any,
) -> Event:
    """The event of an answer.

    Args:
        scope: of the round.
        step: the question.
        reply: its answer.
        error: of the answer; empty if there is none.
        filtered: whether access rules leave things out of such an answer in silence.
        detail: further facts.
        columns: of the event, instead of what the step says.

    Returns:
        An ASKED.
    """
    said: dict[str, Any] = {"asked": reply.asked, **step.about}
    if error:
        said["error"] = error
    if error.endswith(REFUSED) or (filtered and scope.guarded):
        said["filtered"] = True
    if step.key is not None:
        columns = {
            "topic": scope.name(step.key.topic),
            "partition": step.key.partition,
            "leader": step.leader,
            **columns,
        }
    said.update(detail or {})
    return Event(
        time=reply.answered,
        name=Name.ASKED,
        node=step.broker,
        cause=step.question,
        detail=msgspec.json.encode(said).decode(),
        **columns,
    )


def put(scope: Scope, step: Step) -> Part:
    """Put a question; an error or no answer at all becomes an event.

    Args:
        scope: of the round.
        step: the question.

    Returns:
        The reply if there is something in it, else None.
    """
    reply = yield step
    assert reply is not None, "a step is answered by a reply"
    if reply.skipped:
        return None
    if error := error_of(reply):
        yield seen(scope, step, reply, error=error)
        return None
    return reply


def error_of(reply: Reply) -> str:
    """The error of a reply as a whole; empty if there is none."""
    if reply.message is None:
        return reply.why
    error = getattr(reply.message, "error", ErrorCode.NONE)
    return "" if error is ErrorCode.NONE else str(error)


def alike(scope: Scope, answers: Iterable[tuple[Step, Reply, dict[str, Any]]]) -> Part:
    """One event for all brokers that said the same of a partition.

    Args:
        scope: of the round.
        answers: the questions, their answers, and what else `seen` takes of each.
    """
    said: dict[tuple[TopicPartition | None, bytes], list[tuple[Step, Reply, dict[str, Any]]]] = {}
    for step, reply, view in answers:
        said.setdefault((step.key, msgspec.json.encode(view)), []).append((step, reply, view))
    for _, group in sorted(said.items(), key=lambda item: item[0]):
        (step, first, view), last = group[0], group[-1][1]
        same = [other.broker for other, _, _ in group[1:]]
        detail = {**view.pop("detail", {}), **({"same": same} if same else {})}
        yield seen(scope, step, evolve(first, answered=last.answered), detail=detail, **view)


MOST_SILENCES = 2
"""A broker that gave no answer so often, one after the other, is not asked again in this round: one message
may be lost by chance."""


@define(eq=False, kw_only=True)
class Conversation:
    """One round under way, for a transport: it carries a step out and says what it heard."""

    round: Round
    record: Callable[[Event], None]
    # Whether another row may be added to the trace.
    room: Callable[[], bool] = lambda: True
    # The question under way; None before the first and after the last.
    step: Step | None = field(default=None, init=False)
    # When it was sent.
    asked: int = field(default=0, init=False)
    # How often brokers were silent, one after the other.
    silences: dict[int, int] = field(factory=dict, init=False)

    def begin(self, now: int) -> Step | None:
        """The first question. now: nanoseconds of the trace."""
        return self._go_on(None, now)

    def heard(self, message: Any, now: int) -> Step | None:
        """Take an answer.

        Args:
            message: the response; None if none came in time.
            now: nanoseconds of the trace.

        Returns:
            The next question; None if the round is over.
        """
        assert self.step is not None, "an answer follows a question"
        broker = self.step.broker
        self.silences[broker] = 0 if message is not None else self.silences.get(broker, 0) + 1
        return self._go_on(Reply(message=message, asked=self.asked, answered=now), now)

    def _go_on(self, reply: Reply | None, now: int) -> Step | None:
        self.step = None
        try:
            while True:
                given = self.round.send(reply)
                reply = None
                if not self.room():
                    note = self.round.throw(OutOfRoomError(now, _question(given)))
                    assert isinstance(note, Event), "nothing is asked without room"
                    self.record(note)
                    break
                if isinstance(given, Event):
                    self.record(given)
                elif given.broker == NOBODY:
                    reply = Reply(message=None, asked=now, answered=now, why=NO_COORDINATOR)
                elif self.silences.get(given.broker, 0) >= MOST_SILENCES:
                    reply = Reply(message=None, asked=now, answered=now, skipped=True)
                else:
                    self.step, self.asked = given, now
                    return given
        except (StopIteration, OutOfRoomError):
            pass
        self.round.close()
        return None


def _question(given: Step | Event) -> Question:
    return given.question if isinstance(given, Step) else Question(given.cause)

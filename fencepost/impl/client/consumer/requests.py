"""What the parts of a consumer share: its identity, its requests under way, what it believes of leaders, and
the rows it writes into the trace.

Owns correlation ids, time-outs of single requests, op ids. Must not know what a request is for: its sender
says what happens with the answer, or with its absence (None).
"""

from collections.abc import Callable
from typing import Any

from attrs import define, evolve, field, frozen

from fencepost.impl.client.metadata import ClientMetadata
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.core.core_interface import Begin, CancelTimer, Complete, Effect, Send, SetTimer, TimerKey
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.operations import Function, Operation, Outcome, Position
from fencepost.traces.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.plan import ConsumerOptions

REQUEST = "request"
FIRST_OPERATION, PER_PROCESS, PER_SESSION = 100_000_000, 10_000_000, 100_000
"""Op ids of what consumers do: far above those that plans name; each incarnation of a process has its own."""

MAY_HAPPEN = frozenset({Function.COMMIT, Function.TXN, Function.APPEND})
"""What may have happened though nobody answered."""

Then = Callable[[Any], None]
"""What to do with an answer, or with None if there was none in time."""


@frozen(kw_only=True)
class ConsumerIdentity:
    """process, session: of the trace. instance_id: of a static member, else None."""

    process: int
    group: str
    topics: tuple[str, ...]
    session: int = 0
    instance_id: str | None = None

    @property
    def client_id(self) -> str:
        """What member ids begin with."""
        return f"consumer-{self.process}"


@define
class ConsumerDesk:
    """now, outbox: of the current step. waiting: what to do with the answer to each request under way.
    asking_metadata: one such request is."""

    identity: ConsumerIdentity
    options: ConsumerOptions
    metadata: ClientMetadata
    now: int = 0
    outbox: list[Effect] = field(factory=list)
    waiting: dict[int, Then] = field(factory=dict)
    asking_metadata: bool = False
    live: tuple[int, ...] = ()
    _turn: int = 0
    _last_request: int = 0
    _last_operation: int = 0

    # ---- requests

    def ask(
        self, node: int, make: Callable[[int], kafka.Message], then: Then, timeout_ms: int | None = None
    ) -> int:
        """Send make(correlation id); returns the id."""
        self._last_request += 1
        number = self.identity.session * PER_SESSION * 100 + self._last_request
        self.waiting[number] = then
        self.set_timer((REQUEST, number), timeout_ms or self.options.request_timeout_ms)
        self.outbox.append(Send(node, make(number), (number,)))
        return number

    def answered(self, message: kafka.Message) -> None:
        """An answer came; to a request that was given up nothing is due."""
        then = self.waiting.pop(message.correlation_id, None)
        if then is not None:
            self.outbox.append(CancelTimer((REQUEST, message.correlation_id)))
            then(message)

    def gave_up(self, number: int) -> None:
        """The time of a request is over."""
        then = self.waiting.pop(number, None)
        if then is not None:
            then(None)

    def forget(self, number: int) -> None:
        """Nobody wants the answer any more."""
        if self.waiting.pop(number, None) is not None:
            self.outbox.append(CancelTimer((REQUEST, number)))

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        """Fire after so much time."""
        self.outbox.append(SetTimer(key, self.now + delay_ms * MILLISECOND))

    def cancel_timer(self, key: TimerKey) -> None:
        """Forget a timer."""
        self.outbox.append(CancelTimer(key))

    # ---- metadata

    def whom_to_ask(self) -> int:
        """Some broker, another one each time."""
        self._turn += 1
        return self.metadata.whom_to_ask(self.identity.process + self._turn)

    def refresh_metadata(self, then: Callable[[bool], None]) -> None:
        """Ask who leads, unless that is under way; `then` hears whether there was an answer."""
        if self.asking_metadata:
            return
        self.asking_metadata = True

        def told(answer: kafka.MetadataResponse | None) -> None:
            self.asking_metadata = False
            if answer is not None:
                self.metadata.update(answer)
            then(answer is not None)

        self.ask(self.whom_to_ask(), lambda number: kafka.MetadataRequest(correlation_id=number), told)

    def partitions(self, topics: tuple[str, ...]) -> dict[str, int]:
        """How many partitions each of these topics has, as far as known."""
        known = [key for key in self.metadata.leaders if key.topic in topics]
        return {topic: sum(key.topic == topic for key in known) for topic in topics}

    # ---- rows of the trace

    def next_operation(self) -> int:
        """The op id of the next row."""
        identity = self.identity
        before = FIRST_OPERATION + identity.process * PER_PROCESS + identity.session * PER_SESSION
        return before + self._last_operation + 1

    def begin(self, function: Function, **columns: Any) -> Operation:
        """A row begins; what is returned goes to `end`. If nothing more is heard of it, one of MAY_HAPPEN is
        unknown and anything else has told nothing."""
        identity, number = self.identity, self.next_operation()
        self._last_operation += 1
        begun = Operation(
            op_id=number,
            process=identity.process,
            function=function,
            invoke_time=0,
            outcome=Outcome.UNKNOWN if function in MAY_HAPPEN else Outcome.FAIL,
            **{"session": identity.session, "group": identity.group, **columns},
        )
        self.outbox.append(Begin(begun))
        return begun

    def heard(self, begun: Operation) -> None:
        """The answer to a row has come; what becomes of it is not decided before its transaction ends."""
        self.outbox.append(Begin(begun))

    def end(self, begun: Operation, outcome: Outcome, error: ErrorCode = NO_ERROR, **columns: Any) -> None:
        """A row is complete."""
        ended = evolve(
            begun,
            outcome=outcome,
            completion_time=None if outcome is Outcome.UNKNOWN else 0,
            error=None if error is NO_ERROR else error.value,
            **columns,
        )
        self.outbox.append(Complete(ended))


def positions_of(offsets: dict[kafka.TopicPartition, int]) -> tuple[Position, ...]:
    """Partitions and offsets as a column."""
    return tuple(
        Position(topic=key.topic, partition=key.partition, offset=offset)
        for key, offset in sorted(offsets.items())
    )

"""Common parts of a consumer: its identity, its requests in flight, the known leaders, and the rows that it
writes into the trace.

Owns correlation ids, timeouts of single requests, op ids. Must not know the purpose of a request: the sender
passes a callback for the response or its absence (None).
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.core.core_interface import Begin, CancelTimer, Complete, Effect, Send, SetTimer, TimerKey
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import (
    Function,
    Operation,
    Outcome,
    Position,
    make_operation,
    remake_operation,
)
from fencepost.traces.plan import ConsumerOptions

REQUEST = "request"
FIRST_OPERATION, PER_PROCESS, PER_SESSION = 100_000_000, 10_000_000, 100_000
"""Op ids of consumers' operations: far above those of plans; each incarnation of a process has its own
range."""

MAY_HAPPEN = frozenset({Function.COMMIT, Function.TXN, Function.APPEND, Function.LEAVE})
"""What may have happened though nobody answered."""

Then = Callable[[Any], None]
"""Called with the response, or with None if there was none in time."""


@frozen(kw_only=True)
class ConsumerIdentity:
    """process, session: of the trace. instance_id: of a static member, else None. standalone: it assigns
    itself all partitions of the topics, and only commits in the group."""

    process: int
    group: str
    topics: tuple[str, ...]
    session: int = 0
    instance_id: str | None = None
    standalone: bool = False

    @property
    def client_id(self) -> str:
        """The prefix of member ids."""
        return f"consumer-{self.process}"


@define
class ConsumerDesk:
    """The requests, timers and trace rows of one consumer."""

    # Process, session and instance.
    identity: ConsumerIdentity
    # The options of consumers.
    options: ConsumerOptions
    # The known leaders.
    metadata: ClientMetadata
    # Host time of the current step in nanoseconds.
    now: int = 0
    # Effects of the current step.
    outbox: list[Effect] = field(factory=list)
    # The callback of each request in flight.
    waiting: dict[int, Then] = field(factory=dict)
    # Whether a metadata request is in flight.
    asking_metadata: bool = False
    # The brokers that are alive by the last metadata.
    live: tuple[int, ...] = ()
    # Which broker is asked next.
    _turn: int = 0
    # The number of the last request.
    _last_request: int = 0
    # The number of the last operation.
    _last_operation: int = 0

    # ---- requests

    def ask(
        self, node: int, make: Callable[[int], kafka.Message], then: Then, timeout_ms: int | None = None
    ) -> int:
        """Send a request.

        Args:
            node: the broker.
            make: makes the request with its correlation id.
            then: called with the response, or with None after the timeout.
            timeout_ms: the timeout; None: request.timeout.ms.

        Returns:
            the correlation id.
        """
        self._last_request += 1
        number = self.identity.session * PER_SESSION * 100 + self._last_request
        self.waiting[number] = then
        self.set_timer((REQUEST, number), timeout_ms or self.options.request_timeout_ms)
        self.outbox.append(Send(node, make(number), (number,)))
        return number

    def answered(self, message: kafka.Message) -> None:
        """A response came; for an abandoned request nothing happens."""
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
        """Ignore the response to a request."""
        if self.waiting.pop(number, None) is not None:
            self.outbox.append(CancelTimer((REQUEST, number)))

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        """Fire the timer `key` after `delay_ms`.

        Args:
            key: the timer.
            delay_ms: host time in milliseconds.
        """
        self.outbox.append(SetTimer(key, self.now + delay_ms * MILLISECOND))

    def cancel_timer(self, key: TimerKey) -> None:
        """Cancel a timer."""
        self.outbox.append(CancelTimer(key))

    # ---- metadata

    def whom_to_ask(self) -> int:
        """A broker; another one each time."""
        self._turn += 1
        return self.metadata.whom_to_ask(self.identity.process + self._turn)

    def refresh_metadata(self, then: Callable[[bool], None]) -> None:
        """Ask for leaders, unless that is in progress. `then` is called with whether there was a response."""
        if self.asking_metadata:
            return
        self.asking_metadata = True

        def on_answer(answer: kafka.MetadataResponse | None) -> None:
            self.asking_metadata = False
            if answer is not None:
                self.metadata.update(answer)
            then(answer is not None)

        self.ask(self.whom_to_ask(), lambda number: kafka.MetadataRequest(correlation_id=number), on_answer)

    def partitions(self, topics: tuple[str, ...]) -> dict[str, int]:
        """The known number of partitions of each of these topics."""
        known = [key for key in self.metadata.leaders if key.topic in topics]
        return {topic: sum(key.topic == topic for key in known) for topic in topics}

    # ---- rows of the trace

    def next_operation(self) -> int:
        """The op id of the next row."""
        identity = self.identity
        before = FIRST_OPERATION + identity.process * PER_PROCESS + identity.session * PER_SESSION
        return before + self._last_operation + 1

    def begin(self, function: Function, **columns: Any) -> Operation:
        """A row begins. If nothing more is heard of it, one of MAY_HAPPEN is unknown, and any other one read
        nothing.

        Args:
            function: what it does.
            columns: of the row.

        Returns:
            The row, for `end`.
        """
        identity, number = self.identity, self.next_operation()
        self._last_operation += 1
        begun = make_operation(
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
        """Complete a row.

        Args:
            begun: the operation from `begin`.
            outcome: its outcome.
            error: its error.
            columns: further columns.
        """
        ended = remake_operation(
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

"""A client in the simulated world that asks: a node of its own, whose messages are delayed and lost as any
client's.

Owns the node, time-outs and the queue of rounds. Must not know any question.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from attrs import define, evolve, field

from fencepost.asked.round import Agenda, round_of
from fencepost.asked.step import Conversation, Scope, Step
from fencepost.asked.wire_only import WIRE_ONLY
from fencepost.sim.network import Network
from fencepost.sim.scheduler import MILLISECOND, Scheduler
from fencepost.traces.events import Event

ASKER_NODE = (1 << 48) - 1
"""The last node id of our own clients."""
PATIENCE_MS = 1_000
"""How long an answer is waited for: ten times the longest latency that plans draw, and far below an
election."""


def _is_simulated(broker: int, request: type) -> bool:
    return request not in WIRE_ONLY


@define(eq=False, kw_only=True)
class SimulatedAsker:
    """The node. It has no process: nothing can happen to it."""

    scheduler: Scheduler
    network: Network
    record: Callable[[Event], None]
    # Whether another row may be added to the trace.
    room: Callable[[], bool] = lambda: True
    agenda: Agenda = field(factory=Agenda, init=False)
    incarnation: int = field(default=0, init=False)
    # Rounds that wait for the one before them.
    waiting: deque[Scope] = field(factory=deque, init=False)
    # The round under way.
    conversation: Conversation | None = field(default=None, init=False)
    # The number of the last question.
    number: int = field(default=0, init=False)
    # The time-out of the question under way.
    timeout: int | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.network.attach(ASKER_NODE, self)

    @property
    def idle(self) -> bool:
        """Whether no round is under way."""
        return self.conversation is None

    def come_near(self) -> None:
        """From now on its messages take no time, and none is lost."""
        self.network.make_local(ASKER_NODE)

    def begin(self, scope: Scope) -> None:
        """Begin a round once those before it are over. scope: what it asks about."""
        self.waiting.append(scope)
        if self.conversation is None:
            self._next_round()

    def _next_round(self) -> None:
        self.conversation = None
        while self.waiting and self.conversation is None:
            self.conversation = Conversation(
                round=round_of(evolve(self.waiting.popleft(), speaks=_is_simulated), self.agenda),
                record=self.record,
                room=self.room,
            )
            self._send(self.conversation.begin(self.scheduler.now))

    def _send(self, step: Step | None) -> None:
        if step is None:
            self._next_round()
            return
        self.number += 1
        request = msgspec.structs.replace(step.request, correlation_id=self.number)
        self.timeout = self.scheduler.after(PATIENCE_MS * MILLISECOND, self._heard, None)
        self.network.send(ASKER_NODE, step.broker, request, (self.number,))

    def receive(self, source: int, message: Any) -> None:
        """An answer arrives; one that is late or comes twice is dropped.

        Args:
            source: the broker.
            message: the response.
        """
        if self.timeout is not None and message.correlation_id == self.number:
            self.scheduler.cancel(self.timeout)
            self._heard(message)

    def _heard(self, message: Any) -> None:
        self.timeout = None
        assert self.conversation is not None, "an answer is waited for in a round"
        self._send(self.conversation.heard(message, self.scheduler.now))

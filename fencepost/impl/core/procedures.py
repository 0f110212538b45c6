"""Procedures: sequences of ZooKeeper requests, written as generators that read from top to bottom and stay
sans-IO.

A procedure yields one request and gets its reply; or a tuple of requests (sent at once, executed in order)
and gets the list of replies; or `Pipelined` requests, which are sent in a window. Requests that fail with
CONNECTION_LOSS or SESSION_EXPIRED are sent again when ZooKeeper is connected, on the session that is then
current, as Kafka's clients do. Therefore a write may already have been applied when its retry fails, and a
procedure may continue in a later session than it began in. Procedures protect themselves by versions, never
by timing.
"""

from collections.abc import Callable, Generator
from typing import Any

from attrs import define, field, frozen

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.core_interface import ZooKeeperReplied
from fencepost.impl.zookeeper.interface import Failed, Reply, ZooKeeperError, ZooKeeperRequest


def _as_it_is(reply: Reply) -> Any:
    return reply


@frozen
class Pipelined:
    """Requests of which at most `window` are in flight. They are executed in order, unless the connection is
    lost meanwhile."""

    requests: tuple[ZooKeeperRequest, ...]
    window: int
    # A pure function that selects what the procedure gets of each reply. It runs when the reply comes, while
    # ZooKeeper works on the next requests. So a large read is decoded as it arrives, and its bytes are not
    # kept until the end.
    kept: Callable[[Reply], Any] = _as_it_is


Asked = ZooKeeperRequest | tuple[ZooKeeperRequest, ...] | Pipelined
Procedure = Generator[Asked, Any, None]
ZooKeeperSteps = Generator[Asked, Any, Any]
"""A part of a procedure that returns a value."""
RETRIED = frozenset({ZooKeeperError.CONNECTION_LOSS, ZooKeeperError.SESSION_EXPIRED})


@define
class _Waiting:
    """A procedure that waits for replies."""

    # The generator.
    procedure: Procedure
    # The requests.
    asked: Pipelined
    # The kept part of each reply, by request.
    replies: list[Any]
    # Whether the procedure yielded one request, not a tuple.
    single: bool
    # The number of replies that have not come.
    missing: int
    # The number of requests sent so far, in order.
    sent: int = 0


@define
class Procedures:
    """Runs procedures concurrently."""

    broker_context: BrokerContext
    # Whether requests can be sent. lost: requests to send again, in order.
    connected: bool = False
    _waiting: dict[int, tuple[_Waiting, int]] = field(factory=dict)
    _lost: list[tuple[_Waiting, int]] = field(factory=list)

    def start(self, procedure: Procedure) -> None:
        """Run `procedure` up to its first request."""
        self._advance(procedure, None)

    def on_reply(self, replied: ZooKeeperReplied) -> None:
        """Pass a reply to the procedure that waits for it."""
        entry = self._waiting.pop(replied.request_id, None)
        if entry is None:
            return
        waiting, index = entry
        reply = replied.reply
        if isinstance(reply, Failed) and reply.error in RETRIED:
            self._lost.append(entry)
            return
        waiting.replies[index] = waiting.asked.kept(reply)
        waiting.missing -= 1
        if waiting.sent < len(waiting.asked.requests):
            self._send_next(waiting)
        if waiting.missing == 0:
            self._advance(waiting.procedure, waiting.replies[0] if waiting.single else waiting.replies)

    def on_connected(self) -> None:
        """Send lost requests again."""
        self.connected = True
        lost, self._lost = self._lost, []
        for waiting, index in lost:
            self._send(waiting, index)

    def on_disconnected(self) -> None:
        """Hold requests back. The driver answers those in flight with CONNECTION_LOSS."""
        self.connected = False

    def _advance(self, procedure: Procedure, value: object) -> None:
        try:
            asked = procedure.send(value)
        except StopIteration:
            return
        single = not isinstance(asked, (tuple, Pipelined))
        if not isinstance(asked, Pipelined):
            requests = asked if isinstance(asked, tuple) else (asked,)
            asked = Pipelined(requests, len(requests))
        count = len(asked.requests)
        assert count, "a procedure asks for at least one request"
        waiting = _Waiting(procedure, asked, [None] * count, single, count)
        for _ in range(min(asked.window, count)):
            self._send_next(waiting)

    def _send_next(self, waiting: _Waiting) -> None:
        waiting.sent += 1
        self._send(waiting, waiting.sent - 1)

    def _send(self, waiting: _Waiting, index: int) -> None:
        if not self.connected:
            self._lost.append((waiting, index))
            return
        request_id = self.broker_context.ask_zookeeper(waiting.asked.requests[index])
        self._waiting[request_id] = (waiting, index)

"""Procedures: sequences of ZooKeeper requests written as generators that read top to bottom and stay sans-IO.

A procedure yields one request and gets its reply, or a tuple of requests (sent at once, carried out in order) and gets
the list of replies. Requests that meet CONNECTION_LOSS or SESSION_EXPIRED are sent again when ZooKeeper is connected, on
whichever session is then current, as Kafka's clients do: therefore a write may have been done already when its retry
fails, and a procedure may go on in a later session than it began in. Procedures guard themselves by versions, never by
timing.
"""

from collections.abc import Generator
from typing import Any

from attrs import define, field

from fencepost.impl.seam import ZooKeeperReplied
from fencepost.impl.shell import Shell
from fencepost.impl.zookeeper import Failed, Reply, Request, ZooKeeperError

Procedure = Generator[Request | tuple[Request, ...], Any, None]
RETRIED = frozenset({ZooKeeperError.CONNECTION_LOSS, ZooKeeperError.SESSION_EXPIRED})


@define
class _Waiting:
    """A procedure that waits for replies. missing: places in `replies` that have not come."""

    procedure: Procedure
    requests: tuple[Request, ...]
    replies: list[Reply | None]
    single: bool
    missing: int


@define
class Procedures:
    """Runs procedures side by side. connected: whether requests can be sent; lost: those to send again, in order."""

    shell: Shell
    connected: bool = False
    _waiting: dict[int, tuple[_Waiting, int]] = field(factory=dict)
    _lost: list[tuple[_Waiting, int]] = field(factory=list)

    def start(self, procedure: Procedure) -> None:
        """Run until its first request."""
        self._advance(procedure, None)

    def on_reply(self, replied: ZooKeeperReplied) -> None:
        """Hand a reply to the procedure that waits for it."""
        entry = self._waiting.pop(replied.request_id, None)
        if entry is None:
            return
        waiting, index = entry
        reply = replied.reply
        if isinstance(reply, Failed) and reply.error in RETRIED:
            self._lost.append(entry)
            return
        waiting.replies[index] = reply
        waiting.missing -= 1
        if waiting.missing == 0:
            self._advance(waiting.procedure, waiting.replies[0] if waiting.single else waiting.replies)

    def on_connected(self) -> None:
        """Send again what was lost."""
        self.connected = True
        lost, self._lost = self._lost, []
        for waiting, index in lost:
            self._send(waiting, index)

    def on_disconnected(self) -> None:
        """Hold requests back; those in flight are answered CONNECTION_LOSS by the driver."""
        self.connected = False

    def _advance(self, procedure: Procedure, value: object) -> None:
        try:
            asked = procedure.send(value)
        except StopIteration:
            return
        requests = asked if isinstance(asked, tuple) else (asked,)
        assert requests, "a procedure asks for at least one request"
        waiting = _Waiting(
            procedure, requests, [None] * len(requests), not isinstance(asked, tuple), len(requests)
        )
        for index in range(len(requests)):
            self._send(waiting, index)

    def _send(self, waiting: _Waiting, index: int) -> None:
        if not self.connected:
            self._lost.append((waiting, index))
            return
        request_id = self.shell.ask_zookeeper(waiting.requests[index])
        self._waiting[request_id] = (waiting, index)

"""A ZooKeeper session for a thread that waits: send a request and get the reply. For commands and tests; a
core never waits.

Owns the waiting, and ending another session as a fault. Must not know the requests.
"""

import socket
import struct
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from attrs import define, field

from fencepost.impl.core.core_interface import Input, ZooKeeperConnected, ZooKeeperReplied
from fencepost.impl.core.procedures import RETRIED, Pipelined, ZooKeeperSteps
from fencepost.impl.runtime.zookeeper.session import ZooKeeperSession
from fencepost.impl.zookeeper.interface import Failed, Reply, ZooKeeperRequest
from fencepost.traces.errors import EnvironmentError_

ANSWER_S = 30.0
CLOSE_SESSION = -11
WINDOW = 10
"""Requests ahead of their replies, as Kafka's zookeeper.max.in.flight.requests."""


@define(eq=False)
class BlockingZooKeeper:
    """A blocking ZooKeeper session."""

    # HOST:PORT of the server.
    address: str
    # The session timeout.
    session_timeout_ms: int = 10_000
    # Every input that is not a reply to `ask`, in order.
    heard: list[Input] = field(factory=list)
    # The session.
    session: ZooKeeperSession = field(init=False)
    # Inputs from the session's thread.
    _inputs: "SimpleQueue[Input]" = field(factory=SimpleQueue)
    # The id of the last request.
    _asked: int = 0

    def __attrs_post_init__(self) -> None:
        self.session = ZooKeeperSession(self.address, self.session_timeout_ms, self._inputs.put)

    def __enter__(self) -> "BlockingZooKeeper":
        self.session.start()
        try:
            self.wait_for(ZooKeeperConnected)
        except BaseException:
            self.session.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.stop()

    def ask(self, request: ZooKeeperRequest) -> Reply:
        """Send a request and wait for its reply."""
        self._send(request)
        return self._reply(self._asked)

    def ask_all(self, requests: Sequence[ZooKeeperRequest], window: int = WINDOW) -> Iterator[Reply]:
        """Send requests, at most `window` of them ahead of their replies; yields the replies in order."""
        sent, first = 0, self._asked + 1
        for place in range(len(requests)):
            while sent < min(place + window, len(requests)):
                self._send(requests[sent])
                sent += 1
            yield self._reply(first + place)

    def run(self, steps: ZooKeeperSteps) -> Any:
        """Run a procedure and return its result. A lost connection ends it; its last request may or may not
        have been applied."""
        value: Any = None
        while True:
            try:
                asked = steps.send(value)
            except StopIteration as done:
                return done.value
            if isinstance(asked, Pipelined):
                replies = self.ask_all(asked.requests, asked.window)
                value = [asked.kept(self._not_lost(reply)) for reply in replies]
            elif isinstance(asked, tuple):
                value = [self._not_lost(reply) for reply in self.ask_all(asked)]
            else:
                value = self._not_lost(self.ask(asked))

    def _not_lost(self, reply: Reply) -> Reply:
        if isinstance(reply, Failed) and reply.error in RETRIED:
            raise EnvironmentError_(
                expected="a connection to ZooKeeper that lasts",
                seen=reply.error.value,
                where=self.address,
                hint="look whether it was done before you ask again",
            )
        return reply

    def _send(self, request: ZooKeeperRequest) -> None:
        self._asked += 1
        self.session.ask(self._asked, request)

    def _reply(self, request_id: int) -> Reply:
        while True:
            input = self._next()
            if isinstance(input, ZooKeeperReplied) and input.request_id == request_id:
                return input.reply
            self.heard.append(input)

    def wait_for(self, kind: type[Input]) -> Input:
        """Wait until an input of this kind comes."""
        while True:
            input = self._next()
            self.heard.append(input)
            if isinstance(input, kind):
                return input

    def _next(self) -> Input:
        try:
            return self._inputs.get(timeout=ANSWER_S)
        except Empty:
            raise EnvironmentError_(
                expected=f"a word from ZooKeeper within {ANSWER_S:.0f} s", seen="none", where=self.address
            ) from None


def end_session(session: ZooKeeperSession, address: str) -> None:
    """Make the server end this session now, as after its timeout: another connection claims the session and
    closes it.

    Both frames are sent at once, so that the session's own client cannot reclaim it in between. Returns when
    the server has done it.
    """
    host, _, port = address.rpartition(":")
    password = session.password()
    claim = struct.pack("!iqiqi", 0, 0, 10_000, session.session_id, len(password)) + password + b"\x00"
    close = struct.pack("!ii", 1, CLOSE_SESSION)
    with socket.create_connection((host, int(port)), timeout=ANSWER_S) as connection:
        connection.sendall(b"".join(struct.pack("!i", len(frame)) + frame for frame in (claim, close)))
        while connection.recv(4_096):
            pass

"""A host's ZooKeeper client: consecutive sessions, as ZooKeeper's own client library keeps them.

Owns the client side: connection, pings, timeouts, watches to set again, unanswered requests. Must not know
the requests' purpose.

Timing, as in ClientCnxn for a session timeout T: a ping each T/3; after 2T/3 without a frame from the server
the connection is lost; then a new connection for the same session, after a wait of up to T/6 (at most 1 s),
given up after T. If the server says that the session has expired, a new one is opened at once. Unanswered
requests end in CONNECTION_LOSS; a request without a connection does so at once. On reconnection to the same
session the watches are set again, and those that missed a change fire then.

All of this uses the host's own monotonic clock (ZOOKEEPER-1366): a jump of the time of day ends no session, a
slow clock does.

A paused process does not ping. If it continues after more than 2T/3, it first finds the connection lost;
frames that came meanwhile are not read. Final.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from fencepost.impl.core.core_interface import (
    Input,
    ZooKeeperConnected,
    ZooKeeperDisconnected,
    ZooKeeperReplied,
    ZooKeeperSessionExpired,
    ZooKeeperWatchFired,
)
from fencepost.impl.zookeeper.interface import Failed, ZooKeeperError, ZooKeeperRequest
from fencepost.impl.zookeeper.watches import WatchTable
from fencepost.sim.clock import Clock
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import SECOND, Scheduler
from fencepost.sim.zookeeper import (
    NO_SESSION,
    Answer,
    Ask,
    Connect,
    ConnectAnswer,
    Connection,
    Hangup,
    Notify,
    Ping,
    ZooKeeper,
    cause_of,
)


class ZooKeeperClient:
    """session: its id, NO_SESSION if it has none. connected: whether requests can be sent. emit: called with
    the inputs for the core, in order."""

    def __init__(
        self,
        *,
        node: int,
        scheduler: Scheduler,
        clock: Clock,
        randomness: Randomness,
        server: ZooKeeper,
        session_timeout: int,
        emit: Callable[[Input], None],
    ) -> None:
        self._node, self._scheduler, self._randomness, self._server = node, scheduler, randomness, server
        self._clock, self._timeout, self._emit = clock, session_timeout, emit
        self._ping_interval, self._read_timeout = session_timeout // 3, session_timeout * 2 // 3
        self._attempts = 0
        self._generation = 0  # of ticks: ticks of an earlier generation are ignored
        self._running = self._paused = False
        self._unread: list[Any] = []
        self._last_received = self._last_sent = 0
        self._connection: Connection | None = None
        self._outstanding: deque[tuple[int, ZooKeeperRequest]] = deque()
        self.connected = False
        self._forget_session()

    def _forget_session(self) -> None:
        self.session = NO_SESSION
        self._seen_zxid = 0
        self._watches = WatchTable()

    # ---- the process

    def start(self) -> None:
        """The process has started: open a session."""
        self._running = True
        self._connect()

    def stop(self) -> None:
        """The process is gone: it sends nothing more; the session is left to expire."""
        self._close()
        self._outstanding.clear()
        self._forget_session()
        self._running = self._paused = False

    def pause(self) -> None:
        """The process is paused."""
        self._paused = True

    def resume(self) -> None:
        """The process continues."""
        self._paused = False
        if self._connection is None:
            if self._running:
                self._connect()
            return
        if self._clock.elapsed() - self._last_received >= self._limit():
            self._disconnect()
            return
        unread, self._unread, connection = self._unread, [], self._connection
        for frame in unread:
            if self._connection is not connection:
                return  # the process died of an input, or closed the connection
            self._receive(frame)
        if self._connection is connection:
            self._generation += 1
            self._tick(self._generation)

    def ask(self, request_id: int, request: ZooKeeperRequest) -> None:
        """Send `request` on the current session; the reply has `request_id`."""
        if not self.connected or self._connection is None:
            self._emit(ZooKeeperReplied(request_id, Failed(ZooKeeperError.CONNECTION_LOSS)))
            return
        self._watches.set(request)  # before any of them fires
        self._outstanding.append((request_id, request))
        cause = cause_of(request)
        self._connection.up.send(Ask(request_id=request_id, request=request, cause=cause), cause)

    # ---- the connection

    def _connect(self) -> None:
        self._attempts += 1
        self._generation += 1
        self._last_received = self._last_sent = self._clock.elapsed()
        self._connection = self._server.connect(self._node, self._receive)
        self._connection.up.send(
            Connect(
                session=self.session,
                timeout=self._timeout,
                seen=self._seen_zxid,
                data_watches=tuple(sorted(self._watches.data)),
                exists_watches=tuple(sorted(self._watches.exists)),
                child_watches=tuple(sorted(self._watches.children)),
            )
        )
        self._tick(self._generation)

    def _connect_again(self, generation: int) -> None:
        if generation == self._generation and self._running and not self._paused:
            self._connect()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._generation += 1
        self._unread.clear()
        self.connected = False

    def _disconnect(self) -> None:
        """The connection is lost: notify the core, then reconnect."""
        was_connected = self.connected
        self._close()
        if was_connected:
            lost, self._outstanding = self._outstanding, deque()
            for request_id, _ in lost:
                self._emit(ZooKeeperReplied(request_id, Failed(ZooKeeperError.CONNECTION_LOSS)))
            self._emit(ZooKeeperDisconnected())
        longest = min(self._timeout // 6, SECOND)
        wait = self._randomness.below(longest + 1, "zookeeper reconnection", self._node, self._attempts)
        then = self._clock.when_elapsed(self._clock.elapsed() + wait)
        self._scheduler.at(then, self._connect_again, self._generation)

    def _limit(self) -> int:
        """The longest silence before the connection counts as lost."""
        return self._read_timeout if self.connected else self._timeout

    def _tick(self, generation: int) -> None:
        """Ping when it is time; give up after too long a silence."""
        if generation != self._generation or self._paused or self._connection is None:
            return
        now, limit = self._clock.elapsed(), self._limit()
        if now - self._last_received >= limit:
            self._disconnect()
            return
        due = self._last_received + limit
        if self.connected:
            if now - self._last_sent >= self._ping_interval:
                self._last_sent = now
                self._connection.up.send(Ping())
            due = min(due, self._last_sent + self._ping_interval)
        self._scheduler.at(self._clock.when_elapsed(due), self._tick, generation)

    # ---- frames from the server

    def _receive(self, frame: Any) -> None:
        if self._paused:
            self._unread.append(frame)
            return
        self._last_received = self._clock.elapsed()
        if isinstance(frame, Answer):
            self._answered(frame)
        elif isinstance(frame, Notify):
            self._watches.forget(frame.event)
            self._emit(ZooKeeperWatchFired(frame.event))
        elif isinstance(frame, ConnectAnswer):
            self._session_answered(frame.session)
        elif isinstance(frame, Hangup):
            self._disconnect()

    def _session_answered(self, session: int) -> None:
        if session == NO_SESSION:
            self._close()
            self._forget_session()
            self._emit(ZooKeeperSessionExpired())
            if self._running:
                self._connect()
            return
        new, self.session = session != self.session, session
        self.connected = True
        self._generation += 1
        self._tick(self._generation)
        self._emit(ZooKeeperConnected(session, new))

    def _answered(self, frame: Answer) -> None:
        request_id, request = self._outstanding.popleft()
        assert request_id == frame.request_id, f"answer to {frame.request_id}, expected {request_id}"
        self._seen_zxid = max(self._seen_zxid, frame.zxid)
        self._watches.remember(request, frame.reply)
        self._emit(ZooKeeperReplied(request_id, frame.reply))

"""The ZooKeeper interface on kazoo: consecutive sessions with a real server, reported as the interface's
inputs.

Owns the state of the session, the order of inputs, and the watches. Must not know the receiver. It uses kazoo
only as a connection that keeps a session alive by pings, finds the server again, and sends requests in order.

Order. kazoo passes replies and watches to two threads, which loses their order. Here both leave from kazoo's
one connection thread, in the order of the wire: a watch before any reply that shows the change. `emit` is
called from that thread (and from the thread of `ask`, if there is no connection); it must not block.

Sessions. A request without a connection ends in CONNECTION_LOSS at once (kazoo would keep it for the next
session). When the connection is lost, the outstanding requests end in the same way; then comes
ZooKeeperDisconnected. On the same session the watches are set again (SetWatches; kazoo drops them), and those
that missed a change fire. A new session has none.
"""

import logging
from collections.abc import Callable
from threading import RLock
from typing import Any

from attrs import define

from fencepost.impl.core.core_interface import (
    Input,
    ZooKeeperConnected,
    ZooKeeperDisconnected,
    ZooKeeperReplied,
    ZooKeeperSessionExpired,
    ZooKeeperWatchFired,
)
from fencepost.impl.runtime.zookeeper.wire_format import (
    UnknownCodeError,
    WireSetWatches,
    error_of,
    reply_of,
    set_watches_requests,
    watch_event,
    wire_request,
)
from fencepost.impl.zookeeper.interface import Failed, Reply, WatchEvent, ZooKeeperError, ZooKeeperRequest
from fencepost.impl.zookeeper.watches import WatchTable
from fencepost.traces.errors import MissingExtraError

try:
    from kazoo.client import KazooClient
    from kazoo.handlers.threading import SequentialThreadingHandler
    from kazoo.protocol.connection import ConnectionHandler
    from kazoo.protocol.states import KazooState
    from kazoo.retry import KazooRetry
except ModuleNotFoundError as error:
    if error.name != "kazoo":
        raise  # it is installed, and broken
    raise MissingExtraError(
        package="kazoo", extra="zookeeper", needed_for="talking to a real ZooKeeper"
    ) from None

LOG = logging.getLogger("fencepost.zookeeper")
NO_SESSION = 0
FIRST_RETRY_S, LONGEST_RETRY_S = 0.05, 1.0
WATCHES_BYTES = 128 * 1024
"""Bytes of paths in one SetWatches, as in ZooKeeper's own client."""


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threads without its dispatching of watches, which this module does."""

    def dispatch_callback(self, callback: Any) -> None:
        """Not used: no watch is registered with kazoo."""


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection; it passes every notification to this module in the thread that read it."""

    on_watch: Callable[[WatchEvent], None]

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        event = watch_event(buffer, offset)
        if event is not None:
            self.on_watch(event)


@define(eq=False)
class _Outstanding:
    """kazoo uses it as its asynchronous result. It is set once, in the connection's thread."""

    session: "ZooKeeperSession"
    request_id: int
    request: ZooKeeperRequest
    reported: bool = False

    def set(self, value: Any) -> None:
        """The server answered."""
        self._tell(reply_of(value, self.session.last_zxid))

    def set_exception(self, error: BaseException) -> None:
        """The server refused, or will not answer."""
        try:
            self._tell(Failed(error_of(getattr(error, "code", 0) or ERROR_WITHOUT_CODE)))
        except UnknownCodeError:
            LOG.error("%s: %r; taken for a lost connection", self.request, error)
            self._tell(Failed(ZooKeeperError.CONNECTION_LOSS))

    def _tell(self, reply: Reply) -> None:
        if not self.reported:
            self.reported = True
            self.session.answered(self, reply)


ERROR_WITHOUT_CODE = -4
"""kazoo's own errors (closed, stopped) have no code of the server; for the caller they are a lost
connection."""


class _NoResult:
    """The asynchronous result of a request with a response that is not needed."""

    def set(self, value: Any) -> None:
        """Done."""

    def set_exception(self, error: BaseException) -> None:
        """The connection is lost again; the next one sets the watches again."""


class ZooKeeperSession:
    """session_id: of the current or last session; connected: whether requests can be sent. `emit` receives
    the inputs in order."""

    def __init__(self, address: str, session_timeout_ms: int, emit: Callable[[Input], None]) -> None:
        self.session_id = NO_SESSION
        self.connected = False
        self._emit = emit
        self._lock = RLock()  # between the thread that asks and the one that connects
        self._watches = WatchTable()
        self._stopped = False
        retry = {"max_tries": -1, "delay": FIRST_RETRY_S, "backoff": 2, "max_delay": LONGEST_RETRY_S}
        self._client = KazooClient(
            hosts=address,
            timeout=session_timeout_ms / 1000,
            handler=_Handler(),
            connection_retry=KazooRetry(**retry),
            logger=logging.getLogger("fencepost.kazoo"),
        )
        connection = _Connection(
            self._client, self._client._connection.retry_sleeper, logger=self._client.logger
        )
        connection.on_watch = self._watch_fired
        self._client._connection = connection
        self._client.add_listener(self._state_changed)

    def start(self) -> None:
        """Start to connect; ZooKeeperConnected follows as soon as the server can be reached."""
        self._client.start_async()

    def stop(self) -> None:
        """End the session (its ephemeral nodes are removed) and the threads; no more inputs are emitted."""
        with self._lock:
            self._stopped, self.connected = True, False
        self._client.stop()
        self._client.close()

    def password(self) -> bytes:
        """The password with which a client claims the session."""
        return bytes(self._client._session_passwd)

    @property
    def last_zxid(self) -> int:
        """The transaction id of the last reply."""
        return int(self._client.last_zxid)

    def ask(self, request_id: int, request: ZooKeeperRequest) -> None:
        """Send a request on the current session; ZooKeeperReplied follows."""
        outstanding = _Outstanding(self, request_id, request)
        with self._lock:
            if self.connected:
                self._watches.set(request)
                self._client._call(wire_request(request), outstanding)
            else:
                outstanding.set_exception(ConnectionError())

    def answered(self, outstanding: _Outstanding, reply: Reply) -> None:
        """A request has its reply."""
        with self._lock:
            self._watches.remember(outstanding.request, reply)
            self._tell(ZooKeeperReplied(outstanding.request_id, reply))

    # ---- in kazoo's connection thread

    def _tell(self, input: Input) -> None:
        if not self._stopped:
            self._emit(input)

    def _watch_fired(self, event: WatchEvent) -> None:
        with self._lock:
            self._watches.forget(event)
            self._tell(ZooKeeperWatchFired(event))

    def _state_changed(self, state: str) -> None:
        with self._lock:
            if state == KazooState.CONNECTED:
                self._on_connected()
            elif state == KazooState.SUSPENDED:
                self._on_disconnected()
            elif not self._stopped:
                self._on_expired()

    def _on_connected(self) -> None:
        new = self._client._session_id != self.session_id
        self.session_id = self._client._session_id
        if new:
            self._watches = WatchTable()
        for request in self._watches_to_set():
            self._client._call(request, _NoResult())
        self.connected = True
        self._tell(ZooKeeperConnected(self.session_id, new))

    def _watches_to_set(self) -> list[WireSetWatches]:
        watches = self._watches
        return set_watches_requests(
            self._client.last_zxid,
            sorted(watches.data),
            sorted(watches.exists),
            sorted(watches.children),
            WATCHES_BYTES,
        )

    def _on_disconnected(self) -> None:
        self.connected = False
        self._client._notify_pending(self._client.client_state)  # requests since kazoo answered the others
        self._tell(ZooKeeperDisconnected())

    def _on_expired(self) -> None:
        self.connected = False
        self._watches = WatchTable()
        self._tell(ZooKeeperSessionExpired())

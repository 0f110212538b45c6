"""A listener of Kafka's protocol on asyncio: sockets, TLS, time.

Owns the sockets and the bounds over all connections. Must not know the protocol (connection.py does), or how
the core is run: it is handed requests by `submit` and answers by `answer`. Everything here happens in the
loop's thread.

A connection that ends leaves one line in the log. A client that does not read is given nothing new until it
does, so that at most one answer waits for it; what all of them hold is bounded together.
"""

import asyncio
import contextlib
import itertools
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import define, field, frozen

from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.messages.broker_api import Message, Request
from fencepost.wire.connection import Action, Close, Connection, HangUp, Submit, Wait, Write
from fencepost.wire.handling import BrokerView
from fencepost.wire.hook import Hook
from fencepost.wire.limits import Complaints, Limits
from fencepost.wire.sasl import Authentication
from fencepost.wire.versions import APIS, Api

LOG = logging.getLogger("fencepost.wire")
TICK_MS = 1_000
"""Time is counted in these steps, not read from a clock: a process that was suspended for a minute has not
kept its clients waiting for a minute."""
BACKLOG = 1_024
"""Connections that the system holds until they are accepted: a benchmark opens hundreds at once."""


@frozen(kw_only=True)
class Security:
    """tls: of a TLS listener. users: name -> password of a SASL/PLAIN listener; None: no login."""

    tls: ssl.SSLContext | None = None
    users: Mapping[str, str] | None = field(default=None, repr=False)


@define(eq=False, kw_only=True)
class Server:
    """The listener of one broker."""

    # The broker that owns the listener.
    broker: BrokerView
    # submit(source, request): the core gets it as a message from client `source`.
    submit: Callable[[int, Request], None]
    # Whether the core serves requests now. While it does not, connections are closed and new ones refused.
    ready: Callable[[], bool] = lambda: True
    # Ids of connections, never reused. Listeners of one simulated world share one iterator.
    sources: Iterator[int] = field(factory=lambda: itertools.count(FIRST_WIRE_CLIENT))
    # What the listener accepts and keeps.
    limits: Limits = field(factory=Limits)
    # TLS and SASL.
    security: Security = field(factory=Security)
    # The hook between requests and answers; None: none.
    hook: Hook | None = None
    # Request kinds that are answered, by API key.
    apis: Mapping[int, Api] = APIS
    # What the log has said of hostile hosts.
    complaints: Complaints = field(factory=Complaints)
    # Bytes of requests that have arrived and have not begun, over all connections.
    buffered: int = field(default=0, init=False)
    # Bytes of answers that clients do not read, over all connections.
    unread: int = field(default=0, init=False)
    # Peers that do not read, and their unread bytes when they stopped; the longest ago first.
    _stalled: dict["Peer", int] = field(factory=dict, init=False)
    # Open connections, by id.
    _peers: dict[int, "Peer"] = field(factory=dict, init=False)
    # The socket; None while it is closed.
    _listener: asyncio.Server | None = field(default=None, init=False)
    # The next tick; None while the socket is closed.
    _ticking: asyncio.TimerHandle | None = field(default=None, init=False)

    def narrow(self, receive_bytes: int) -> None:
        """Give new connections kernel buffers of this size."""
        for listening in () if self._listener is None else self._listener.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)

    async def listen(self, host: str, port: int) -> int:
        """Accept connections; returns the port (port 0: any free one)."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Peer(self), host, port, ssl=self.security.tls, backlog=BACKLOG
        )
        self._ticking = loop.call_later(self._tick_ms / 1000, self._tick)
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    def answer(self, source: int, message: Message) -> None:
        """Pass the core's answer `message` to the connection `source`. A closed connection drops it."""
        peer = self._peers.get(source)
        if peer is not None:
            peer.perform(peer.connection.answered(message))

    def owns(self, source: int) -> bool:
        """Whether a connection of this listener has that id now."""
        return source in self._peers

    @property
    def connections(self) -> int:
        """How many are open, or still carry out what a client left."""
        return len(self._peers)

    def port_of(self, source: int) -> int:
        """The port of the client of an open connection; 0 where there is none."""
        peer = self._peers.get(source)
        return 0 if peer is None else peer.client_port

    def disconnect(self, reason: str) -> None:
        """Cut every connection, because the core will not answer them. The server keeps listening."""
        if self._peers:
            LOG.info("broker %d: %d connections closed: %s", self.broker.node, len(self._peers), reason)
        for peer in list(self._peers.values()):
            peer.abort()

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._ticking is not None:
            self._ticking.cancel()
        if self._listener is not None:
            self._listener.close()
        for peer in list(self._peers.values()):
            peer.abort()
        await asyncio.sleep(0)  # the transports report their loss in the loop's next turn
        if self._listener is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._listener.wait_closed(), TICK_MS / 1000)

    @property
    def _tick_ms(self) -> int:
        """A short idle time is counted in shorter steps."""
        return min(TICK_MS, self.limits.idle_ms)

    def _tick(self) -> None:
        tick_ms = self._tick_ms
        self._ticking = asyncio.get_running_loop().call_later(tick_ms / 1000, self._tick)
        if self._peers and not self.ready():
            self.disconnect("the broker does not serve")
        for peer in list(self._peers.values()):
            peer.perform(peer.connection.tick(tick_ms))

    # ---- what the connections call

    def admit(self, peer: "Peer") -> str:
        """A connection was made; why it is refused, empty if it is not."""
        if not self.ready():
            return "the broker does not serve yet, or not any more"
        if len(self._peers) >= self.limits.connections:
            return f"there are {self.limits.connections} connections already"
        self._peers[peer.connection.source] = peer
        return ""

    def stalls(self, peer: "Peer", size: int) -> None:
        """A client has stopped reading. peer: its socket; size: bytes of unread answers."""
        self.reads_on(peer)
        self._stalled[peer] = size
        self.unread += size
        while self.unread > self.limits.unread_bytes and self._stalled:
            longest = next(iter(self._stalled))
            longest.perform([Close(f"answers that nobody reads hold {self.unread} bytes", hostile=True)])
            self.reads_on(longest)

    def reads_on(self, peer: "Peer") -> None:
        """It reads again, or has gone."""
        self.unread -= self._stalled.pop(peer, 0)

    def dismiss(self, peer: "Peer") -> None:
        """A connection has ended; drop its requests."""
        self._peers.pop(peer.connection.source, None)


@define(eq=False)
class Peer(asyncio.Protocol):
    """One socket and its connection."""

    server: Server
    connection: Connection = field(init=False)
    # The client has closed. Its complete requests are still carried out up to the first answer, as in Kafka.
    gone: bool = field(default=False, init=False)
    _transport: asyncio.Transport | None = field(default=None, init=False)
    # The client does not read.
    _paused: bool = field(default=False, init=False)
    # Bytes that the server counts as buffered for this peer.
    _counted: int = field(default=0, init=False)
    # The client's name in the log.
    _name: str = field(default="somebody", init=False)
    # 0 before it has connected.
    client_port: int = field(default=0, init=False)
    _actions: deque[Action] = field(factory=deque, init=False)
    _performing: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        server = self.server
        self.connection = Connection(
            source=next(server.sources),
            broker=server.broker,
            apis=server.apis,
            limits=server.limits,
            authentication=Authentication(server.security.users),
            hook=server.hook,
        )

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("peername")
        if address:
            self._name = f"{address[0]}:{address[1]}"
            self.client_port = address[1]
            self.connection.client_host = f"/{address[0]}"
        refused = self.server.admit(self)
        if refused:
            LOG.info("%s: connection refused: %s", self._name, refused)
            self.connection.closed = True
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        self.perform(self.connection.receive(data))
        if self.server.buffered > self.server.limits.buffered_bytes and not self.connection.closed:
            self.perform([Close(f"unfinished requests hold {self.server.buffered} bytes", hostile=True)])

    def pause_writing(self) -> None:
        """The client does not read its answers."""
        self.connection.blocked = True
        assert self._transport is not None
        self.server.stalls(self, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It reads again."""
        self.connection.blocked = False
        self.server.reads_on(self)
        self.perform(self.connection.resume())

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        self.gone, self.connection.left, self.connection.blocked = True, True, False
        self.server.reads_on(self)
        if error is not None:
            LOG.info("%s: connection lost: %s", self._name, error)
        self.perform(self.connection.resume())

    # ---- what the connection wants

    def perform(self, actions: Iterable[Action]) -> None:
        """Do these after all that was wanted before: the core may answer while it is asked."""
        self._actions.extend(actions)
        if self._performing:
            return
        self._performing = True
        try:
            while self._actions and not self._holds():
                self._perform(self._actions.popleft())
        finally:
            self._performing = False
        self._settle()

    def _holds(self) -> bool:
        """Whether the next request began together with an unread answer: the core does not
        get it yet, or there would be two answers. An action that closes the connection does not wait."""
        if not (self.connection.blocked and isinstance(self._actions[0], Submit)):
            return False
        closes = [each for each in self._actions if isinstance(each, Close)]
        self._actions = deque(closes or self._actions)
        return not closes

    def _perform(self, action: Action) -> None:
        if isinstance(action, Write):
            if self._transport is not None and not self.gone:
                self._transport.write(action.data)
                # a write that failed closes the transport; asyncio calls connection_lost only later
                self.connection.left |= self._transport.is_closing() and not self.connection.closed
        elif isinstance(action, Submit):
            self._submit(action.message)
        elif isinstance(action, Wait):
            asyncio.get_running_loop().call_later(action.milliseconds / 1000, self._woken)
        elif isinstance(action, HangUp):
            if self._transport is not None:
                self._transport.close()
        else:
            self._close(action)

    def _submit(self, message: Request) -> None:
        if self.connection.closed:
            return
        if self.server.ready():
            self.server.submit(self.connection.source, message)
        else:
            self._close(Close("the broker does not serve any more"))

    def _woken(self) -> None:
        self.perform(self.connection.woken())

    def _close(self, action: Close) -> None:
        """What was written still goes out, unless the client does not read."""
        if action.hostile:
            now_s = asyncio.get_running_loop().time()
            more = self.server.complaints.line(self._name.rpartition(":")[0], now_s)
            if more is not None:
                LOG.warning("%s: connection closed: %s%s", self._name, action.reason, more)
        else:
            LOG.info("%s: connection closed: %s", self._name, action.reason)
        if self.connection.blocked:
            self.abort()
            return
        self.connection.closed = True
        self.connection.buffer.clear()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Cut it now."""
        self.connection.closed = True
        self.connection.buffer.clear()
        self._actions.clear()
        if self._transport is not None:
            self._transport.abort()
        self._settle()

    def _settle(self) -> None:
        """Count what is buffered, read on or not, and go when everything is done."""
        if self.gone and self.connection.idle:
            self.connection.buffer.clear()  # half a request at most
        size = len(self.connection.buffer)
        self.server.buffered += size - self._counted
        self._counted = size
        if self.gone:
            if self.connection.idle:
                self.server.dismiss(self)
            return
        transport = self._transport
        if transport is None or transport.is_closing() or self._paused is not self.connection.reads:
            return
        self._paused = not self.connection.reads
        if self._paused:
            transport.pause_reading()
        else:
            transport.resume_reading()

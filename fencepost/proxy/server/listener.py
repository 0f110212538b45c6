"""The proxy on asyncio: listeners of ours, one for each listener of a broker, and a pair of sockets for each
connection.

Owns sockets, TLS, time, and that neither side is given more than it reads. Must not know the protocol
(pipe.py).
"""

import asyncio
import contextlib
import itertools
import logging
import socket
import time
from collections.abc import Callable, Iterator

from attrs import define, field

from fencepost.proxy.exchange import Action, Close, Late, ToBroker, ToClient
from fencepost.proxy.pipe import Pipe, Watcher
from fencepost.proxy.proxied_cluster import Address, Cluster, Upstream
from fencepost.proxy.server.upstreams import Sides, Upstreams
from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import Hook
from fencepost.wire.limits import Complaints

LOG = logging.getLogger("fencepost.proxy")
BACKLOG = 1_024
MOST_CONNECTIONS = 10_000
"""Each costs two sockets."""
MOST_BUFFERED = 512 * 1024 * 1024
"""Bytes of frames that have not arrived whole, over all connections."""
WRITE_AHEAD_BYTES = 4 * 1024 * 1024
"""Bytes that wait for a side that does not read, before the other side is not read either."""
LINGER_S = 5.0
"""For what was written to a side that is being closed."""
_WALL = time.time_ns() - time.monotonic_ns()
BOOTSTRAP = Upstream(-1, "", 0)
"""The listener that clients are pointed at first; its address is the user's."""


def trace_time() -> int:
    """Nanoseconds that never go back, of the wall clock when the process began."""
    return _WALL + time.monotonic_ns()


@define(eq=False, kw_only=True)
class Proxy:
    """upstream: the cluster, as clients would name it; alternatives: further brokers of it, for when that one
    cannot be reached. host: where every listener is. first_port: of the
    listener that clients are pointed at, 0 for any free one; those of brokers take the next ports that are
    free."""

    upstream: Address
    alternatives: tuple[Address, ...] = ()
    host: str = "127.0.0.1"
    first_port: int = 0
    sides: Sides = field(factory=Sides)
    watcher: Watcher | None = None
    # hook_for(node): the hook of a broker's connections; -1 for the connections that clients begin with.
    hook_for: Callable[[int], Hook] | None = None
    pass_unknown: bool = False
    on_unread: Callable[[Pipe, RequestHeader], None] | None = None
    # Called before requests leave: what was written ahead has to be with the system by then.
    before_sending: Callable[[], None] = lambda: None
    # What the log has said of hosts.
    complaints: Complaints = field(factory=Complaints)
    # Why no traffic may pass now; "" if it may.
    refuses: Callable[[], str] = lambda: ""
    # Port of each "node host:port" of a run before, so that clients find their brokers where they were.
    kept_ports: dict[str, int] = field(factory=dict)
    cluster: Cluster = field(init=False)
    upstreams: Upstreams = field(init=False)
    # Of clients, so far.
    bytes_in: int = field(default=0, init=False)
    # Of brokers, so far.
    bytes_out: int = field(default=0, init=False)
    connections: dict[int, "ClientSide"] = field(factory=dict, init=False)
    buffered: int = field(default=0, init=False)
    _numbers: Iterator[int] = field(factory=lambda: itertools.count(1), init=False)
    _listeners: list[asyncio.Server] = field(factory=list, init=False)
    _starting: "set[asyncio.Task[None]]" = field(factory=set, init=False)
    _next_port: int = field(default=0, init=False)
    _hooks: dict[int, Hook] = field(factory=dict, init=False)
    _closing: bool = field(default=False, init=False)
    # Connections of brokers on which something is still to be sent although their client has gone.
    _late: "set[asyncio.Transport]" = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.cluster = Cluster(self._bind)
        self.upstreams = Upstreams(self.sides)

    async def listen(self) -> int:
        """Open the first listener; returns its port. Raises EnvironmentError_ if it is taken."""
        bound = self._bound(self.first_port)
        if bound is None:
            raise EnvironmentError_(
                expected="a free port", seen="that it is taken", where=f"{self.host}:{self.first_port}"
            )
        port: int = bound.getsockname()[1]
        self._next_port = port + 1
        await self._serve(bound, BOOTSTRAP)
        return port

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        self._closing = True
        for task in list(self._starting):
            task.cancel()
        for listener in self._listeners:
            listener.close()
        self.disconnect("the proxy ends")
        for transport in list(self._late):
            transport.abort()
        await asyncio.sleep(0)
        for listener in self._listeners:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(listener.wait_closed(), 1)

    def disconnect(self, reason: str) -> None:
        """Cut every connection now; goes on listening."""
        for side in list(self.connections.values()):
            side.end(reason, abrupt=True)

    def send_late(self, transport: asyncio.Transport, late: Late) -> None:
        """Send frames on a broker's connection whose client's side has ended, and then end it, too. They are
        lost if the broker ends the connection first.

        Args:
            transport: the broker's side.
            late: the frames, and when they leave.
        """

        def send() -> None:
            self._late.discard(transport)
            if not transport.is_closing():
                transport.write(b"".join(late.frames))
                if transport.can_write_eof():
                    transport.write_eof()
                loop.call_later(LINGER_S, transport.abort)

        loop = asyncio.get_running_loop()
        self._late.add(transport)
        loop.call_later(late.milliseconds / 1000, send)

    # ---- listeners

    def _bound(self, port: int) -> socket.socket | None:
        # asyncio sets TCP_NODELAY only where the protocol is named. Without it an answer that follows another
        # waits for the client's delayed acknowledgement, up to 40 ms.
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((self.host, port))
            made.listen(BACKLOG)
        except OSError:
            made.close()
            return None
        made.setblocking(False)
        return made

    def _bind(self, upstream: Upstream) -> Address:
        """A listener for a broker's: where it was in a run before, else on the next free port."""
        name = f"{upstream.node} {upstream.host}:{upstream.port}"
        wanted = [self.kept_ports.get(name, 0)] if name in self.kept_ports else []
        wanted += [port for port in range(self._next_port, self._next_port + 100) if port < 65_536]
        for port in [*wanted, 0]:
            bound = self._bound(port)
            if bound is not None:
                break
        else:
            raise EnvironmentError_(expected="a free port", seen="none", where=self.host)
        address: Address = (self.host, bound.getsockname()[1])
        self.kept_ports[name] = address[1]
        task = asyncio.ensure_future(self._serve(bound, upstream))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        LOG.info(
            "broker %d at %s:%d is here at port %d", upstream.node, upstream.host, upstream.port, address[1]
        )
        return address

    async def _serve(self, bound: socket.socket, upstream: Upstream) -> None:
        listener = await asyncio.get_running_loop().create_server(
            lambda: ClientSide(self, upstream), sock=bound, ssl=self.sides.listener, backlog=BACKLOG
        )
        if self._closing:
            listener.close()
        self._listeners.append(listener)

    # ---- connections

    def address_of(self, upstream: Upstream) -> Address:
        """Where a listener's broker is."""
        return self.upstream if upstream is BOOTSTRAP else (upstream.host, upstream.port)

    def addresses_of(self, upstream: Upstream) -> tuple[Address, ...]:
        """Where a listener's broker may be, the one that answered last before the others."""
        first = self.address_of(upstream)
        return (first, *self.alternatives) if upstream is BOOTSTRAP else (first,)

    def answered(self, upstream: Upstream, address: Address) -> None:
        """An address of a listener's broker has answered: it is the first from now on.

        Args:
            upstream: the listener's broker.
            address: the one of its addresses.
        """
        if address != self.address_of(upstream):
            others = [one for one in self.addresses_of(upstream) if one != address]
            self.upstream, self.alternatives = address, tuple(others)

    def pipe(self, upstream: Upstream, client: str) -> Pipe:
        """The state machine of a new connection.

        Args:
            upstream: the listener's broker.
            client: the peer's address.
        """
        return Pipe(
            number=next(self._numbers),
            cluster=self.cluster,
            broker=self.address_of(upstream),
            client=client,
            now=trace_time,
            watcher=self.watcher,
            hook=self._hook(upstream.node),
            pass_unknown=self.pass_unknown,
            on_unread=self.on_unread,
        )

    def _hook(self, node: int) -> Hook | None:
        if self.hook_for is None:
            return None
        if node not in self._hooks:
            self._hooks[node] = self.hook_for(node)
        return self._hooks[node]


@define(eq=False)
class ClientSide(asyncio.Protocol):
    """The socket of a client."""

    proxy: Proxy
    upstream: Upstream
    pipe: Pipe = field(init=False)
    transport: asyncio.Transport | None = field(default=None, init=False)
    broker: "BrokerSide | None" = field(default=None, init=False)
    ended: bool = field(default=False, init=False)
    _counted: int = field(default=0, init=False)
    _connecting: "asyncio.Task[None] | None" = field(default=None, init=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected: connect to its broker before anything of it is read."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)
        peer = transport.get_extra_info("peername") or ("somebody", 0)
        self.pipe = self.proxy.pipe(self.upstream, f"{peer[0]}:{peer[1]}")
        refused = self.proxy.refuses()
        if refused or len(self.proxy.connections) >= MOST_CONNECTIONS:
            self._complain(f"connection refused: {refused or 'too many connections'}")
            self.ended = True
            transport.abort()
            return
        self.proxy.connections[self.pipe.number] = self
        transport.pause_reading()
        self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        upstreams = self.proxy.upstreams
        try:
            address, broker = await upstreams.connect(
                self.proxy.addresses_of(self.upstream), lambda: BrokerSide(self)
            )
        except OSError as error:
            upstreams.lost(self.pipe.client, str(error))
            self.end(str(error), abrupt=True)
            return
        assert isinstance(broker, BrokerSide)
        self.broker, self.pipe.broker = broker, address
        self.proxy.answered(self.upstream, address)
        if self.ended:
            self.broker.abort()
        elif self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        self.proxy.bytes_in += len(data)
        if refused := self.proxy.refuses():
            self.end(refused, abrupt=True)
            return
        self.perform(self.pipe.from_client(data))

    def connection_lost(self, error: Exception | None) -> None:
        """The client has gone."""
        self.end("the client has closed" if error is None else f"the client is lost: {error}")

    def pause_writing(self) -> None:
        """The client does not read: its broker is not read either."""
        if self.broker is not None:
            self.broker.read(False)

    def resume_writing(self) -> None:
        """It reads again."""
        if self.broker is not None:
            self.broker.read(True)

    def perform(self, actions: list[Action]) -> None:
        """Do what the pipe wants, in order; neighbouring bytes leave together."""
        if len(actions) == 1 and isinstance(actions[0], ToClient):
            if self.transport is not None:
                self.transport.write(actions[0].data)
        elif actions:
            self._perform(actions)
        self.pipe.settle()
        size = self.pipe.buffered
        if size != self._counted:
            self.proxy.buffered += size - self._counted
            self._counted = size
            if self.proxy.buffered > MOST_BUFFERED and not self.ended:
                self.end(f"frames under way hold {self.proxy.buffered} bytes", abrupt=True)

    def _perform(self, actions: list[Action]) -> None:
        upstream = [action.data for action in actions if isinstance(action, ToBroker)]
        if upstream and self.broker is not None:
            self.proxy.before_sending()
            if refused := self.proxy.refuses():  # what could not be recorded must not reach a broker
                self.end(refused, abrupt=True)
                return
            self.broker.write(upstream)
        for action in actions:
            if isinstance(action, ToClient):
                if self.transport is not None:
                    self.transport.write(action.data)
            elif isinstance(action, Close):
                if action.hostile:
                    self._complain(f"connection closed, {action.hostile}: {action.reason}")
                self.end(action.reason, abrupt=action.abrupt)
            elif not isinstance(action, ToBroker):
                delay_s = action.milliseconds / 1000
                asyncio.get_running_loop().call_later(delay_s, self._woken, action.side)

    def _complain(self, what: str) -> None:
        now_s = asyncio.get_running_loop().time()
        more = self.proxy.complaints.line(self.pipe.client.rpartition(":")[0], now_s)
        if more is not None:
            LOG.warning("%s: %s%s", self.pipe.client, what, more)

    def _woken(self, side: str) -> None:
        if not self.ended:
            self.perform(self.pipe.woken(side))

    def end(self, reason: str, *, abrupt: bool = False) -> None:
        """Close both sockets. What was written to either still leaves, unless it is to be abrupt."""
        if self.ended:
            return
        late = None if abrupt else self._late()
        self.ended = True
        self.pipe.ended(reason)
        self.proxy.buffered -= self._counted
        self._counted = 0
        self.proxy.connections.pop(self.pipe.number, None)
        LOG.debug("%s: connection ends: %s", self.pipe.client, reason)
        for transport in (self.transport, None if self.broker is None else self.broker.transport):
            if transport is None:
                continue
            if late is not None and transport is not self.transport:
                self.proxy.send_late(transport, late)
            else:
                _finish(transport, abrupt)

    def _late(self) -> Late | None:
        """What leaves for the broker although this client's side ends."""
        late = self.pipe.late()
        if late is not None:
            self.proxy.before_sending()
        return None if self.proxy.refuses() else late


def _finish(transport: asyncio.Transport, abrupt: bool) -> None:
    if abrupt:
        transport.abort()
        return
    transport.close()
    if transport.get_write_buffer_size():  # a side that never reads must not hold its socket for ever
        asyncio.get_running_loop().call_later(LINGER_S, transport.abort)


@define(eq=False)
class BrokerSide(asyncio.Protocol):
    """The socket of a broker."""

    client: ClientSide
    transport: asyncio.Transport | None = field(default=None, init=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The broker is there."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)

    def data_received(self, data: bytes) -> None:
        """Bytes of the broker."""
        self.client.proxy.bytes_out += len(data)
        self.client.perform(self.client.pipe.from_broker(data))

    def connection_lost(self, error: Exception | None) -> None:
        """The broker has gone."""
        self.client.end("the broker has closed" if error is None else f"the broker is lost: {error}")

    def pause_writing(self) -> None:
        """The broker does not read: its client is not read either."""
        if self.client.transport is not None and not self.client.transport.is_closing():
            self.client.transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        if self.client.transport is not None and not self.client.transport.is_closing():
            self.client.transport.resume_reading()

    def read(self, wanted: bool) -> None:
        """Go on reading, or stop."""
        if self.transport is not None and not self.transport.is_closing():
            if wanted:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    def write(self, parts: list[bytes]) -> None:
        """Send these."""
        if self.transport is not None:
            self.transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def abort(self) -> None:
        """Cut it now."""
        if self.transport is not None:
            self.transport.abort()

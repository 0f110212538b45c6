"""The sockets in front of an embedded cluster: one listener of Kafka's protocol for each broker.

Owns their ports and when a broker serves. Must not know the protocol (wire/), or what the brokers make of a
request. Everything here runs in the loop's thread.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping
from functools import partial

from attrs import define, evolve, field

from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.log.batch.header import CorruptBatchError, read_header
from fencepost.impl.log.validation import MANY_RECORDS, RefusedBatchError, checked_header, checked_records
from fencepost.impl.log.values import contents_of
from fencepost.impl.messages.broker_api import ProduceRequest, Request, Response
from fencepost.sim.host import Host
from fencepost.systems.gateway import Gateway, Tap
from fencepost.systems.pace import Pace
from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.handling import BrokerView
from fencepost.wire.hook import Hook
from fencepost.wire.server import Server

HERE = "127.0.0.1"
"""The loopback interface: not reachable from other machines."""


@define(eq=False, kw_only=True)
class Listeners:
    """One for each broker, between `open` and `close`."""

    # The brokers.
    hosts: Mapping[int, Host]
    gateway: Gateway
    pace: Pace
    # Gets every request and answer.
    tap: Tap = field(factory=Tap)
    # What comes between the requests of a broker and their answers, such as faults.
    hooks: Callable[[int], Hook | None] = lambda broker: None
    # Whether the cluster has them.
    transactions: bool = False
    # The feature transaction.version.
    transaction_version: int = 1
    # Bound, by broker.
    ports: dict[int, int] = field(factory=dict, init=False)
    # Whether requests are accepted; False before the last phases of a run.
    serving: bool = field(default=True, init=False)
    _servers: dict[int, Server] = field(factory=dict, init=False)
    # Requests of connections whose records are decoded now, by connection.
    _held: dict[int, list[Request]] = field(factory=dict, init=False)
    _reading: "set[asyncio.Task[None]]" = field(factory=set, init=False)

    async def open(self, port: int) -> None:
        """Listen on this port and those after it, or on any free ones (0). Raises EnvironmentError_ where a
        port is taken."""
        sources = itertools.count(FIRST_WIRE_CLIENT)
        for place, (broker, host) in enumerate(self.hosts.items()):
            server = Server(
                broker=BrokerView(
                    node=broker,
                    addresses=self.addresses,
                    transactions=self.transactions,
                    transaction_version=self.transaction_version,
                ),
                submit=partial(self._submit, broker),
                ready=partial(self._ready, host),
                sources=sources,
                hook=self.hooks(broker),
            )
            wanted = port + place if port else 0
            try:
                self.ports[broker] = await server.listen(HERE, wanted)
            except OSError as error:
                raise EnvironmentError_(
                    expected=f"port {wanted} to be free",
                    seen=str(error),
                    where=f"the listener of broker {broker}",
                    hint="name another first port, or 0 for any free ones",
                ) from None
            self._servers[broker] = server
            self.gateway.answers[broker] = partial(self._answer, server)

    def put_between(self, hook_of: Callable[[int], Hook | None]) -> None:
        """Send each new connection of a broker through its hook from now on."""
        for broker, server in self._servers.items():
            server.hook = hook_of(broker)

    def between(self, broker: int) -> Hook | None:
        """The hook through which connections of a broker go now."""
        return self._servers[broker].hook

    def narrow(self, receive_bytes: int) -> None:
        """New connections have kernel buffers of this size (SO_RCVBUF), as on a slow or long path."""
        for server in self._servers.values():
            server.narrow(receive_bytes)

    def read_nearby(self) -> None:
        """Each broker is in a rack of its own from now on, and consumers of that rack read from it
        (KIP-392)."""
        for server in self._servers.values():
            server.broker.racks = True

    def close_idle(self, milliseconds: int) -> None:
        """New connections are closed after so long without a request (connections.max.idle.ms)."""
        for server in self._servers.values():
            server.limits = evolve(server.limits, idle_ms=milliseconds)

    async def close(self) -> None:
        """Cut every connection and free the ports."""
        self.serving = False
        for reading in self._reading:
            reading.cancel()
        for server in self._servers.values():
            await server.close()
        self._servers.clear()
        self.gateway.answers.clear()

    def addresses(self) -> Mapping[int, tuple[str, int]]:
        """As brokers advertise them."""
        return {broker: (HERE, port) for broker, port in self.ports.items()}

    def port_of(self, source: int) -> int:
        """The port of a connection's client; 0 for a connection that has ended."""
        return next((port for server in self._servers.values() if (port := server.port_of(source))), 0)

    def disconnect(self, broker: int, reason: str) -> None:
        """The broker's process is gone: its connections break."""
        self.tap.lost(broker)
        if broker in self._servers:
            self._servers[broker].disconnect(reason)

    def serve_nobody(self) -> None:
        """Accept no request from now on, and cut every connection."""
        self.serving = False
        for server in self._servers.values():
            server.disconnect("the run ends")

    def _submit(self, broker: int, source: int, message: Request) -> None:
        """Pass a request on. One with many records is decoded first, in a thread, so that others are served
        meanwhile; what its connection asks after it waits, for requests of a connection have an order."""
        held = self._held.get(source)
        if held is not None:
            held.append(message)
        elif isinstance(message, ProduceRequest) and has_many_records(message.records):
            self._held[source] = [message]
            reading = asyncio.ensure_future(self._read_ahead(broker, source))
            self._reading.add(reading)
            reading.add_done_callback(self._reading.discard)
        else:
            self.pace.catch_up()
            self.tap.asked(broker, source, message)
            self._pass_on(broker, source, message)

    async def _read_ahead(self, broker: int, source: int) -> None:
        """Decode the records of a connection's requests, which stay cached for all who read them next, and
        pass each request on."""
        try:
            while held := self._held[source]:
                message = held.pop(0)
                if isinstance(message, ProduceRequest):
                    await asyncio.to_thread(decode_ahead, message.records)
                server = self._servers.get(broker)
                if server is None or not server.ready():
                    return  # its connection is cut
                self.pace.catch_up()
                for _ in self.tap.asking(broker, source, message):
                    await asyncio.sleep(0)
                self._pass_on(broker, source, message)
        finally:
            del self._held[source]

    def _pass_on(self, broker: int, source: int, message: Request) -> None:
        self.gateway.submit(broker, source, message)
        self.pace.wake()

    def _answer(self, server: Server, source: int, answer: Response) -> None:
        self.tap.answered(source, answer, delivered=server.owns(source))
        server.answer(source, answer)

    def _ready(self, host: Host) -> bool:
        """A paused process is ready: its connections stay, and its clients wait."""
        core = host.core
        return (
            self.serving
            and self.pace.running
            and core is not None
            and core.broker_context.broker_epoch >= 0
            and not core.shutdown.shutting_down
        )


def has_many_records(records: bytes) -> bool:
    """Whether a produced batch is worth a thread. records: its bytes; a batch that its header refuses is not
    decoded at all."""
    try:
        return read_header(records, check_crc=False).count >= MANY_RECORDS
    except CorruptBatchError:
        return False


def decode_ahead(records: bytes) -> None:
    """Check and decode a produced batch, for the caches. records: its bytes; the broker says what is wrong
    with them."""
    with contextlib.suppress(CorruptBatchError, RefusedBatchError, ValueError):
        header = checked_header(records)
        checked_records(records, header)
        contents_of(records, header)

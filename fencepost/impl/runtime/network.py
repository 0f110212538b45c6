"""Messages over TCP: a listening socket, and one connection to each broker that this node sends to.

Owns connections, their queues and their lifetime. Must not know the core: it passes on (source, message). A
node opens its own connection to each broker that it sends to, and messages stay in order. Messages to a
client go back on the client's connection. TCP may lose data when a connection breaks, so messages may be lost
here too: with a full queue, or if a broker is down. The core's timeouts handle that.

A malformed frame closes its connection, with the reason in the log, and has no other effect. The same holds
for a message that its sender may not send: clients and brokers have separate listeners, and a broker shows
the cluster's credentials (greeting.py).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping

from attrs import define, field

from fencepost.impl.core.broker_context import FIRST_CLIENT, FIRST_WIRE_CLIENT
from fencepost.impl.messages.broker_api import Message
from fencepost.impl.runtime.addresses import Address
from fencepost.impl.runtime.codec import MalformedError, decode, encode
from fencepost.impl.runtime.greeting import (
    Credentials,
    broker_greeting,
    broker_of_greeting,
    check_broker,
    check_client,
)
from fencepost.impl.runtime.intake import MAXIMUM_CLIENT_FRAME, MOST_UNFINISHED_BYTES, Intake
from fencepost.impl.runtime.tcp_frames import (
    MAXIMUM_FRAME,
    MAXIMUM_GREETING,
    client_of_greeting,
    framed,
    greeting,
    read_frame,
)

LOG = logging.getLogger("fencepost.network")
MAXIMUM_QUEUED_MESSAGES = 10_000
"""The most queued messages for one peer. Further ones are lost, as the simulated host loses them."""
MAXIMUM_BUFFERED_BYTES = MAXIMUM_FRAME
"""The most unsent bytes for one client that does not read; beyond it the connection is closed."""
MOST_BUFFERED_BYTES = 2 * MAXIMUM_BUFFERED_BYTES
"""The most unsent bytes for all clients together; beyond it the connection with most of them is closed."""
BUFFERED_NOTICED = 1024 * 1024
"""The buffers of all clients are added up only if one client has this many unsent bytes."""
CONNECT_S = 5.0
GREETING_S = 10.0
"""How long a connection may take to send its greeting."""
RETRY_S = 0.1
"""Between two attempts to connect to a broker that may be starting."""


Accepted = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@define(eq=False)
class Peer:
    """A broker that this node sends to."""

    # The id of this node.
    node: int
    # The id of the broker.
    target: int
    # The broker's listener.
    address: Address
    # The greeting.
    hello: bytes
    # Called with (source, message) for responses to a client; a broker gets none on this connection.
    receive: Callable[[int, Message], None]
    # Encoded messages that wait for the connection, or for space in it.
    queue: "asyncio.Queue[bytes]" = field(factory=lambda: asyncio.Queue(MAXIMUM_QUEUED_MESSAGES))

    def send(self, data: bytes) -> None:
        """Queue a message, or lose it."""
        with contextlib.suppress(asyncio.QueueFull):
            self.queue.put_nowait(data)

    async def run(self) -> None:
        """Connect when there is something to send, send, and start again when the connection is lost."""
        while True:
            waiting = await self.queue.get()
            try:
                reader, writer = await asyncio.wait_for(asyncio.open_connection(*self.address), CONNECT_S)
            except (OSError, TimeoutError) as error:
                LOG.info("broker %d cannot be reached: %s", self.target, error)
                self._lose_all()
                await asyncio.sleep(RETRY_S)
                continue
            try:
                await self._use(reader, writer, waiting)
            except OSError as error:
                LOG.info("the connection to broker %d is lost: %s", self.target, error)
            finally:
                writer.close()

    async def _use(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes) -> None:
        """Send until the other side closes."""
        closed = asyncio.ensure_future(self._listen(reader))
        closed.add_done_callback(lambda it: it.cancelled() or it.exception())  # how it closed does not matter
        next_message: asyncio.Future[bytes] | None = None
        writer.write(self.hello + framed(first))
        try:
            while not closed.done():
                await writer.drain()
                next_message = asyncio.ensure_future(self.queue.get())
                await asyncio.wait((closed, next_message), return_when=asyncio.FIRST_COMPLETED)
                if next_message.done():
                    writer.write(framed(next_message.result()))
        finally:
            closed.cancel()
            if next_message is not None:
                next_message.cancel()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        if self.node < FIRST_CLIENT:
            await reader.read(1)  # the end: a broker gets nothing on a connection that it opened
            return
        try:
            while (data := await read_frame(reader)) is not None:
                self.receive(self.target, decode(data))
        except MalformedError as error:
            LOG.warning("broker %d: connection closed: %s", self.target, error)

    def _lose_all(self) -> None:
        while not self.queue.empty():
            self.queue.get_nowait()


@define(eq=False)
class Network:
    """The connections of one node."""

    # The id of this node.
    node: int
    # The brokers' client listeners if this node is a client, otherwise their inter-broker listeners.
    addresses: Mapping[int, Address]
    # Called with (source, message) for each message.
    receive: Callable[[int, Message], None]
    # Those of the cluster; without them no broker talks to another.
    credentials: Credentials | None = None
    # Called with (node id, message) for messages to connections of Kafka's protocol.
    answer_wire: Callable[[int, Message], None] | None = None
    # Connections closed because of a malformed frame or an illegal sender.
    refused: int = 0
    # The bounds on clients' frames.
    intake: Intake = field(factory=lambda: Intake(MAXIMUM_CLIENT_FRAME, MOST_UNFINISHED_BYTES))
    # The bounds on brokers' frames.
    peer_intake: Intake = field(factory=lambda: Intake(MAXIMUM_FRAME, 4 * MAXIMUM_FRAME))
    # The brokers that this node sends to.
    _peers: dict[int, Peer] = field(factory=dict)
    # The connections of clients, by node id.
    _clients: dict[int, asyncio.StreamWriter] = field(factory=dict)
    # The tasks of connections.
    _tasks: set["asyncio.Task[None]"] = field(factory=set)
    # The listening sockets.
    _servers: list[asyncio.Server] = field(factory=list)

    async def listen(self, host: str, port: int) -> int:
        """Accept clients.

        Args:
            host: the address to listen on.
            port: the port; 0: any free one.

        Returns:
            the port.
        """
        return await self._listen(host, port, self._client_accepted)

    async def listen_to_brokers(self, host: str, port: int) -> int:
        """Accept only the brokers of this cluster.

        Args:
            host: the address to listen on.
            port: the port; 0: any free one.

        Returns:
            the port.
        """
        return await self._listen(host, port, self._broker_accepted)

    async def _listen(self, host: str, port: int, accepted: Accepted) -> int:
        server = await asyncio.start_server(accepted, host, port)
        self._servers.append(server)
        bound: int = server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Close every connection and the listening socket."""
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def send(self, target: int, message: Message) -> None:
        """Send a message, or lose it."""
        if target >= FIRST_WIRE_CLIENT:
            if self.answer_wire is not None:
                self.answer_wire(target, message)
        elif target >= FIRST_CLIENT:
            self._send_to_client(target, message)
        elif target == self.node:
            asyncio.get_running_loop().call_soon(self.receive, target, message)
        elif target in self.addresses:
            if target not in self._peers:
                hello = self._hello()
                if hello is None:
                    return
                peer = self._peers[target] = Peer(
                    self.node, target, self.addresses[target], hello, self.receive
                )
                self._keep(asyncio.ensure_future(peer.run()))
            self._peers[target].send(encode(message))

    def _hello(self) -> bytes | None:
        if self.node >= FIRST_CLIENT:
            return greeting(self.node)
        return None if self.credentials is None else broker_greeting(self.node, self.credentials)

    def _send_to_client(self, target: int, message: Message) -> None:
        writer = self._clients.get(target)
        if writer is None:
            return
        writer.write(framed(encode(message)))
        waiting = writer.transport.get_write_buffer_size()
        if waiting > MAXIMUM_BUFFERED_BYTES:
            self._abort(target)
        elif waiting > BUFFERED_NOTICED:
            buffered = {each: one.transport.get_write_buffer_size() for each, one in self._clients.items()}
            if sum(buffered.values()) > MOST_BUFFERED_BYTES:
                self._abort(max(buffered, key=lambda each: buffered[each]))

    def _abort(self, client: int) -> None:
        LOG.warning("client %d does not read; its connection is closed", client)
        self._clients.pop(client).transport.abort()

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- incoming frames

    async def _client_accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._accepted(reader, writer, from_broker=False)

    async def _broker_accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._accepted(reader, writer, from_broker=True)

    async def _accepted(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, from_broker: bool
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._keep(task)
        source: int | None = None
        try:
            data = await asyncio.wait_for(read_frame(reader, MAXIMUM_GREETING), GREETING_S)
            if data is not None and from_broker:
                source = broker_of_greeting(data, self.credentials)
                await self._serve_broker(source, reader, writer)
            elif data is not None:
                source = client_of_greeting(data)
                if source >= FIRST_WIRE_CLIENT:
                    raise MalformedError(f"expected a node id below {FIRST_WIRE_CLIENT}, saw {source}")
                await self._serve_client(source, reader, writer)
        except TimeoutError:
            LOG.info(
                "%s: connection closed: no greeting within %.0f s", _peer_name(writer, source), GREETING_S
            )
        except MalformedError as error:
            self.refused += 1
            LOG.warning("%s: connection closed: %s", _peer_name(writer, source), error)
        except OSError as error:
            LOG.info("%s: connection lost: %s", _peer_name(writer, source), error)
        except asyncio.CancelledError:
            pass  # this node closes
        finally:
            if source is not None and self._clients.get(source) is writer:
                del self._clients[source]
            writer.close()

    async def _serve_client(
        self, source: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._clients[source] = writer
        while (data := await self.intake.frame(reader, writer.transport.abort)) is not None:
            message = decode(data)
            check_client(message)
            self.receive(source, message)

    async def _serve_broker(
        self, source: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while (data := await self.peer_intake.frame(reader, writer.transport.abort)) is not None:
            message = decode(data)
            check_broker(source, message)
            self.receive(source, message)


def _peer_name(writer: asyncio.StreamWriter, source: int | None) -> str:
    address = writer.get_extra_info("peername")
    return f"node {source} at {address}" if source is not None else f"somebody at {address}"

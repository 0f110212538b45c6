"""Messages over TCP: a listening socket, and one connection to each broker that we send to.

Owns connections, their queues and their end. Must not know the core: it hands (source, message) on. What a node sends to a broker travels on a
connection of its own making, in order; what it sends to a client goes back on the connection by which the client came. TCP may lose what was
sent when a connection breaks, so messages may be lost here too: a full queue, a broker that is down. The core's time-outs tell.

A malformed frame closes its connection, with the reason in the log, and nothing else.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.impl.core.broker_context import FIRST_CLIENT
from fencepost.impl.messages.broker_api import Message
from fencepost.impl.runtime.addresses import Address
from fencepost.impl.runtime.codec import MalformedError, decode, encode
from fencepost.impl.runtime.frames import MAXIMUM_FRAME, framed, greeting, read_frame, read_greeting

LOG = logging.getLogger("fencepost.network")
MAXIMUM_QUEUED_MESSAGES = 10_000
"""To one peer; further ones are lost, as the simulated host loses them."""
MAXIMUM_BUFFERED_BYTES = MAXIMUM_FRAME
"""To one client that does not read; then its connection is closed."""
CONNECT_S = 5.0
RETRY_S = 0.1


@define(eq=False)
class Peer:
    """A broker that we send to. receive(source, message): what it sends back, if we are a client; a broker is sent nothing back here.
    queue: encoded messages that wait for the connection or for room in it."""

    node: int
    target: int
    address: Address
    receive: Callable[[int, Message], None]
    queue: "asyncio.Queue[bytes]" = field(factory=lambda: asyncio.Queue(MAXIMUM_QUEUED_MESSAGES))

    def send(self, data: bytes) -> None:
        """Queue a message, or lose it."""
        with contextlib.suppress(asyncio.QueueFull):
            self.queue.put_nowait(data)

    async def run(self) -> None:
        """Connect when there is something to send, send, and begin again when the connection is lost."""
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
        closed.add_done_callback(lambda it: it.cancelled() or it.exception())  # how it closed is no news
        next_message: asyncio.Future[bytes] | None = None
        writer.write(greeting(self.node) + framed(first))
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
            await reader.read(1)  # the end: nothing is said to a broker on the connection that it opened
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
    """receive(source, message) takes what arrives. understands: the kinds of messages that the core takes. addresses: of the brokers.
    refused: connections closed for a malformed frame."""

    node: int
    addresses: Mapping[int, Address]
    receive: Callable[[int, Message], None]
    understands: Callable[[type], bool] = lambda kind: True
    refused: int = 0
    _peers: dict[int, Peer] = field(factory=dict)
    _clients: dict[int, asyncio.StreamWriter] = field(factory=dict)
    _tasks: set["asyncio.Task[None]"] = field(factory=set)
    _server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Accept connections; returns the port (port 0: any free one)."""
        self._server = await asyncio.start_server(self._accepted, host, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Close every connection and the listening socket."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def send(self, target: int, message: Message) -> None:
        """Send a message, or lose it."""
        if target >= FIRST_CLIENT:
            self._send_to_client(target, message)
        elif target == self.node:
            asyncio.get_running_loop().call_soon(self.receive, target, message)
        elif target in self.addresses:
            if target not in self._peers:
                peer = self._peers[target] = Peer(self.node, target, self.addresses[target], self.receive)
                self._keep(asyncio.ensure_future(peer.run()))
            self._peers[target].send(encode(message))

    def _send_to_client(self, target: int, message: Message) -> None:
        writer = self._clients.get(target)
        if writer is None:
            return
        writer.write(framed(encode(message)))
        if writer.transport.get_write_buffer_size() > MAXIMUM_BUFFERED_BYTES:
            LOG.warning("client %d does not read; its connection is closed", target)
            writer.transport.abort()

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- what comes in

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._keep(task)
        source: int | None = None
        try:
            source = await read_greeting(reader)
            if source is not None:
                await self._serve(source, reader, writer)
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

    async def _serve(self, source: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if source >= FIRST_CLIENT:
            self._clients[source] = writer
        while (data := await read_frame(reader)) is not None:
            message = decode(data)
            if not self.understands(type(message)):
                raise MalformedError(f"expected a message for a broker, saw {type(message).__name__}")
            self.receive(source, message)


def _peer_name(writer: asyncio.StreamWriter, source: int | None) -> str:
    address = writer.get_extra_info("peername")
    return f"node {source} at {address}" if source is not None else f"somebody at {address}"

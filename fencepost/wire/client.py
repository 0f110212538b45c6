"""The exact client on asyncio: connections to brokers of any Kafka, and a network of them for our own client
cores.

Owns sockets, TLS and the start of a connection (ApiVersions, SASL). Must not know what a request means.
As on all our networks a message may be lost: if a broker cannot be reached, or a connection breaks.
The sender has a time-out, and tries again.
"""

import asyncio
import contextlib
import logging
import secrets
import ssl
from collections.abc import Callable, Mapping
from typing import Any, cast

from attrs import define, field, frozen
from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.broker_api import Message, MetadataRequest, MetadataResponse, Request
from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.dialogue import CLIENT_ID, Dialogue
from fencepost.wire.frames import ProtocolError
from fencepost.wire.outward import TRANSLATIONS, is_answered
from fencepost.wire.sasl import PLAIN, login
from fencepost.wire.translation import Translation
from fencepost.wire.versions import SASL_AUTHENTICATE, SASL_HANDSHAKE

LOG = logging.getLogger("fencepost.wire.client")
CONNECT_S = 5.0
"""Longest wait for a TCP connection, and for each of its first requests."""
READ_BYTES = 256 * 1024
RETRY_S = 0.1
NONCE_BYTES = 16
MOST_QUEUED = 10_000
"""Requests that wait for one connection; further ones are lost, as on every network of ours."""
Address = tuple[str, int]


@frozen(kw_only=True)
class Access:
    """How to come in."""

    # None for plain TCP.
    tls: ssl.SSLContext | None = None
    # Of SASL; no user, no SASL.
    user: str = ""
    # PLAIN, or one of SCRAM.
    mechanism: str = PLAIN
    password: str = field(default="", repr=False)


@define(eq=False)
class Link:
    """One connection to one broker. After `open` the versions are agreed on and the client is logged in."""

    address: Address
    # TLS and login.
    access: Access = field(factory=Access)
    dialogue: Dialogue = field(factory=Dialogue)
    # Bytes of answers so far.
    received: int = 0
    # Answers that are awaited, by correlation id.
    _answers: "dict[int, asyncio.Future[Any]]" = field(factory=dict)
    _writer: asyncio.StreamWriter | None = None
    _reading: "asyncio.Task[None] | None" = None

    async def open(self) -> None:
        """Connect. Raises OSError, ProtocolError, EnvironmentError_ if the broker does not want us."""
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, self._writer = await asyncio.open_connection(
                    *self.address,
                    ssl=self.access.tls,
                    server_hostname=self.address[0] if self.access.tls else None,
                )
                self._reading = asyncio.ensure_future(self._read(reader))
                await self._send(*self.dialogue.ask_versions())
                if self.access.user:
                    await self._authenticate()
        except TimeoutError:
            await self.close()
            raise OSError(
                f"no answer of {self.address[0]}:{self.address[1]} within {CONNECT_S:.0f} s"
            ) from None
        except BaseException:
            await self.close()
            raise

    async def _authenticate(self) -> None:
        make, access = self.dialogue.make, self.access
        chosen = await self.ask(make(SASL_HANDSHAKE, mechanism=access.mechanism))
        tokens = login(access.mechanism, access.user, access.password, secrets.token_hex(NONCE_BYTES))
        token = next(tokens)
        while chosen.error_code is WireError.none:
            chosen = await self.ask(make(SASL_AUTHENTICATE, auth_bytes=token))
            if chosen.error_code is WireError.none:
                try:
                    token = tokens.send(chosen.auth_bytes)
                except StopIteration:
                    return
        raise EnvironmentError_(
            expected=f"a broker that lets {access.user} in by SASL/{access.mechanism}",
            seen=chosen.error_code.name.upper(),
            where=f"{self.address[0]}:{self.address[1]}",
        )

    async def ask(self, body: Any, *, answered: bool = True) -> Any:
        """Send a request and return its answer.

        body: the request, of kio's class; answered: False for a request without an answer, which returns
        None. Raises OSError if the connection breaks first."""
        number, data = self.dialogue.ask(body, answered=answered)
        if answered:
            return await self._send(number, data)
        assert self._writer is not None, "the link is open"
        self._writer.write(data)
        await self._writer.drain()
        return None

    async def _send(self, number: int, data: bytes) -> Any:
        assert self._writer is not None, "the link is open"
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        if self._reading is None or self._reading.done():
            self._break(ConnectionError("the connection is closed"))
        else:
            self._writer.write(data)
        try:
            return await answer
        finally:
            self._answers.pop(number, None)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        why: Exception = ConnectionError("the broker closed the connection")
        try:
            while data := await reader.read(READ_BYTES):
                self.received += len(data)
                for number, body in self.dialogue.receive(data):
                    answer = self._answers.get(number)
                    if answer is not None and not answer.done():
                        answer.set_result(body)
        except (OSError, ProtocolError) as error:
            why = error
        finally:
            self._break(why)

    def _break(self, why: Exception) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(why)

    def ended(self) -> "asyncio.Task[None]":
        """Done once the connection is."""
        assert self._reading is not None, "the link is open"
        return self._reading

    def drop(self) -> None:
        """End the connection at once, for its user to notice: `ended` is done soon."""
        if self._reading is not None:
            self._reading.cancel()

    async def close(self) -> None:
        """End the connection; requests without an answer fail with a connection error."""
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_S):  # wait_for loses a cancellation that comes at its end
                    await self._writer.wait_closed()


@define(eq=False)
class Lane:
    """Requests of one kind to one broker, in order, on a separate connection."""

    network: "KafkaNetwork"
    target: int
    # Seconds until a request without an answer ends the connection; None: it is waited for.
    patience_s: float | None = None
    queue: "asyncio.Queue[tuple[Translation, Request]]" = field(factory=lambda: asyncio.Queue(MOST_QUEUED))
    _asking: "set[asyncio.Task[None]]" = field(factory=set)

    async def run(self) -> None:
        """Connect when there is something to say, and again when the connection is lost."""
        while True:
            first = await self.queue.get()
            address = self.network.addresses.get(self.target)
            if address is None:
                continue
            link = Link(address, self.network.access, self.network.dialogue())
            try:
                await link.open()
                await self._use(link, first)
            except (OSError, ProtocolError) as error:
                LOG.info("%s:%d: %s", *address, error)
                await asyncio.sleep(RETRY_S)
            finally:
                await link.close()

    async def _use(self, link: Link, waiting: tuple[Translation, Request]) -> None:
        """Send requests as they come until the broker closes. Several requests may be in flight; a separate
        task delivers each answer."""
        while True:
            asking = asyncio.ensure_future(self._ask(link, *waiting))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
            following = asyncio.ensure_future(self.queue.get())
            try:
                await asyncio.wait((following, link.ended()), return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    raise ConnectionError("the broker closed the connection")
                waiting = following.result()
            finally:
                following.cancel()

    async def _ask(self, link: Link, translation: Translation, request: Request) -> None:
        try:
            body = translation.ask(link.dialogue, request)
            async with asyncio.timeout(self.patience_s):
                answer = await link.ask(body, answered=is_answered(request))
        except TimeoutError:
            link.drop()
            return
        except (OSError, ProtocolError) as error:
            LOG.info("%s:%d: %s is lost: %s", *link.address, type(request).__name__, error)
            return
        if isinstance(request, MetadataRequest):
            self.network.addresses.update(_addresses(answer))
        if answer is not None:
            self.network.receive(self.target, translation.tell(request, answer))


@define(eq=False)
class KafkaNetwork:
    """What impl/runtime's network is to our own brokers, this is to any Kafka: `send` to a broker by its id.
    receive(broker, message) takes the answers."""

    # Of the brokers, moved by each answer about metadata.
    addresses: dict[int, Address]
    receive: Callable[[int, Message], None]
    access: Access = field(factory=Access)
    # The highest version of an API that is spoken, by key.
    caps: Mapping[int, int] = field(factory=dict)
    # Seconds until a request without an answer ends its connection, as in Kafka's clients, by lane; in the
    # others it is waited for.
    patience_s: Mapping[str, float] = field(factory=dict)
    # Sent with every request.
    client_id: str = CLIENT_ID
    _lanes: dict[tuple[int, str], Lane] = field(factory=dict)
    _tasks: "list[asyncio.Task[None]]" = field(factory=list)

    def send(self, target: int, message: Message) -> None:
        """Send a request to a broker, or lose it. target: the broker's id."""
        translation = TRANSLATIONS.get(type(message))
        assert translation is not None, f"no way to say {type(message).__name__} in Kafka's protocol"
        place = (target, translation.lane)
        if place not in self._lanes:
            lane = self._lanes[place] = Lane(self, target, self.patience_s.get(translation.lane))
            self._tasks.append(asyncio.ensure_future(lane.run()))
        with contextlib.suppress(asyncio.QueueFull):
            self._lanes[place].queue.put_nowait((translation, cast(Request, message)))

    def dialogue(self) -> Dialogue:
        """Of a new connection."""
        return Dialogue(caps=self.caps, client_id=self.client_id)

    async def close(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _addresses(metadata: Any) -> dict[int, Address]:
    return {each.node_id: (each.host, each.port) for each in metadata.brokers}


async def look_around(
    bootstrap: tuple[Address, ...], access: Access
) -> tuple[dict[int, Address], MetadataResponse]:
    """The brokers that the first bootstrap server with an answer names, and all topics. Raises
    EnvironmentError_ if none of them answers."""
    reasons = []
    closed = False
    for address in bootstrap:
        link = Link(address, access)
        try:
            await link.open()
            asked = MetadataRequest(correlation_id=0)
            translation = TRANSLATIONS[MetadataRequest]
            async with asyncio.timeout(CONNECT_S):
                answer = await link.ask(translation.ask(link.dialogue, asked))
        except (OSError, ProtocolError) as error:
            reasons.append(f"{address[0]}:{address[1]}: {error or type(error).__name__}")
            closed = closed or (
                isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)
            )
            continue
        finally:
            await link.close()
        return _addresses(answer), translation.tell(asked, answer)
    raise EnvironmentError_(
        expected="a Kafka broker that answers",
        seen="; ".join(reasons),
        where="the bootstrap servers",
        hint="a listener that expects TLS or SASL closes such a connection: --tls-ca, --user"
        if closed
        else "",
    )

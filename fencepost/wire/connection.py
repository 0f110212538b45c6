"""One connection of a client, sans-IO: bytes in, requests of the core out; the core's answers in, bytes out.

Owns the order of answers and the bounds of one connection. Must not know sockets, the clock or what a request
means. Theory: one request at a time is carried out, as Kafka mutes a connection until its response is on the
way (SocketServer); so responses leave in the order of requests, batches of one producer are appended in the
order sent, and what waits, waits in the client's socket. Every request ends in one of three ways: an answer,
none because Kafka has none for it (acks=0), or the end of the connection.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field, frozen

from fencepost.impl.messages.broker_api import Message, Request
from fencepost.wire.apis.api_versions import unsupported
from fencepost.wire.codec import RequestHeader, read_request, read_request_header, write_response
from fencepost.wire.frames import FrameBuffer, ProtocolError, framed
from fencepost.wire.handling import BrokerView, Call, CloseConnection, Handling
from fencepost.wire.hook import (
    PASS,
    Cut,
    Delay,
    Drop,
    Half,
    Hold,
    Hook,
    Last,
    Pass,
    Replace,
    Silence,
    Verdict,
)
from fencepost.wire.limits import Limits
from fencepost.wire.sasl import Authentication
from fencepost.wire.versions import (
    API_VERSIONS,
    BEFORE_AUTHENTICATION,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
)

LOG = logging.getLogger("fencepost.wire")
READ_AHEAD = 64 * 1024
"""Bytes of later requests that are taken while one is carried out; further ones wait in the client's
socket."""


@frozen
class Submit:
    """Hand a request to the core."""

    message: Request


@frozen
class Write:
    """Send bytes to the client."""

    data: bytes


@frozen
class Wait:
    """Call `woken` after so many milliseconds."""

    milliseconds: int


@frozen
class HangUp:
    """End the client's side; what is under way goes on."""


@frozen
class Close:
    """End the connection; what was written still goes out."""

    # For the log.
    reason: str
    # The client is to blame.
    hostile: bool = False


Action = Submit | Write | Wait | HangUp | Close


@define(eq=False)
class Exchange:
    """The request in progress."""

    header: RequestHeader
    # kio's class.
    body: Any
    call: Call
    # The handler; None before it begins.
    handling: Handling | None = None
    # Requests to the core: correlation id -> position in `answers`.
    waiting: dict[int, int] = field(factory=dict)
    answers: list[Any] = field(factory=list)


@define(eq=False, kw_only=True)
class Connection:
    """One client's connection."""

    # Its id as a client of the core.
    source: int
    # The broker that owns the listener.
    broker: BrokerView
    # Request kinds that are answered, by API key.
    apis: Mapping[int, Api]
    # Limits of the listener.
    limits: Limits = field(factory=Limits)
    authentication: Authentication = field(factory=Authentication)
    # The hook between requests and answers; None: none.
    hook: Hook | None = None
    # Address of the client, without the port.
    client_host: str = ""
    # Nothing more is done.
    closed: bool = False
    # The client does not read, so no new request begins.
    blocked: bool = False
    # The client has closed. The first answer that it does not get ends the rest, as in Kafka's Selector.
    left: bool = False
    # A hook wants no more requests or answers.
    silent: bool = field(default=False, init=False)
    # Bytes that are not a whole frame yet.
    buffer: FrameBuffer = field(init=False)
    # The request in progress; None: none.
    _current: Exchange | None = field(default=None, init=False)
    _delayed: Callable[[list[Action]], None] | None = field(default=None, init=False)
    # The last correlation id given to a request to the core.
    _last_number: int = field(default=0, init=False)
    # Time without progress: since bytes came, a request began or an answer went.
    _silent_ms: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.buffer = FrameBuffer(self.limits.request_bytes)

    # ---- what the host calls; each returns what to do, in order

    def receive(self, data: bytes) -> list[Action]:
        """Bytes arrived."""
        if self.closed:
            return []
        self._silent_ms = 0 if self._current is None else self._silent_ms
        self.buffer.feed(data)
        return self.resume()

    def answered(self, message: Message) -> list[Action]:
        """The core answered. An answer to a request that has ended is ignored."""
        exchange, actions = self._current, list[Action]()
        place = None if exchange is None else exchange.waiting.pop(message.correlation_id, None)
        if exchange is not None and place is not None and not self.closed:
            exchange.answers[place] = message
            if not exchange.waiting:
                self._advance(exchange, exchange.answers, actions)
                self._pump(actions)
        return actions

    def woken(self) -> list[Action]:
        """A Wait is over."""
        actions: list[Action] = []
        delayed, self._delayed = self._delayed, None
        if delayed is not None and not self.closed:
            delayed(actions)
            self._pump(actions)
        return actions

    def resume(self) -> list[Action]:
        """The client reads again, or there may be something to begin."""
        actions: list[Action] = []
        self._pump(actions)
        return actions

    def tick(self, elapsed_ms: int) -> list[Action]:
        """Time has gone by."""
        if self.closed:
            return []
        self._silent_ms += elapsed_ms
        exchange = self._current
        if exchange is not None and self._delayed is None and not self.blocked and not self.silent:
            if self._silent_ms > exchange.call.patience_ms + self.limits.request_timeout_ms:
                return self._close(f"no answer of the core to {self._name(exchange.header)}")
        elif self._silent_ms > self.limits.idle_ms:
            return self._close(f"idle for {self._silent_ms // 1000} s")
        return []

    @property
    def reads(self) -> bool:
        """Whether more bytes are wanted: always while nothing is carried out, for the next request may be as
        large as it likes."""
        busy = self._current is not None or self.blocked
        return not self.closed and not (busy and (self.buffer.complete or len(self.buffer) >= READ_AHEAD))

    @property
    def idle(self) -> bool:
        """Nothing is under way, and no whole request waits."""
        return self.closed or self.silent or (self._current is None and not self.buffer.complete)

    # ---- one request after the other

    def _pump(self, actions: list[Action]) -> None:
        self._forget(actions)
        while self._current is None and not self.blocked and not self.closed and self.buffer.complete:
            try:
                frame = self.buffer.take()
                assert frame is not None
                self._silent_ms = 0
                self._begin(frame, actions)
            except ProtocolError as error:
                actions += self._close(str(error), hostile=True)
            self._forget(actions)

    def _forget(self, actions: list[Action]) -> None:
        """What a client left ends with the first answer to it."""
        if self.left and any(isinstance(each, Write) for each in actions):
            self.buffer.clear()

    def _begin(self, frame: bytes, actions: list[Action]) -> None:
        if self.authentication.raw:
            self._token(frame, actions)
            return
        header = read_request_header(frame)
        api = self.apis.get(header.api_key)
        if header.api_key == API_VERSIONS and api is not None and not api.speaks(header.version):
            actions.append(Write(write_response(header.correlation_id, unsupported(self.apis))))
            return
        if api is None or not api.speaks(header.version):
            raise ProtocolError(
                expected="an API and a version that ApiVersions lists",
                seen=f"API {header.api_key} version {header.version}",
                where="a request header",
            )
        if not self.authentication.done and header.api_key not in BEFORE_AUTHENTICATION:
            raise ProtocolError(
                expected="a SASL handshake",
                seen=f"{api.name} version {header.version}",
                where="a new connection",
            )
        try:
            body = read_request(header, frame, self.limits.elements)
        except ProtocolError as error:  # a mistake of a client is looked for by its request
            where = f"{self._name(header)}, {error.where}"
            raise ProtocolError(expected=error.expected, seen=error.seen, where=where) from None
        exchange = self._current = Exchange(header, body, self._call(header))
        verdict = PASS if self.hook is None else self.hook.on_request(self.source, header, body)
        self._judged_request(exchange, api, verdict, actions)

    def _call(self, header: RequestHeader) -> Call:
        return Call(
            header=header,
            broker=self.broker,
            limits=self.limits,
            numbers=self._next_number,
            authentication=self.authentication,
            apis=self.apis,
            client_host=self.client_host,
        )

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _token(self, token: bytes, actions: list[Action]) -> None:
        """SASL after a handshake of version 0: nothing but tokens, until the client is known (KIP-43)."""
        if self.authentication.authenticate(token):
            actions.append(Write(framed(b"")))
        else:
            actions += self._close("authentication failed", hostile=True)

    def _judged_request(self, exchange: Exchange, api: Api, verdict: Verdict, actions: list[Action]) -> None:
        if isinstance(verdict, Cut):
            actions += self._close("cut before a request")
        elif isinstance(verdict, Drop):
            self._current = None
        elif isinstance(verdict, Silence):
            self.silent = True
        elif isinstance(verdict, Delay | Hold):
            body = verdict.body if isinstance(verdict, Delay) else None
            self._delay(verdict.milliseconds, partial(self._go_on, exchange, api, body), actions)
            if isinstance(verdict, Hold) and verdict.ends:
                actions.append(HangUp())
        else:
            assert not isinstance(verdict, Half | Last), f"{verdict} on a request"
            self._go_on(exchange, api, verdict.body if isinstance(verdict, Replace) else None, actions)

    def _go_on(self, exchange: Exchange, api: Api, body: Any, actions: list[Action]) -> None:
        """Carry a request out; with another body, or with an answer in its place."""
        if body is not None and body.__type__.name == "response":
            self._send(exchange, body, actions)
            return
        if body is not None:
            exchange.body = body
        self._start(exchange, api, actions)

    def _start(self, exchange: Exchange, api: Api, actions: list[Action]) -> None:
        exchange.handling = api.handler(exchange.call, exchange.body)
        self._advance(exchange, None, actions)

    def _advance(self, exchange: Exchange, answers: list[Any] | None, actions: list[Action]) -> None:
        """Run the handler until it asks the core for something, or is done."""
        assert exchange.handling is not None
        try:
            asked = exchange.handling.send(answers)  # type: ignore[arg-type]  # None first
            while not asked:
                asked = exchange.handling.send([])
        except StopIteration as done:
            self._finished(exchange, done.value, actions)
        except CloseConnection as reason:
            actions += self._close(str(reason))
        except Exception:
            LOG.exception("a mistake in fencepost itself, at %s", self._name(exchange.header))
            actions += self._close(f"{self._name(exchange.header)} failed here")
        else:
            exchange.answers = [None] * len(asked)
            exchange.waiting = {each.correlation_id: place for place, each in enumerate(asked)}
            actions += [Submit(each) for each in asked]

    def _finished(self, exchange: Exchange, response: Any, actions: list[Action]) -> None:
        if response is None:
            self._current = None
            return
        verdict: Verdict = PASS
        if self.hook is not None:
            verdict = self.hook.on_answer(self.source, exchange.header, exchange.body, response)
        if isinstance(verdict, Cut):
            actions += self._close("cut before an answer")
        elif isinstance(verdict, Drop):
            self._current = None
        elif isinstance(verdict, Silence):
            self.silent = True
        else:
            assert not isinstance(verdict, Hold), f"{verdict} on an answer"
            given = None if isinstance(verdict, Pass | Last) else verdict.body
            send = partial(self._send, exchange, response if given is None else given, ends=verdict)
            if isinstance(verdict, Delay):
                self._delay(verdict.milliseconds, send, actions)
            else:
                send(actions)

    def _send(
        self, exchange: Exchange, response: Any, actions: list[Action], *, ends: Verdict = PASS
    ) -> None:
        """Send an answer. ends: Half or Last, which close the connection with it."""
        self._current, self._silent_ms = None, 0
        try:
            frame = write_response(exchange.header.correlation_id, response)
        except Exception:
            LOG.exception("an answer that cannot be written, to %s", self._name(exchange.header))
            actions += self._close(f"the answer to {self._name(exchange.header)} cannot be written")
            return
        if isinstance(ends, Half):
            frame = frame[: max(1, min(len(frame) - 1, len(frame) * ends.per_mille // 1000))]
        actions.append(Write(frame))
        if isinstance(ends, Half | Last):
            actions += self._close(
                "cut within an answer" if isinstance(ends, Half) else "cut after an answer"
            )
            return
        key, authentication = exchange.header.api_key, self.authentication
        refused = (key == SASL_HANDSHAKE and not authentication.mechanism) or (
            key == SASL_AUTHENTICATE and not authentication.done
        )
        if refused and not authentication.done:
            actions += self._close("authentication failed", hostile=True)

    def _delay(self, milliseconds: int, go_on: Callable[[list[Action]], None], actions: list[Action]) -> None:
        self._delayed = go_on
        actions.append(Wait(milliseconds))

    def _close(self, reason: str, *, hostile: bool = False) -> list[Action]:
        self.closed, self._current, self._delayed = True, None, None
        self.buffer.clear()
        return [Close(reason, hostile)]

    def _name(self, header: RequestHeader) -> str:
        return f"{self.apis[header.api_key].name} version {header.version}"

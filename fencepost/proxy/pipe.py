"""One connection of a client and the one that the proxy made to the broker for it, sans-IO: bytes of either
side in, bytes for the other side out.

Owns the order of answers, which frames are read, and what a verdict of the hook does. Must not know sockets,
the clock, or what is recorded. Theory: a broker answers the requests of a connection in their order, so that
the oldest request without an answer says how the next answer reads. A frame is read only if somebody wants to
know what is in it, and leaves as the bytes that came unless somebody changed it.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from attrs import define, field

from fencepost.proxy.chunks import Chunks
from fencepost.proxy.exchange import Action, Close, Exchange, Late, ToBroker, ToClient, Wait
from fencepost.proxy.proxied_cluster import Cluster
from fencepost.traces.errors import FencepostError
from fencepost.wire.codec import RequestHeader, write_request, write_response
from fencepost.wire.decoder import Places
from fencepost.wire.frames import ProtocolError
from fencepost.wire.hook import PASS, Cut, Delay, Drop, Half, Hold, Hook, Last, Replace, Silence, Verdict
from fencepost.wire.passing import (
    METADATA,
    PRODUCE,
    answer_body,
    answered_id,
    api_name,
    clamped,
    has_addresses,
    header_of,
    is_understood,
    request_body,
    rewritten,
    versions_read,
    versions_refused,
)
from fencepost.wire.versions import API_VERSIONS, SASL_HANDSHAKE

CREATE_TOPICS = 19
REQUEST_BYTES = 100 * 1024 * 1024
"""Of one request (socket.request.max.bytes)."""
ANSWER_BYTES = 256 * 1024 * 1024
"""Of one answer: fetch.max.bytes is 55 MiB, and clients may ask for more."""
MOST_PENDING = 10_000
"""Requests without an answer on one connection: a broker reads one at a time, clients send a handful ahead
(max.in.flight.requests.per.connection is 5, librdkafka's 1,000,000 is bounded by what the socket takes)."""
TOKENS = {"PLAIN": 1, "OAUTHBEARER": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2}
"""Tokens that a client sends after a handshake of version 0, which are no requests (KIP-43). GSSAPI says by
its own bytes when it is over."""
_ANY_NUMBER = 1 << 30
NANOSECONDS = 1_000_000
"""In a millisecond."""


class Watcher(Protocol):
    """Sees what passes. Called in the order of each connection; time in nanoseconds."""

    # APIs with requests and answers that it wants to read.
    wanted: frozenset[int]

    def asked(self, pipe: "Pipe", exchange: Exchange) -> None:
        """A request has come, and nothing of it has left for the broker.

        Args:
            pipe: the connection.
            exchange: the request.
        """

    def answered(self, pipe: "Pipe", exchange: Exchange, time: int) -> None:
        """The client was sent an answer, whole: `exchange.said`, None if nobody could read it.

        Args:
            pipe: the connection.
            exchange: the request.
            time: when the answer left, nanoseconds.
        """

    def lost(self, pipe: "Pipe", exchange: Exchange, time: int) -> None:
        """The client will not get an answer: the connection ended, or a hook took the request or the answer
        away.

        Args:
            pipe: the connection.
            exchange: the request.
            time: nanoseconds.
        """

    def closed(self, pipe: "Pipe", time: int, reason: str) -> None:
        """The connection ended.

        Args:
            pipe: the connection.
            time: nanoseconds.
            reason: in words.
        """


@define(eq=False, kw_only=True)
class Pipe:
    """What a connection knows."""

    # Of the connection, never used again.
    number: int
    cluster: Cluster
    # Where its broker is.
    broker: tuple[str, int]
    # Who has connected, for people.
    client: str
    now: Callable[[], int]
    watcher: Watcher | None = None
    hook: Hook | None = None
    # Whether requests that nobody here can read go to the broker all the same.
    pass_unknown: bool = False
    # Called for each of those.
    on_unread: Callable[["Pipe", RequestHeader], None] | None = None
    closed: bool = False
    # Whether a hook wants nothing more to be carried out or said.
    silent: bool = False
    # As its last request said.
    client_id: str | None = None
    requests: Chunks = field(init=False, factory=lambda: Chunks(REQUEST_BYTES))
    answers: Chunks = field(init=False, factory=lambda: Chunks(ANSWER_BYTES))
    # In the order of their requests; what has its answer leaves when it is the oldest.
    pending: deque[Exchange] = field(init=False, factory=deque)
    # Requests that wait because one before them is delayed.
    _held: deque[bytes] = field(init=False, factory=deque)
    # The delayed request, with its frame in `answer`.
    _delayed: Exchange | None = field(init=False, default=None)
    # When the delayed request leaves, also if its client has gone by then; 0: not without its client.
    _due: int = field(init=False, default=0)
    _answer_waits: bool = field(init=False, default=False)
    # Answers that are reported to the watcher once they have left, and when they did.
    _unreported: list[tuple[Exchange, int]] = field(init=False, factory=list)
    # Frames of the client that are tokens, not requests.
    _tokens: int = field(init=False, default=0)

    # ---- what the host calls; each returns what to do, in order; then `settle`

    def from_client(self, data: bytes) -> list[Action]:
        """Bytes of the client arrived."""
        if self.closed or self.silent:
            return []
        actions: list[Action] = []
        try:
            for frame in self.requests.feed(data):
                if self._delayed is not None:
                    self._hold(frame)
                elif not self.closed and not self.silent:
                    self._request(frame, actions)
        except FencepostError as error:
            self._close(actions, str(error), hostile="client")
        return actions

    def from_broker(self, data: bytes) -> list[Action]:
        """Bytes of the broker arrived."""
        if self.closed or self.silent:
            return []
        actions: list[Action] = []
        try:
            for frame in self.answers.feed(data):
                if not self.closed and not self.silent:
                    self._answer(frame, actions)
        except FencepostError as error:
            self._close(actions, str(error), hostile="broker")
        return actions

    def woken(self, side: str) -> list[Action]:
        """A Wait is over."""
        actions: list[Action] = []
        if self.closed or self.silent:
            return actions
        if side == "answers":
            self._answer_waits = False
            self.pending[0].delay_ms = 0
            self._release(actions)
            return actions
        delayed, self._delayed, self._due = self._delayed, None, 0
        try:
            if delayed is not None and delayed.answer is not None:
                frame, delayed.answer = delayed.answer, None
                self._forward(delayed, frame, actions)
            while self._held and self._delayed is None and not self.closed:
                self._request(self._held.popleft(), actions)
        except FencepostError as error:
            self._close(actions, str(error), hostile="client")
        return actions

    def late(self) -> Late | None:
        """The client's side is about to end: what was held back and leaves all the same; None for nothing.
        The watcher hears of it now."""
        if self.closed or self._delayed is None or not self._due:
            return None
        frames, milliseconds = [], max(0, self._due - self.now()) // NANOSECONDS
        assert self._delayed.answer is not None, "a delayed request has its frame"
        for exchange, frame in ((self._delayed, self._delayed.answer), *map(self._exchange, self._held)):
            actions: list[Action] = []
            exchange.answer = None
            self._forward(exchange, frame, actions)
            frames += [action.data for action in actions if isinstance(action, ToBroker)]
        self._delayed = None
        self._held.clear()
        return Late(tuple(frames), milliseconds)

    def _exchange(self, frame: bytes) -> tuple[Exchange, bytes]:
        """A request that nobody has judged."""
        header = header_of(frame)
        exchange = Exchange(header, self.now())
        if is_understood(header.api_key, header.version):
            exchange.body = request_body(header, frame)
        return exchange, frame

    def _watch_held(self) -> None:
        """The watcher hears of requests that wait behind a delayed one and will not leave."""
        for frame in self._held if self.watcher is not None else ():
            with suppress(FencepostError):  # what cannot be read is no request
                exchange, _ = self._exchange(frame)
                self._watch(exchange)
                self._lost(exchange)
        self._held.clear()

    def settle(self) -> None:
        """The actions of the last call are done: the watcher hears of the answers, which did not wait for
        it."""
        if self._unreported:
            answered, self._unreported = self._unreported, []
            assert self.watcher is not None
            for exchange, time in answered:
                self.watcher.answered(self, exchange, time)

    def ended(self, reason: str) -> None:
        """One of the sockets is closed: no answer comes any more."""
        if self.closed:
            return
        self.closed = True
        self._lose(reason)

    @property
    def buffered(self) -> int:
        """Bytes of frames that have not arrived whole, or wait."""
        return self.requests.size + self.answers.size + sum(map(len, self._held))

    # ---- requests

    def _hold(self, frame: bytes) -> None:
        if len(self._held) >= MOST_PENDING:
            raise ProtocolError(
                expected=f"at most {MOST_PENDING} requests ahead", seen="another one", where="a connection"
            )
        self._held.append(frame)

    def _request(self, frame: bytes, actions: list[Action]) -> None:
        if self._is_token(frame):
            self._tokens -= 1
            self.pending.append(Exchange(None, self.now()))
            actions.append(ToBroker(frame))
            return
        header = header_of(frame)
        self.client_id = header.client_id
        exchange = Exchange(header, self.now())
        if len(self.pending) >= MOST_PENDING:
            raise ProtocolError(
                expected=f"at most {MOST_PENDING} requests without an answer",
                seen="another one",
                where="a connection",
            )
        if not is_understood(header.api_key, header.version):
            self._unread(exchange, frame, actions)
            return
        key = header.api_key
        watched = self.watcher is not None and key in self.watcher.wanted
        if watched or self.hook is not None or key in (PRODUCE, SASL_HANDSHAKE):
            exchange.body = request_body(header, frame)
        verdict: Verdict = PASS
        if self.hook is not None:
            verdict = self.hook.on_request(self.number, header, exchange.body)
        if verdict is PASS:
            self._forward(exchange, frame, actions)
        else:
            self._judged(exchange, frame, verdict, actions)

    def _is_token(self, frame: bytes) -> bool:
        """Whether SASL after a handshake of version 0 is still under way."""
        if self._tokens < _ANY_NUMBER // 2:
            return self._tokens > 0
        try:
            header = header_of(frame)
        except ProtocolError:
            return True
        if is_understood(header.api_key, header.version):
            self._tokens = 0
            return False
        return True

    def _unread(self, exchange: Exchange, frame: bytes, actions: list[Action]) -> None:
        """A request of an API or a version that nobody here can read."""
        header = exchange.header
        assert header is not None
        exchange.readable = False
        if self.pass_unknown:
            if self.on_unread is not None:
                self.on_unread(self, header)
            self.pending.append(exchange)
            actions.append(ToBroker(frame))
        elif header.api_key == API_VERSIONS:
            exchange.answer = versions_refused(header.correlation_id)
            self.pending.append(exchange)
            self._release(actions)
        else:
            raise ProtocolError(
                expected="an API and a version that ApiVersions lists",
                seen=f"{api_name(header.api_key)} version {header.version}",
                where="a request header",
            )

    def _judged(self, exchange: Exchange, frame: bytes, verdict: Verdict, actions: list[Action]) -> None:
        header = exchange.header
        assert header is not None
        self._watch(exchange)
        if isinstance(verdict, Cut | Silence | Drop):
            self._lost(exchange)
        if isinstance(verdict, Cut):
            self._close(actions, "cut before a request", abrupt=True)
        elif isinstance(verdict, Silence):
            self._fall_silent()
        elif isinstance(verdict, Drop):
            pass
        elif isinstance(verdict, Hold):
            exchange.answer, self._delayed = frame, exchange
            self._due = self.now() + verdict.milliseconds * NANOSECONDS
            actions.append(
                Close("a request is held") if verdict.ends else Wait(verdict.milliseconds, "requests")
            )
        elif isinstance(verdict, Delay) and _is_answer(verdict.body):
            exchange.delay_ms = verdict.milliseconds
            self._answer_here(exchange, verdict.body, actions)
        elif isinstance(verdict, Delay):
            if verdict.body is not None:
                exchange.carried = verdict.body
                frame = write_request(header.correlation_id, header.client_id, verdict.body)
            exchange.answer, self._delayed = frame, exchange
            actions.append(Wait(verdict.milliseconds, "requests"))
        elif isinstance(verdict, Replace) and _is_answer(verdict.body):
            self._answer_here(exchange, verdict.body, actions)
        elif isinstance(verdict, Replace):
            exchange.carried = verdict.body
            changed = write_request(header.correlation_id, header.client_id, verdict.body)
            self._forward(exchange, changed, actions)
        else:
            self._forward(exchange, frame, actions)

    def _answer_here(self, exchange: Exchange, body: Any, actions: list[Action]) -> None:
        """The client gets this; the broker never sees the request."""
        header = exchange.header
        assert header is not None
        exchange.answer, exchange.said = write_response(header.correlation_id, body), body
        self.pending.append(exchange)
        self._release(actions)

    def _watch(self, exchange: Exchange) -> None:
        """The watcher hears of a request, once."""
        if self.watcher is not None and not exchange.watched:
            exchange.watched = True
            self.watcher.asked(self, exchange)

    def _lost(self, exchange: Exchange) -> None:
        """The client gets no answer to this request, which it would have got."""
        if self.watcher is not None and exchange.watched and exchange.has_answer:
            self.watcher.lost(self, exchange, self.now())

    def _fall_silent(self) -> None:
        self.silent = True
        self._lose("silenced", over=False)

    def _forward(self, exchange: Exchange, frame: bytes, actions: list[Action]) -> None:
        self._watch(exchange)
        if exchange.has_answer:
            self.pending.append(exchange)
        actions.append(ToBroker(frame))

    # ---- answers

    def _answer(self, frame: bytes, actions: list[Action]) -> None:
        exchange = self._answers_what(frame)
        header = exchange.header
        if header is None or not exchange.readable:
            exchange.answer = frame
            self._release(actions)
            return
        key, version = header.api_key, header.version
        watched = self.watcher is not None and key in self.watcher.wanted
        body = None
        if key == API_VERSIONS:
            frame = frame if self.pass_unknown else clamped(version, frame)
            body = versions_read(version, frame)
        elif has_addresses(key, version):
            frame, body = self._with_addresses(key, version, frame)
        elif watched or self.hook is not None or key in (SASL_HANDSHAKE, CREATE_TOPICS):
            body = answer_body(key, version, frame)
        if body is not None:
            self._learn(exchange, body)
        exchange.answer, exchange.broker_said, exchange.said = frame, body, body
        verdict: Verdict = PASS
        if self.hook is not None:
            verdict = self.hook.on_answer(self.number, header, exchange.carried or exchange.body, body)
        if verdict is not PASS:
            self._judged_answer(exchange, verdict, actions)
        if not self.closed and not self.silent:
            self._release(actions)

    def _with_addresses(self, key: int, version: int, frame: bytes) -> tuple[bytes, Any]:
        """The frame and its body as the client gets them."""
        places = Places()
        body = answer_body(key, version, frame, places)
        if not places.addresses:
            return frame, body
        frame = rewritten(key, version, frame, places, self.cluster.assign)
        return frame, answer_body(key, version, frame) if self.hook is not None else body

    def _answers_what(self, frame: bytes) -> Exchange:
        """The request that this answers. What comes before it and cannot be read has no answer: produce with
        acks=0."""
        number = None
        for exchange in self.pending:
            if exchange.answer is not None:
                continue
            if exchange.header is None:
                return exchange
            number = answered_id(frame) if number is None else number
            if exchange.header.correlation_id == number:
                while self.pending[0] is not exchange and not self.pending[0].readable:
                    if self.pending[0].answer is not None:
                        break
                    self.pending.popleft()
                return exchange
            if exchange.readable:
                break
        raise ProtocolError(
            expected=f"an answer to the oldest of {len(self.pending)} requests",
            seen=f"one to number {answered_id(frame)}",
            where="an answer",
        )

    def _learn(self, exchange: Exchange, body: Any) -> None:
        header = exchange.header
        assert header is not None
        if header.api_key in (METADATA, CREATE_TOPICS):
            self.cluster.learn_topics(body.topics)
        elif header.api_key == SASL_HANDSHAKE and header.version == 0 and body.error_code == 0:
            self._tokens = TOKENS.get(exchange.body.mechanism, _ANY_NUMBER)

    def _judged_answer(self, exchange: Exchange, verdict: Verdict, actions: list[Action]) -> None:
        """Do to the answer of this exchange what a hook wants."""
        header = exchange.header
        assert header is not None and exchange.answer is not None
        body = getattr(verdict, "body", None)
        if body is not None:
            exchange.answer, exchange.said = write_response(header.correlation_id, body), body
        if isinstance(verdict, Delay):
            exchange.delay_ms = verdict.milliseconds
        elif isinstance(verdict, Half):
            size = len(exchange.answer)
            share = max(1, min(size - 1, size * verdict.per_mille // 1000))
            exchange.answer, exchange.last = exchange.answer[:share], "half an answer"
            exchange.whole = False
        elif isinstance(verdict, Last):
            exchange.last = "cut after an answer"
        elif isinstance(verdict, Cut):
            self._close(actions, "cut before an answer", abrupt=True)
        elif isinstance(verdict, Silence):
            self._fall_silent()
        elif isinstance(verdict, Drop):
            self.pending.remove(exchange)
            self._lost(exchange)

    def _release(self, actions: list[Action]) -> None:
        """Send every answer that is the oldest and does not wait."""
        pending = self.pending
        while pending and pending[0].answer is not None and not self._answer_waits:
            if pending[0].delay_ms:
                self._answer_waits = True
                actions.append(Wait(pending[0].delay_ms, "answers"))
                return
            exchange = pending.popleft()
            assert exchange.answer is not None
            actions.append(ToClient(exchange.answer))
            if not exchange.whole:
                self._lost(exchange)
            elif self.watcher is not None and exchange.watched:
                self._unreported.append((exchange, self.now()))
            if exchange.last:
                self._close(actions, exchange.last)
                return

    # ---- the end

    def _close(self, actions: list[Action], reason: str, *, hostile: str = "", abrupt: bool = False) -> None:
        if not self.closed:
            self.closed = True
            self._lose(reason)
            actions.append(Close(reason, hostile, abrupt))

    def _lose(self, reason: str, *, over: bool = True) -> None:
        time = self.now()
        self.settle()
        self._watch_held()
        for exchange in self.pending if self._delayed is None else (*self.pending, self._delayed):
            self._lost(exchange)
        if self.watcher is not None and over:
            self.watcher.closed(self, time, reason)
        closed = getattr(self.hook, "closed", None) if over else None
        if closed is not None:
            closed(self.number)
        self.pending.clear()
        self.requests.clear()
        self.answers.clear()
        self._delayed = None


def _is_answer(body: Any) -> bool:
    """Whether a hook wants a client to get this, and its request not to leave."""
    return body is not None and body.__type__.name == "response"

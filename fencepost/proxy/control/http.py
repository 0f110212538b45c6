"""HTTP and JSON for a control port, sans-IO: bytes in, calls out; answers in, bytes out.

Owns requests, their bounds, the token and the words of refusals. Must not know sockets, or what a verb does.
h11 reads and writes HTTP.

    GET  /state            a verb without arguments
    POST /fault {"..."}    a verb with the arguments of a JSON object
    401 without `Authorization: Bearer TOKEN`; 404 for no verb; 400 and 409 with {"error": ...}; 413 beyond
    the bounds
"""

import hmac
from collections.abc import Collection
from typing import Any

import h11
import msgspec
from attrs import define, field, frozen

from fencepost.traces.errors import FencepostError

MOST_BODY = 64 * 1024
"""Bytes of a request's body: a script of faults fits in; nginx's client_body_buffer_size is 16k."""
MOST_HEADERS = 16 * 1024
"""Bytes of a request's headers: h11's own default, nginx's large_client_header_buffers are 8k each."""
OK, BAD_REQUEST, UNAUTHORIZED, NOT_FOUND, CONFLICT, TOO_LARGE, MISTAKE = 200, 400, 401, 404, 409, 413, 500
METHODS = ("GET", "POST")


@frozen
class Call:
    """A verb and its arguments."""

    verb: str
    arguments: dict[str, Any]


@define(eq=False)
class HttpConnection:
    """One connection. `receive` answers a call, to be answered by `answer`, or bytes to be sent."""

    verbs: Collection[str]
    token: str
    # Nothing more is read; what was answered still goes out.
    closed: bool = field(default=False, init=False)
    _http: h11.Connection = field(
        factory=lambda: h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADERS), init=False
    )
    _request: h11.Request | None = field(default=None, init=False)
    _body: bytearray = field(factory=bytearray, init=False)

    def receive(self, data: bytes) -> tuple[Call | None, bytes]:
        """Bytes of the client (none: it has ended): a call to carry out, and bytes to send."""
        self._http.receive_data(data)
        return self.more()

    def more(self) -> tuple[Call | None, bytes]:
        """What was received before and waits for the answer to the request before it."""
        if self.closed:
            return None, b""
        try:
            while True:
                event = self._http.next_event()
                if event in (h11.NEED_DATA, h11.PAUSED):
                    return None, b""
                if isinstance(event, h11.ConnectionClosed):
                    self.closed = True
                    return None, b""
                if isinstance(event, h11.Request):
                    self._request, self._body = event, bytearray()
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > MOST_BODY:
                        return None, self._refuse(TOO_LARGE, f"a body of at most {MOST_BODY} bytes")
                elif isinstance(event, h11.EndOfMessage):
                    return self._call()
        except h11.RemoteProtocolError as error:
            return None, self._refuse(error.error_status_hint, f"HTTP/1.1: {error}")

    def answer(self, value: Any) -> bytes:
        """The answer of a verb."""
        return self._respond(OK, value)

    def refuse(self, error: FencepostError) -> bytes:
        """A mistake of the caller, or what cannot be done now."""
        return self._respond(
            CONFLICT,
            {
                "error": str(error),
                "expected": error.expected,
                "seen": error.seen,
                "where": error.where,
                "hint": error.hint,
            },
        )

    def failed(self, words: str) -> bytes:
        """A mistake in fencepost itself."""
        return self._respond(MISTAKE, {"error": words})

    def _call(self) -> tuple[Call | None, bytes]:
        assert self._request is not None
        given = next((value for name, value in self._request.headers if name == b"authorization"), b"")
        if not hmac.compare_digest(given, b"Bearer " + self.token.encode()):
            return None, self._respond(
                UNAUTHORIZED, {"error": "expected the header Authorization: Bearer TOKEN"}
            )
        verb = self._request.target.decode("ascii").strip("/")
        method = self._request.method.decode("ascii")
        if method not in METHODS or verb not in self.verbs:
            known = ", ".join(f"/{name}" for name in sorted(self.verbs))
            return None, self._respond(NOT_FOUND, {"error": f"expected GET or POST of {known}"})
        try:
            arguments = msgspec.json.decode(bytes(self._body) or b"{}")
        except (msgspec.DecodeError, RecursionError):
            return None, self._respond(BAD_REQUEST, {"error": "expected a JSON object in the body"})
        if not isinstance(arguments, dict):
            return None, self._respond(BAD_REQUEST, {"error": "expected a JSON object in the body"})
        return Call(verb, arguments), b""

    def _refuse(self, status: int, expected: str) -> bytes:
        """Refuse what is no request; the connection ends, for nobody knows where the next request begins."""
        self.closed = True
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return b""
        return self._respond(status, {"error": f"expected {expected}"}, last=True)

    def _respond(self, status: int, value: Any, *, last: bool = False) -> bytes:
        body = msgspec.json.encode(value) + b"\n"
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        if last:
            headers.append(("connection", "close"))
        parts = [
            self._http.send(h11.Response(status_code=status, headers=headers)),
            self._http.send(h11.Data(data=body)),
            self._http.send(h11.EndOfMessage()),
        ]
        if self._http.our_state is h11.MUST_CLOSE:
            self.closed = True
        elif self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        return b"".join(part or b"" for part in parts)

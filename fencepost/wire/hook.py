"""The one place between a request and its answer where a hook may act: pass, replace, drop, delay, cut,
half an answer, silence, hold.

Owns the verdicts. Must not know who decides: nothing in wire/ does; proxy/faults/ does.
"""

from typing import Any, Protocol

from attrs import frozen

from fencepost.wire.codec import RequestHeader


@frozen
class Pass:
    """Continue without a change."""


@frozen
class Replace:
    """Continue with this body instead. As the answer to a request, a response class of kio: it is sent, and
    the core never sees the request."""

    body: Any


@frozen
class Drop:
    """A request is not carried out and has no answer; an answer is not sent, after its effect."""


@frozen
class Delay:
    """Continue after this time; later messages on the connection wait, too."""

    milliseconds: int
    # Continue with this body instead, as Replace does; None: unchanged.
    body: Any = None


@frozen
class Hold:
    """Only on a request: it is carried out after this time, with what came after it on its connection,
    also if the connection has ended by then."""

    milliseconds: int
    # Whether the client's side of the connection ends now.
    ends: bool = False


@frozen
class Cut:
    """Close the connection: before the request is carried out, or after its effect and before its answer."""


@frozen
class Half:
    """Only on an answer: send this share of its bytes, at least one and never all, then close the
    connection."""

    per_mille: int
    # The body to send instead of the answer's; None: the answer's own.
    body: Any = None


@frozen
class Last:
    """Only on an answer: send it whole, then close the connection."""


@frozen
class Silence:
    """A request is not carried out, or an answer is not sent, and nothing more is carried out or said on this
    connection, which stays open until its client closes it or it was idle for too long."""


Verdict = Pass | Replace | Drop | Delay | Hold | Cut | Half | Last | Silence
PASS = Pass()


class Hook(Protocol):
    """Called with each decoded request and with each answer, in their order on the connection. source: the
    connection."""

    def on_request(self, source: int, header: RequestHeader, body: Any) -> Verdict:
        """A request was decoded and is not yet carried out. body: kio's class."""
        ...

    def on_answer(self, source: int, header: RequestHeader, body: Any, answer: Any) -> Verdict:
        """The request was carried out; `answer` was not sent yet."""
        ...

"""The one place where somebody may come between a request and its answer: pass, replace, drop, delay, cut.

Owns the verdicts. Must not know who decides: nothing in wire/ does; the proxy and fault injection will.
"""

from typing import Any, Protocol

from attrs import frozen

from fencepost.wire.codec import RequestHeader


@frozen
class Pass:
    """Go on as if nobody had looked."""


@frozen
class Replace:
    """Go on with this body instead. In answer to a request, a response class of kio: it is sent, and the core
    never sees the request."""

    body: Any


@frozen
class Drop:
    """A request is not carried out and has no answer; an answer is not sent, after its effect."""


@frozen
class Delay:
    """Go on after this time; what comes later on the connection waits, too."""

    milliseconds: int
    body: Any = None
    """Go on with this body; None: as it was."""


@frozen
class Half:
    """Send this share of an answer's bytes, at least one and never all, then close the connection."""

    per_mille: int


@frozen
class Last:
    """Send this answer, then close the connection."""


@frozen
class Silence:
    """The connection stays open, and nothing more is carried out or said on it."""


@frozen
class Cut:
    """Close the connection: before the request is carried out, or after its effect and before its answer."""


Verdict = Pass | Replace | Drop | Delay | Half | Last | Silence | Cut
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

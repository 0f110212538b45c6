"""The words between a pipe and its host: what to do, and a request with its answer.

Owns no behaviour. Must not know bytes' meaning.
"""

from typing import Any

from attrs import define, frozen

from fencepost.wire.codec import RequestHeader
from fencepost.wire.passing import PRODUCE, api_name


@frozen
class ToBroker:
    """Send bytes to the broker."""

    data: bytes


@frozen
class ToClient:
    """Send bytes to the client."""

    data: bytes


@frozen
class Wait:
    """Call `woken(side)` after so many milliseconds."""

    milliseconds: int
    # Requests or answers.
    side: str


@frozen
class Close:
    """End both connections."""

    # For the log.
    reason: str
    # Who sent what nobody can read, "" for nobody.
    hostile: str = ""
    # What was written and has not left does not leave any more.
    abrupt: bool = False


@frozen
class Late:
    """Frames that go to the broker so many milliseconds later, after the client's side has ended."""

    frames: tuple[bytes, ...]
    milliseconds: int


Action = ToBroker | ToClient | Wait | Close


@define(eq=False)
class Exchange:
    """A request, until its answer has left."""

    # None for a token of SASL.
    header: RequestHeader | None
    # When the request arrived whole.
    time: int
    # As kio's class, as the client sent it; None if nobody wanted to know.
    body: Any = None
    # What leaves for the broker in place of `body`; None: `body`.
    carried: Any = None
    # Whether the watcher has heard of the request.
    watched: bool = False
    # Whatever the watcher has put there.
    note: Any = None
    # Whether its answer can be read.
    readable: bool = True
    # What goes to the client, once it is known.
    answer: bytes | None = None
    # The broker's answer; None if there is none, or nobody could read it.
    broker_said: Any = None
    # The answer as it goes to the client; the broker's own unless a hook made another.
    said: Any = None
    # Whether `answer` is all of it.
    whole: bool = True
    # How long the answer waits.
    delay_ms: int = 0
    # Why the connection ends after the answer.
    last: str = ""

    @property
    def has_answer(self) -> bool:
        """Whether a broker answers it: everything but produce with acks=0."""
        key = None if self.header is None else self.header.api_key
        return key != PRODUCE or self.body is None or self.body.acks != 0

    @property
    def by_hook(self) -> bool:
        """Whether the answer is not the broker's own."""
        return self.said is not self.broker_said

    @property
    def name(self) -> str:
        """For a log: "fetch 12"."""
        return "a token" if self.header is None else f"{api_name(self.header.api_key)} {self.header.version}"

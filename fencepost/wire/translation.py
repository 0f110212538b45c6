"""What the translation of a request consists of, and errors in the core's words: what the two halves of our
clients' translation (outward.py, outward_transactions.py) have in common.

Owns the shape. Must not know any request.
"""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from fencepost.traces.outcomes import ErrorCode
from fencepost.wire.dialogue import Dialogue

_ERRORS = {code.value.lower(): code for code in ErrorCode}

Ask = Callable[[Dialogue, Any], Any]
"""ask(dialogue, the core's request) -> kio's request at the version agreed on."""
Tell = Callable[[Any, Any], Any]
"""tell(the core's request, kio's response) -> the core's response."""


@frozen
class Translation:
    """ask, tell: translate a request and its answer. lane: requests of one lane share a connection, and the
    broker carries them out one after the other."""

    ask: Ask
    tell: Tell
    lane: str = "any"


def error_of(code: Any) -> ErrorCode:
    """kio's error in the core's words; UNKNOWN_SERVER_ERROR for one that the core has no word for."""
    return _ERRORS.get(code.name, ErrorCode.UNKNOWN_SERVER_ERROR)

"""Reasons on the wire. Owns their bound: a reason may quote what the client sent, and a string has 32,767
bytes at most."""

from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

MOST_CHARACTERS = 1_000
"""An error message may quote what a client sent; the protocol's string ends at 32,767."""


def sentence(error: ErrorCode, message: str) -> str | None:
    """The reason of an error, None where there is no error or no reason."""
    if error is NO_ERROR or not message:
        return None
    return message if len(message) <= MOST_CHARACTERS else message[: MOST_CHARACTERS - 3] + "..."

"""What every request and response has. Owns the correlation id and the error. Must not know any message."""

from msgspec import Struct

from fencepost.traces.kafka_names.outcomes import ErrorCode


class Correlated(Struct, frozen=True, kw_only=True, gc=False):
    """A request, or a response without an error of its own."""

    # Of the request; the response repeats it.
    correlation_id: int


class Answered(Correlated, frozen=True, kw_only=True, gc=False):
    """A response."""

    # NONE if there is none.
    error: ErrorCode

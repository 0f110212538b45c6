"""Times of a client's clock, which records carry, in the trace's time.

Owns the conversion of answers by time. Must not know clients. Each client of a run has a clock of its own:
the wall's when it was made, and from then on the steady one of the machine, as the trace's. So the distance
of the two is constant, and as large for all clients unless the wall's clock was set meanwhile.
"""

from collections.abc import Iterable

import msgspec
from attrs import evolve

from fencepost.traces.operations import BY_TIME, ByTime, Operation

MILLISECOND = 1_000_000
ROUNDED_MS = 1
"""A stamp is whole milliseconds of its clock, and is rounded again in the trace's time."""


def in_trace_time(operation: Operation, ahead: int, all_ahead: Iterable[int]) -> Operation:
    """An operation with the times of its result in the trace's time.

    Args:
        operation: of a client; one that is no answer by time stays as it is.
        ahead: how much this client's clock is ahead of the trace's, nanoseconds.
        all_ahead: of all clients, one of which made the record; at least of this one.
    """
    if operation.argument != BY_TIME or not operation.result:
        return operation
    answer = msgspec.json.decode(operation.result, type=ByTime)
    known = tuple(all_ahead)
    apart = -(-(max(known) - min(known)) // MILLISECOND)
    converted = msgspec.structs.replace(
        answer,
        from_ms=_converted(answer.from_ms, ahead),
        timestamp_ms=_converted(answer.timestamp_ms, ahead) if answer.offset >= 0 else answer.timestamp_ms,
        within_ms=ROUNDED_MS + apart,
    )
    return evolve(operation, result=msgspec.json.encode(converted).decode())


def _converted(time_ms: int, ahead: int) -> int:
    return (time_ms * MILLISECOND - ahead) // MILLISECOND

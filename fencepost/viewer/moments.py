"""The moments of a trace: protocol events, invocations and answers in one order. A step of the viewer's
slider is one moment.

Owns the order. Must not know what is drawn. What says only how people call records, or is about an
application's whole run, is no moment.

Intervals are closed, so that of equal times an invocation comes first and an answer last; events keep the
order of the trace.
"""

from enum import IntEnum

from attrs import frozen

from fencepost.checkers.application.recorded import HEADERS
from fencepost.traces.events import Name
from fencepost.traces.trace import Trace


class Kind(IntEnum):
    """What happens at a moment; the order of equal times."""

    INVOKE = 0
    EVENT = 1
    ANSWER = 2


@frozen
class Moment:
    """time: nanoseconds of the trace. index: of the event, or of the operation, in its trace."""

    time: int
    kind: Kind
    index: int


@frozen(kw_only=True)
class Moments:
    """all: in order, a step each. event: the step of each event, -1 for texts of records. invoke, answer: the
    steps of each operation, -1 if it has none."""

    all: tuple[Moment, ...]
    event: tuple[int, ...]
    invoke: tuple[int, ...]
    answer: tuple[int, ...]


def moments_of(trace: Trace) -> Moments:
    """Every moment of `trace`.

    Returns: the moments, and the position of each event and operation among them.
    """
    found = [
        Moment(event.time, Kind.EVENT, index)
        for index, event in enumerate(trace.events)
        if event.name is not Name.RECORD_TEXTS
        and not (event.name is Name.APPLICATION and event.cause in HEADERS)
    ]
    for index, operation in enumerate(trace.operations):
        found.append(Moment(operation.invoke_time, Kind.INVOKE, index))
        if operation.completion_time is not None:
            found.append(Moment(operation.completion_time, Kind.ANSWER, index))
    found.sort(key=lambda moment: (moment.time, moment.kind, moment.index))
    steps = {
        Kind.EVENT: [-1] * len(trace.events),
        Kind.INVOKE: [-1] * len(trace.operations),
        Kind.ANSWER: [-1] * len(trace.operations),
    }
    for step, moment in enumerate(found):
        steps[moment.kind][moment.index] = step
    return Moments(
        all=tuple(found),
        event=tuple(steps[Kind.EVENT]),
        invoke=tuple(steps[Kind.INVOKE]),
        answer=tuple(steps[Kind.ANSWER]),
    )

"""What the tests of the streaming form share: a trace as it happens, and how its findings are compared."""

from fencepost.checkers.log.streaming.merge import Moment
from fencepost.traces.trace import Trace

CIRCLES = ("circular_reads_in_real_time", "circular_reads_in_process", "circular_reads")
"""The weakest first: each implies those before it."""


def moments(trace: Trace) -> list[Moment]:
    """Invocations and completions in the order of time."""
    rows = [Moment.of(op, completes=False) for op in trace.operations]
    rows += [Moment.of(op, completes=True) for op in trace.operations if op.completion_time is not None]
    return sorted(rows, key=lambda moment: moment[:4])


def strongest(check: str, named: list[str]) -> set[str]:
    """What a judge of the whole trace says: of circles the first kind that it has."""
    return {max(named, key=CIRCLES.index)} if check == "transactions" and named else set(named)

"""Client operations as lanes, one per process: who was doing what at the same time.

Owns: which operations are drawn, and the drawing. Must not know models or how a finding came about.

Time runs downwards, a row per invocation or completion; a lane shows the operation that its process has in
flight. Convicting operations are drawn with double lines and marked. A long history is cut to the
neighbourhood of those.
"""

from collections.abc import Collection

from fencepost.checkers.verdict import Finding
from fencepost.report.event_words import printable
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

MOST_ROWS = 60
WIDEST = 22
"""Columns of a lane."""


def operation_words(operation: Operation) -> str:
    """An operation in a few words: what was asked, and what came back."""
    asked = ", ".join(text for text in (operation.key, operation.argument) if text is not None)
    answer = {Outcome.UNKNOWN: " -> ?", Outcome.FAIL: " failed"}.get(operation.outcome, "")
    if not answer and operation.result is not None:
        answer = f" -> {operation.result}"
    return printable(f"{operation.function.value}({asked}){answer}", 80)


def excluded_words(trace: Trace, finding: Finding) -> str:
    """A line for each failed operation that would explain the finding had it happened; "" if there is none.

    Args:
        trace: the history.
        finding: of it.
    """
    by_id = {operation.op_id: operation for operation in trace.operations}
    return "\n".join(
        f"  had it happened, operation {op_id} would explain this: {operation_words(by_id[op_id])}"
        + (f" ({printable(by_id[op_id].error or '', 80)})" if by_id[op_id].error else "")
        + "; a time-out is no failure"
        for op_id in finding.excluded
    )


def _drawn(trace: Trace, convicting: Collection[int]) -> list[Operation]:
    """The convicting operations, and of those that overlap them as many as there is room for."""
    chosen = [operation for operation in trace.operations if operation.op_id in convicting]
    ends = [o.completion_time if o.completion_time is not None else o.invoke_time for o in chosen]
    if chosen:
        first, last = min(o.invoke_time for o in chosen), max(ends)
        around = [
            o
            for o in trace.operations
            if o.op_id not in convicting
            and o.invoke_time <= last
            and (o.completion_time is None or o.completion_time >= first)
        ]
        around.sort(key=lambda o: -o.invoke_time)
        chosen += around[: max(0, MOST_ROWS // 2 - len(chosen))]
    return sorted(chosen, key=lambda o: (o.invoke_time, o.op_id))


def process_lanes(trace: Trace, convicting: Collection[int] = ()) -> str:
    """The drawing, as text without colours; "" where there is nothing to draw. Without convicting operations:
    the last ones."""
    drawn = _drawn(trace, convicting) if convicting else list(trace.operations[-MOST_ROWS // 2 :])
    if not drawn:
        return ""
    processes = sorted({operation.process for operation in drawn})
    moments: list[tuple[int, int, Operation]] = []
    for operation in drawn:
        moments.append((operation.invoke_time, 0, operation))
        if operation.completion_time is not None:
            moments.append((operation.completion_time, 1, operation))
    moments.sort(key=lambda moment: (moment[0], moment[1], moment[2].op_id))
    open_: dict[int, Operation] = {}
    lines = ["      " + "".join(f"process {process}".ljust(WIDEST) for process in processes).rstrip()]
    for _, end, operation in moments:
        marked = operation.op_id in convicting
        open_[operation.process] = operation
        lanes = []
        for process in processes:
            current = open_.get(process)
            if current is operation:
                corner = ("╚═" if marked else "└─") if end else ("╔═" if marked else "┌─")
                words = f" op {operation.op_id}" if end else f" {operation_words(operation)}"
                lanes.append(f"{corner}{words}")
            else:
                lanes.append("" if current is None else "║" if current.op_id in convicting else "│")
        lines.append(f"{'>>>' if marked else '':<6}{_columns(lanes)}")
        if end:
            del open_[operation.process]
    return "\n".join(lines)


def _columns(lanes: list[str]) -> str:
    """Lanes next to each other; a text that is too long moves the following columns as little as possible."""
    line = ""
    for index, lane in enumerate(lanes):
        if lane:
            line = line.ljust(index * WIDEST)
            line = line + (" " if len(line) > index * WIDEST else "") + lane
    return line

"""Which operations may be in a cycle: all others need no graph.

Owns the bound. Must not know which cycles are violations.

Each node has a height: its end plus the error of clocks if it ended for certain, else its beginning. An edge
of time leads from a node that ended before another began, so it leads upwards. If every read leads upwards
too, there is no cycle. A read that does not (its writer ended after its reader, as where two transactions
overlap) spans the heights from its reader to its writer. Every node of a cycle lies within such a span of the
cycle: on its way back to its own height the cycle passes it downwards, and only such reads lead downwards.

So nodes outside of all spans are in no cycle, and leaving them out loses none. This sorts no nodes: in a
history without such reads it is one comparison for each record that was read.
"""

import numpy as np

from fencepost.checkers.kafka.relations import OK
from fencepost.checkers.operation_columns import NEVER, Array, OperationColumns


def clock_errors(operations: OperationColumns) -> Array:
    """For each row by how much later its end counts: times of different clocks have the error that the trace
    claims. This also applies if both times are of one clock, which loses edges and adds none."""
    uncertain = np.array([trace.claims.clock_uncertainty_ns for trace in operations.traces], np.int64)
    return 2 * uncertain[operations.trace] if uncertain.any() else np.zeros(len(operations.op_id), np.int64)


def may_be_cyclic(operations: OperationColumns, source: Array, target: Array) -> Array:
    """The rows that may be in a cycle of reads and of time.

    Args:
        operations: the rows.
        source, target: the reads, from the writer to the reader, as rows.

    Returns:
        for each row whether it may be; a row with an end before its beginning makes its whole trace suspect.
    """
    ended = (operations.outcome == OK) & (operations.completion_time != NEVER)
    height = np.where(ended, operations.completion_time, operations.invoke_time)
    if any(trace.claims.clock_uncertainty_ns for trace in operations.traces):
        height[ended] += clock_errors(operations)[ended]
    found = np.zeros(len(height), np.bool_)
    down = height[source] >= height[target]
    if down.any():
        _within(operations.trace, height, source[down], target[down], found)
    wrong = height < operations.invoke_time
    if wrong.any():
        found |= np.isin(operations.trace, operations.trace[wrong])
    return found


def _within(trace: Array, height: Array, source: Array, target: Array, found: Array) -> None:
    """Mark the rows within the span of any of these reads, both ends included."""
    heights = np.unique(np.concatenate((height[source], height[target])))
    width = 2 * len(heights) + 1

    def place(rows: Array) -> Array:
        """A number that orders by trace and by height among the ends of spans; between two of them too."""
        rank = np.searchsorted(heights, height[rows], "left") + np.searchsorted(
            heights, height[rows], "right"
        )
        return trace[rows].astype(np.int64) * width + rank

    begin, end = place(target), place(source)
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])  # a later trace has larger numbers
    rows = np.flatnonzero(np.isin(trace, trace[source]))
    mine = place(rows)
    before = np.searchsorted(begin, mine, side="right") - 1
    found[rows] = (before >= 0) & (reach[before] >= mine)

"""How much of a history happened at the same time: without that, no race can have been met.

Owns the count of overlapping pairs, and when an Ok means nothing. Must not know models.

A pair counts if two processes worked on one key (of a log: one partition) at the same time, and both know
that it happened. An operation of unknown outcome is left out: it may have happened at any later time, so it
overlaps everything and says nothing about how the clients ran.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from attrs import evolve

from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

Interval = tuple[int, int]


def overlapping_pairs(operations: Iterable[Operation]) -> int:
    """Pairs of successful operations of different processes on one key that overlap. Intervals are closed.
    O(n log n)."""
    keys: dict[Any, list[Interval]] = defaultdict(list)
    own: dict[Any, list[Interval]] = defaultdict(list)
    for operation in operations:
        if operation.outcome is Outcome.OK and operation.completion_time is not None:
            interval = operation.invoke_time, operation.completion_time
            key = operation.topic, operation.partition, operation.key
            keys[key].append(interval)
            own[key, operation.process].append(interval)
    return sum(map(_pairs, keys.values())) - sum(map(_pairs, own.values()))


def _pairs(intervals: list[Interval]) -> int:
    """Pairs that overlap: all pairs but those of which one ends before the other begins."""
    ends = sorted(end for _, end in intervals)
    apart = sum(bisect_left(ends, begin) for begin, _ in intervals)
    return len(intervals) * (len(intervals) - 1) // 2 - apart


def strong_enough(trace: Trace, verdict: Verdict, minimum_overlap: int = 0) -> Verdict:
    """The verdict of a history; Assumption broken in place of Ok where none of its operations succeeded, or
    too few overlapped."""
    if verdict.decision is not Decision.OK:
        return verdict
    reason = ""
    if not any(operation.outcome is Outcome.OK for operation in trace.operations):
        reason = (
            f"none of the {len(trace.operations)} recorded operations succeeded: the history proves nothing"
        )
    elif minimum_overlap and (pairs := overlapping_pairs(trace.operations)) < minimum_overlap:
        reason = f"{pairs} pairs of operations overlapped, where at least {minimum_overlap} were asked for"
    return evolve(verdict, decision=Decision.ASSUMPTION_BROKEN, reason=reason) if reason else verdict

"""How much of a history was concurrent. A history without concurrency cannot show a race; one with too much
of it may stay undecided.

Owns the count of overlapping pairs, when an Ok has no meaning, and where a history is widest. Must not know
models.

A pair counts if two processes worked on one key (in a log: on one partition) at the same time, and both
operations succeeded. An operation with an unknown outcome is left out. It may have happened at any later
time, so it overlaps everything and says nothing about the concurrency of the clients.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from attrs import evolve

from fencepost.checkers.linearizability.linearizability_judge import Judged
from fencepost.checkers.verdict import Decision, Verdict, nothing_succeeded
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

Interval = tuple[int, int]
MOST_NAMED = 8
"""Operations that are named at the widest place."""
HELP = "what helps: docs/how-to/undecided.md"


def overlapping_pairs(operations: Iterable[Operation]) -> int:
    """The number of overlapping pairs of successful operations of different processes on one key. Intervals
    are closed. O(n log n)."""
    keys: dict[Any, list[Interval]] = defaultdict(list)
    own: dict[Any, list[Interval]] = defaultdict(list)
    for operation in operations:
        if operation.outcome is Outcome.OK and operation.completion_time is not None:
            interval = operation.invoke_time, operation.completion_time
            key = operation.topic, operation.partition, operation.key
            keys[key].append(interval)
            own[key, operation.process].append(interval)
    return sum(map(_pairs, keys.values())) - sum(map(_pairs, own.values()))


def widest_in_words(operations: Iterable[Operation]) -> str:
    """Where most operations were under way at once. One with an unknown outcome is under way to the end.

    Args:
        operations: of a history.

    Returns:
        a clause that counts and names them, those that were invoked last first.
    """
    counted = [operation for operation in operations if operation.outcome is not Outcome.FAIL]
    moments = [(one.invoke_time, 0, one) for one in counted]
    moments += [(one.completion_time or 0, 1, one) for one in counted if _ends(one)]
    moments.sort(key=lambda moment: moment[:2])  # closed intervals: at equal times the invocation comes first
    at_once: dict[int, Operation] = {}
    widest: list[Operation] = []
    for _, ends, one in moments:
        if ends:
            at_once.pop(one.op_id, None)
            continue
        at_once[one.op_id] = one
        if len(at_once) > len(widest):
            widest = list(at_once.values())
    unknown = sum(not _ends(one) for one in widest)
    named = ", ".join(str(one.op_id) for one in reversed(widest[-MOST_NAMED:]))
    more = ", ..." if len(widest) > MOST_NAMED else ""
    return (
        f"at most {len(widest)} operations were under way at once, {unknown} of them of unknown outcome: "
        f"{named}{more}"
    )


def _ends(operation: Operation) -> bool:
    return operation.outcome is Outcome.OK and operation.completion_time is not None


def _pairs(intervals: list[Interval]) -> int:
    """The number of overlapping pairs: all pairs minus those in which one operation ends before the other
    begins."""
    ends = sorted(end for _, end in intervals)
    apart = sum(bisect_left(ends, begin) for begin, _ in intervals)
    return len(intervals) * (len(intervals) - 1) // 2 - apart


def strong_enough(trace: Trace, judged: Judged, minimum_overlap: int = 0) -> Verdict:
    """Replace Ok by Assumption broken if no operation succeeded, if the model looked at none, or if too few
    operations overlapped. Say of Unknown where the history is widest, and what helps.

    Args:
        trace: the history.
        judged: the checker's verdict and counts.
        minimum_overlap: the number of overlapping pairs that an Ok needs; 0 turns this check off.

    Returns:
        the verdict to report.
    """
    verdict, reason = judged.verdict, ""
    if verdict.decision is Decision.UNKNOWN and verdict.reason:
        return evolve(verdict, reason=f"{verdict.reason}; {widest_in_words(trace.operations)}; {HELP}")
    if verdict.decision is not Decision.OK:
        return verdict
    if not any(operation.outcome is Outcome.OK for operation in trace.operations):
        reason = nothing_succeeded(len(trace.operations))
    elif not judged.operations:
        reason = (
            f"the model looked at none of the {len(trace.operations)} recorded operations: its `call` "
            "returned None for each"
        )
    elif minimum_overlap and (pairs := overlapping_pairs(trace.operations)) < minimum_overlap:
        reason = f"{pairs} pairs of operations overlapped, where at least {minimum_overlap} were asked for"
    return evolve(verdict, decision=Decision.ASSUMPTION_BROKEN, reason=reason) if reason else verdict

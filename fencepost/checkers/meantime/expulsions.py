"""JUSTIFIED: a member that waits for its coordinator is not silent.

Owns a part of needless_expulsion: a JoinGroup or SyncGroup that waits cannot be followed by a heartbeat, so
its member's session does not end meanwhile. rebalances.py asks for the reason of an expulsion that makes a
stable group rebalance, in a calm of a session and a poll. Here nothing need be calm before the request, and
the group may be in any state. Reads operations, of single traces.
"""

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.calm import is_asked, row_ns
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.checkers.meantime.rebalances import SILENT, is_prompt
from fencepost.checkers.meantime.retries import DISTURBING, disturbances_of
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace

UNKNOWN_MEMBER = "UNKNOWN_MEMBER_ID"
BETWEEN = 4
"""Messages between two requests of a member that joins: the answer, SyncGroup, and as many again. A session
that is shorter may end between them."""


def judge_expulsions(findings: Findings, trace: Trace, options: Options) -> None:
    """Look for members that were forgotten while they waited.

    Args:
        findings: where a finding goes; at most one is kept for each partition.
        trace: the operations and events.
        options: those of the plan.
    """
    session = options.consumer.session_timeout_ms * MILLISECOND
    if not is_asked(options.network) or not is_prompt(options) or row_ns(options.network, BETWEEN) > session:
        return
    waited = [one for one in trace.operations if _was_refused_late(one, session)]
    if not waited:
        return
    disturbances = disturbances_of(trace.events, DISTURBING | {Name.GROUPS_LOADED, Name.IMPLEMENTATION_ERROR})
    began = next(
        (event.time for event in trace.events if event.name is Name.PHASE and event.cause == "safety"), 0
    )
    for one in waited:
        end = one.completion_time
        assert end is not None
        moved = any(
            move.function in SILENT
            and move.process == one.process
            and one.invoke_time - session <= began + move.at_ms * MILLISECOND <= end
            for move in options.operations
        )
        if moved or disturbances.within(one.invoke_time, end):
            continue
        findings.add(
            "needless_expulsion",
            expected=f"member {one.member} of group {one.group} to stay: it waited for its coordinator, and "
            f"nothing was broken",
            seen=f"{UNKNOWN_MEMBER} after {(end - one.invoke_time) // MILLISECOND} ms; its session is "
            f"{options.consumer.session_timeout_ms} ms",
            topic=one.topic,
            partition=-1 if one.partition is None else one.partition,
            operations=(one.op_id,),
        )


def _was_refused_late(one: Operation, session: int) -> bool:
    """Whether a member was forgotten after it had waited for as long as its session."""
    return (
        one.function is Function.JOIN
        and one.error == UNKNOWN_MEMBER
        and bool(one.member)
        and one.completion_time is not None
        and one.completion_time - one.invoke_time >= session
    )

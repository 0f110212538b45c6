"""Operations that are left out because they failed, and that would explain a finding had they happened.

Owns the question and its bounds. Must not know how a search works. A client that takes a time-out for a
failure records `fail` for what may have happened, and a later read of its value convicts a correct system.
So each failed operation is put back, with an unknown outcome, next to the proof; what resolves the
contradiction is named. The verdict stays: the history says that it did not happen.
"""

from collections.abc import Callable

from attrs import evolve

from fencepost.checkers.linearizability.history import asked_of, split
from fencepost.checkers.models.base import Model
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

MOST_TRIED = 64
"""Failed operations that are tried for a finding, the latest ones before its proof ends first: each costs a
search of the part."""
MOST_NAMED = 3
"""Failed operations that are named."""


def would_explain(
    trace: Trace, model: Model, finding: Finding, legal: Callable[[Trace], bool]
) -> tuple[int, ...]:
    """The failed operations each of which resolves the contradiction of a finding by having happened.

    Args:
        trace: the history.
        model: the sequential model.
        finding: of this trace and model.
        legal: whether a history is certainly legal; of few operations, or False if that takes too long.

    Returns:
        op ids, at most MOST_NAMED, the latest first.
    """
    failed = [one for one in trace.operations if one.outcome is Outcome.FAIL]
    proof = set(finding.operations)
    part = next(
        (part for part in split(model, trace).values() if proof <= {one.operation.op_id for one in part}),
        None,
    )
    if not failed or part is None:
        return ()
    ids = {one.operation.op_id for one in part}
    others = [one if one.op_id in proof else _unknown(one) for one in trace.operations if one.op_id in ids]
    end = max(one.completion_time or one.invoke_time for one in others if one.op_id in proof)
    before = sorted((one for one in failed if one.invoke_time <= end), key=lambda one: -one.invoke_time)
    found: list[int] = []
    for one in before[:MOST_TRIED]:
        again = _unknown(one)
        if asked_of(model, again) is None:
            continue
        if legal(evolve(trace, operations=(*others, again))):
            found.append(one.op_id)
        if len(found) == MOST_NAMED:
            break
    return tuple(found)


def _unknown(operation: Operation) -> Operation:
    """The operation as if nothing was heard of its end."""
    return evolve(
        operation, outcome=Outcome.UNKNOWN, completion_time=None, result=None, offset=None, error=None
    )

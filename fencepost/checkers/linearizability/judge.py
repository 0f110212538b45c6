"""The verdict of a trace against a sequential model.

Owns the order of the work: contradictions, then each part, then what its findings say. Must not know how a search goes.
"""

from collections.abc import Callable

from attrs import frozen

from fencepost.checkers.linearizability.engine import Answer, search
from fencepost.checkers.linearizability.explain import explain
from fencepost.checkers.linearizability.history import arrays_of, split
from fencepost.checkers.linearizability.limits import Guard, LimitReached, Limits
from fencepost.checkers.linearizability.table import ModelError, Table
from fencepost.checkers.models.base import Model
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.errors import FencepostError
from fencepost.traces.trace import Trace

CHECK = "linearizability"


@frozen(kw_only=True)
class Judged:
    """A verdict with its counts. operations: those that count; parts: the history split into so many; steps, nodes: tried and remembered."""

    verdict: Verdict
    operations: int = 0
    parts: int = 0
    steps: int = 0
    nodes: int = 0


def judge_trace(trace: Trace, model: Model, limits: Limits | None = None) -> Verdict:
    """Is this trace linearizable with respect to `model`? Raises ModelError for a model that raises, nothing for bad traces."""
    return judge_counted(trace, model, limits).verdict


def judge_counted(trace: Trace, model: Model, limits: Limits | None = None) -> Judged:
    """As `judge_trace`, with counts."""
    if trace.claims.assumption_broken:
        return _broken(trace.claims.assumption_broken)
    guard = Guard(limits or Limits())
    uncertain = trace.claims.clock_uncertainty_ns
    several_clocks = uncertain > 0 and len({operation.clock_id for operation in trace.operations}) > 1
    try:
        judged = _under(guard, lambda: _judge(trace, model, guard, uncertain if several_clocks else 0))
        if several_clocks and judged.verdict.decision is Decision.OK:
            strict = _under(guard, lambda: _judge(trace, model, guard, 0))
            if strict.verdict.decision is not Decision.OK:
                reason = "illegal by the stamps alone, legal within the clocks' uncertainty"
                return _unknown(strict.verdict.reason or reason)
        return judged
    except ModelError:
        raise
    except FencepostError as error:
        return _broken(str(error))


def _under(guard: Guard, work: Callable[[], Judged]) -> Judged:
    """Run under a watchdog; a limit that is met is Unknown."""
    try:
        with guard.watching():
            return work()
    except (LimitReached, MemoryError) as error:
        return _unknown(guard.reached or str(error) or "memory ran out")


def _judge(trace: Trace, model: Model, guard: Guard, widen: int) -> Judged:
    parts = split(model, trace, widen)
    table = Table(model)
    findings: list[Finding] = []
    reason = ""
    steps = nodes = 0
    for name, part in parts.items():
        try:
            arrays = arrays_of(part, table)
            outcome = search(arrays, table, guard)
        except (LimitReached, MemoryError) as error:
            reason = guard.reached or str(error) or "memory ran out"
            break
        steps, nodes = steps + outcome.steps, nodes + outcome.nodes
        if outcome.answer is Answer.ILLEGAL:
            findings.append(explain(arrays, outcome, table, guard, name))
    decision = Decision.ILLEGAL if findings else Decision.UNKNOWN if reason else Decision.OK
    verdict = Verdict(decision=decision, check=CHECK, findings=tuple(findings), reason=reason)
    return Judged(
        verdict=verdict,
        operations=sum(len(part) for part in parts.values()),
        parts=len(parts),
        steps=steps,
        nodes=nodes,
    )


def _broken(reason: str) -> Judged:
    return Judged(verdict=Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=reason))


def _unknown(reason: str) -> Judged:
    return Judged(verdict=Verdict(decision=Decision.UNKNOWN, check=CHECK, reason=reason))

"""The verdict on a trace with respect to a sequential model.

Owns the order of the work: contradictions within the trace, parts that are certainly legal, every other part,
and the findings. Must not know how a search works.
"""

from collections.abc import Callable
from functools import partial

from attrs import define, evolve, field, frozen

from fencepost.checkers.linearizability.convict import explain_decided
from fencepost.checkers.linearizability.deciders import decide
from fencepost.checkers.linearizability.excluded import would_explain
from fencepost.checkers.linearizability.explain import bare_finding, explain
from fencepost.checkers.linearizability.history import Asked, arrays_of, split
from fencepost.checkers.linearizability.interned_steps import ModelError, Table, mistake_of
from fencepost.checkers.linearizability.limits import Guard, LimitReached, SearchLimits
from fencepost.checkers.linearizability.screen import KERNELS as SCREEN
from fencepost.checkers.linearizability.screen import STEPS, fits, screened
from fencepost.checkers.linearizability.search_engine import SearchAnswer, search
from fencepost.checkers.models.base import Model
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.errors import FencepostError
from fencepost.traces.trace import Trace

CHECK = "linearizability"
EXPLAINED_NODES = 1 << 14
"""Configurations of a search that asks whether one failed operation would explain a finding: some
milliseconds. No time limit, so that a crowded machine names the same operations."""
MOST_EXPLAINED = 3
"""Findings for which failed operations are tried."""
UNWATCHED = 10_000
"""Up to this many operations, screening takes milliseconds and runs without a watchdog."""


@frozen(kw_only=True)
class Judged:
    """A verdict with counts of the work."""

    # The verdict on the whole trace.
    verdict: Verdict
    # The operations that count.
    operations: int = 0
    # The number of independent parts of the history.
    parts: int = 0
    # Steps that the search tried.
    steps: int = 0
    # Configurations that the search remembered.
    nodes: int = 0
    # Parts that needed no search, because their values are unambiguous.
    decided: int = 0


@define
class _Progress:
    """The results so far. A limit that interrupts the work leaves them intact."""

    # One finding for each illegal part so far.
    findings: list[Finding] = field(factory=list)
    # Why some part is undecided; "" if every part is decided.
    open: str = ""
    # The operations that count.
    operations: int = 0
    # The number of independent parts.
    parts: int = 0
    # Steps that the search tried.
    steps: int = 0
    # Configurations that the search remembered.
    nodes: int = 0
    # Parts that needed no search.
    decided: int = 0

    def judged(self) -> Judged:
        """The verdict. One illegal part makes the whole trace illegal, even if other parts are undecided."""
        decision = Decision.ILLEGAL if self.findings else Decision.UNKNOWN if self.open else Decision.OK
        return Judged(
            verdict=Verdict(decision=decision, check=CHECK, findings=tuple(self.findings), reason=self.open),
            operations=self.operations,
            parts=self.parts,
            steps=self.steps,
            nodes=self.nodes,
            decided=self.decided,
        )


@frozen
class _Way:
    """The options of a check: see `judge_counted`."""

    shrink: bool
    deciders: bool
    screens: bool


def judge_trace(trace: Trace, model: Model, limits: SearchLimits | None = None) -> Verdict:
    """Decide whether a trace is linearizable with respect to a model.

    Args:
        trace: the history.
        model: the sequential model.
        limits: time, memory and nodes of the search. The verdict is Unknown if one is reached first.

    Returns:
        the verdict. A malformed trace gives a verdict, not an exception.

    Raises:
        ModelError: if the model raises, or if its states cannot be compared.
    """
    return judge_counted(trace, model, limits).verdict


def judge_counted(
    trace: Trace,
    model: Model,
    limits: SearchLimits | None = None,
    *,
    shrink: bool = True,
    deciders: bool = True,
) -> Judged:
    """As `judge_trace`, with counts of the work.

    Args:
        trace: the history.
        model: the sequential model.
        limits: time, memory and nodes of the search.
        shrink: find a minimal proof. Otherwise a finding names all operations of its part.
        deciders: use the special deciders for parts that they support. Otherwise the general search decides
            everything.

    Returns:
        the verdict and its counts.

    Raises:
        ModelError: if the model raises, or if its states cannot be compared.
    """
    if trace.claims.assumption_broken:
        return _broken(trace.claims.assumption_broken)
    if fits(model) and SCREEN.due(STEPS * len(trace.operations)):
        SCREEN.get_ready()
    guard = Guard(limits or SearchLimits(), at_once=False)
    way = _Way(shrink=shrink, deciders=deciders, screens=deciders)
    uncertain = trace.claims.clock_uncertainty_ns
    several_clocks = uncertain > 0 and len({operation.clock_id for operation in trace.operations}) > 1
    try:
        judged = _guarded(trace, model, guard, uncertain if several_clocks else 0, way)
        if shrink and judged.verdict.findings:
            judged = _with_excluded(trace, model, judged)
        if several_clocks and judged.verdict.decision is Decision.OK:
            strict = _guarded(trace, model, guard, 0, evolve(way, shrink=False))
            if strict.verdict.decision is not Decision.OK:
                reason = (
                    strict.verdict.reason
                    or "illegal by the stamps alone, legal within the clocks' uncertainty"
                )
                verdict = Verdict(decision=Decision.UNKNOWN, check=CHECK, reason=reason)
                return evolve(strict, verdict=verdict)
        return judged
    except ModelError:
        raise
    except FencepostError as error:
        return _broken(str(error))
    except (Exception, SystemExit) as error:
        mistake = mistake_of(model, error)
        if mistake is None:
            raise
        raise mistake from error


def _with_excluded(trace: Trace, model: Model, judged: Judged) -> Judged:
    """Name the failed operations that would explain the first findings."""

    def legal(history: Trace) -> bool:
        again = judge_counted(history, model, SearchLimits(nodes=EXPLAINED_NODES), shrink=False)
        return again.verdict.decision is Decision.OK

    findings = list(judged.verdict.findings)
    for number, finding in enumerate(findings[:MOST_EXPLAINED]):
        findings[number] = evolve(finding, excluded=would_explain(trace, model, finding, legal))
    return evolve(judged, verdict=evolve(judged.verdict, findings=tuple(findings)))


def _guarded(trace: Trace, model: Model, guard: Guard, widen: int, way: _Way) -> Judged:
    """Run under a watchdog. If a limit is reached, the open parts are Unknown and earlier findings stay."""
    progress = _Progress()
    try:
        if way.deciders and len(trace.operations) <= UNWATCHED:
            trace, way = _screened(trace, model, widen, progress), evolve(way, screens=False)
            if not trace.operations:
                return progress.judged()
        guard.watch(lambda: _judge(trace, model, guard, widen, way, progress))
    except (LimitReached, MemoryError) as error:
        progress.open = guard.reached or str(error) or "memory ran out"
    return progress.judged()


def _screened(trace: Trace, model: Model, widen: int, progress: _Progress) -> Trace:
    """The trace without the parts that are certainly legal."""
    sure = screened(model, trace, widen)
    if sure is None:
        return trace
    progress.parts = progress.decided = sure.parts
    progress.operations = sure.operations
    return sure.rest


def _judge(trace: Trace, model: Model, guard: Guard, widen: int, way: _Way, progress: _Progress) -> None:
    trace = _screened(trace, model, widen, progress) if way.screens else trace
    parts = split(model, trace, widen)
    progress.parts += len(parts)
    progress.operations += sum(len(part) for part in parts.values())
    table = Table(model)
    for name, part in parts.items():
        decided = decide(model, part) if way.deciders else None
        explained = _search(part, table, guard, progress, name) if decided is None else None
        if decided is not None:
            progress.decided += 1
            if decided.convicting:
                explained = partial(explain_decided, part, decided, Table(model), guard, name)
        if explained is not None:
            progress.findings.append(bare_finding(part, model, name))
            if way.shrink:
                try:
                    progress.findings[-1] = explained()
                except LimitReached:
                    if guard.reached:
                        raise
                    # only the time for the explanation is used up: keep the bare finding and go on with the
                    # other parts


def _search(
    part: list[Asked], table: Table, guard: Guard, progress: _Progress, name: str
) -> Callable[[], Finding] | None:
    """Search a part. Returns None if it is linearizable, otherwise a function that explains why it is not."""
    table.lens = table.model.lens(
        [one.call for one in part]
    )  # calls and steps of one part are independent of those of the others
    arrays = arrays_of(part, table)
    outcome = search(arrays, table, guard)
    progress.steps += outcome.steps
    progress.nodes += outcome.nodes
    if outcome.answer is SearchAnswer.ILLEGAL:
        return partial(explain, arrays, outcome, table, guard, name)
    return None


def _broken(reason: str) -> Judged:
    return Judged(verdict=Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=reason))

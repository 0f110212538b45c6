"""The question of shrinking: does this plan still show the anomaly?

Owns: which anomaly that is, how a candidate is run and judged, and the memory of what was asked before. Must
not know what candidates there are.

The anomaly of a trace is the one of lowest rank in the table of anomalies: a candidate whose name is another
one shows another bug, or another face of the same one, and is refused. The judge that found the anomaly is
asked first, because most candidates fail there.
"""

import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

from attrs import define, field, frozen

from fencepost.checkers.judges import DEFAULT_CHECKS, checks_by_name, guarded
from fencepost.checkers.verdict import Decision, Finding, Verdict, combine
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace


class OutOfTimeError(Exception):
    """The limit of time is met. Never leaves `shrink`."""


@frozen(kw_only=True)
class Target:
    """What must remain."""

    anomaly: str
    # Judges to ask, the one that found it first.
    checks: tuple[str, ...] = DEFAULT_CHECKS
    # It is enough that the anomaly is among the findings; otherwise it has to be the name of the trace.
    among: bool = False

    def shown_by(self, trace: Trace) -> bool:
        """Whether a trace shows it."""
        verdicts: list[Verdict] = []
        for check in checks_by_name(self.checks):
            verdicts.append(guarded(check, trace))
            if not any(finding.anomaly == self.anomaly for one in verdicts for finding in one.findings):
                if check.name == self.checks[0]:
                    return False
            elif self.among:
                return True
        return combine(tuple(verdicts)).anomaly == self.anomaly

    def shown_by_plan(self, plan: Plan) -> bool:
        """Whether the plan's run shows it. A plan that asks for something impossible, or whose run breaks
        down, does not."""
        try:
            return self.shown_by(run(plan))
        except Exception:  # as in a campaign: a run that raises has not shown anything
            return False


@frozen(kw_only=True)
class ShownAnomaly:
    """A plan's run and what is wrong with it: finding is the one that the target is about."""

    trace: Trace
    target: Target
    finding: Finding


def target_of(
    plan: Plan,
    *,
    anomaly: str = "",
    checks: tuple[str, ...] | None = None,
    expected: str = "",
    where: str = "the plan to shrink",
) -> ShownAnomaly:
    """Run the plan, and say which anomaly shrinking has to keep: the trace's name, or the one asked for.

    expected: the anomaly that an earlier run of the same plan showed. Raises FencepostError if there is none,
    or not the one that is asked for.
    """
    asked = checks or DEFAULT_CHECKS
    trace = run(plan)
    verdicts = tuple(guarded(check, trace) for check in checks_by_name(asked))
    together = combine(verdicts)
    name = anomaly or expected or together.anomaly or ""
    findings = [finding for finding in together.findings if finding.anomaly == name]
    if not findings or (expected and not anomaly and together.anomaly != expected):
        raise FencepostError(
            expected=f"a run that shows {name or 'an anomaly'}",
            seen=_seen(together),
            where=where,
            hint="`fencepost replay` shows the run; is a planted bug missing?",
        )
    found_by = next(verdict.check for verdict in verdicts if findings[0] in verdict.findings)
    target = Target(
        anomaly=name,
        checks=(found_by, *(check for check in asked if check != found_by)),
        among=bool(anomaly) and together.anomaly != anomaly,
    )
    return ShownAnomaly(trace=trace, target=target, finding=findings[0])


def _seen(verdict: Verdict) -> str:
    """A verdict as what was seen instead."""
    if verdict.anomaly is not None:
        names = sorted({finding.anomaly for finding in verdict.findings})
        return f"{verdict.anomaly} (all: {', '.join(names)})" if len(names) > 1 else verdict.anomaly
    if verdict.decision is Decision.OK:
        return "a run that all checks found ok"
    return f"{verdict.decision.value} ({verdict.reason})"


class Oracle(Protocol):
    """Answers for many candidates at once."""

    target: Target
    # Candidates that were run and judged.
    runs: int

    def first(self, candidates: Sequence[Plan]) -> int | None:
        """The place of the first candidate that shows the target, None if none does. Raises
        OutOfTimeError."""
        ...


def key_of(plan: Plan) -> bytes:
    """Equal for equal plans."""
    return blake2b(plan_to_json(plan).encode(), digest_size=16).digest()


@define(eq=False, kw_only=True)
class InProcess:
    """Runs candidates here, one after another."""

    target: Target
    # From now on, None for no limit.
    seconds: float | None = None
    runs: int = field(default=0, init=False)
    # Answers so far.
    known: dict[bytes, bool] = field(factory=dict, init=False)
    started: float = field(factory=time.monotonic, init=False)

    def first(self, candidates: Sequence[Plan]) -> int | None:
        """See Oracle."""
        for place, plan in enumerate(candidates):
            key = key_of(plan)
            if key not in self.known:
                if self.seconds is not None and time.monotonic() - self.started > self.seconds:
                    raise OutOfTimeError
                self.runs += 1
                self.known[key] = self.target.shown_by_plan(plan)
            if self.known[key]:
                return place
        return None

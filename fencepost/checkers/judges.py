"""The table of checks: what each is called, who judges, and what it reads.

Owns: names of checks, the default ones, and that a judge answers with a verdict whatever the trace is like. Must not know:
how any judge works, where traces are stored.

The plain checker, campaigns and mining all judge through this table, so that they cannot disagree on which judges there are.
Judges are imported on first use, because some of them compile.
"""

from collections.abc import Callable

from attrs import evolve, frozen

from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.errors import FencepostError
from fencepost.traces.trace import Trace

PROFILES = ("default", "session", "strong", "content")
"""What may be asked of a log in real time (LOG_CHECK); a trace's claims name one."""


def _log(trace: Trace) -> Verdict:
    from fencepost.checkers.log import judge_trace

    return judge_trace(trace)


def _invariants(trace: Trace) -> Verdict:
    from fencepost.checkers.invariants import judge as judge_events

    return judge_events(trace)


def _conformance(trace: Trace) -> Verdict:
    from fencepost.checkers.conformance import judge as judge_events

    return judge_events(trace)


@frozen(kw_only=True)
class Check:
    """One check. judge: of one whole trace; reads_operations, reads_events: what it looks at beside the trace's own row."""

    name: str
    judge: Callable[[Trace], Verdict]
    reads_operations: bool
    reads_events: bool


CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check(name="log", judge=_log, reads_operations=True, reads_events=False),
        Check(name="invariants", judge=_invariants, reads_operations=False, reads_events=True),
        Check(name="conformance", judge=_conformance, reads_operations=False, reads_events=True),
    )
}
DEFAULT_CHECKS = ("log", "invariants", "conformance")


def checks_by_name(names: tuple[str, ...]) -> tuple[Check, ...]:
    """The checks called so, in that order. Raises FencepostError for a name that is none."""
    for name in names:
        if name not in CHECKS:
            raise FencepostError(
                expected=f"checks out of {', '.join(CHECKS)}", seen=repr(name), where="the list of checks"
            )
    return tuple(CHECKS[name] for name in names)


def under_profile(trace: Trace, profile: str | None) -> Trace:
    """The trace claiming another profile of the log check; None leaves its own. Raises FencepostError."""
    if profile is None:
        return trace
    if profile not in PROFILES:
        raise FencepostError(
            expected=f"a profile out of {', '.join(PROFILES)}",
            seen=repr(profile),
            where="the profile of the log check",
        )
    return evolve(trace, claims=evolve(trace.claims, check=profile))


def guarded(check: Check, trace: Trace) -> Verdict:
    """The verdict of one check; a trace that the judge cannot make sense of is Assumption broken, not an exception."""
    try:
        return check.judge(trace)
    except FencepostError as error:
        return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=check.name, reason=str(error))


def judge(trace: Trace, checks: tuple[str, ...] = DEFAULT_CHECKS) -> tuple[Verdict, ...]:
    """One verdict per check, in the order of `checks`. Raises FencepostError only for an unknown check."""
    return tuple(guarded(check, trace) for check in checks_by_name(checks))

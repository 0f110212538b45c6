"""What becomes of one mutant: runs of the swarm, judged, until something convicts it.

Owns the outcomes and the bounds of a run. The process that calls this is the mutant's alone: its module is
replaced before anything imports it. Must not know which mutants there are, nor keep results.
"""

import signal
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from types import FrameType

RUN_CPU_S = 20.0
"""Processor time of one run: a healthy one takes a tenth of a second to a second, whatever its seed."""
WEAK_RUNS = 10
"""So many of the first runs too weak to mean anything, and the mutant keeps the cluster from coming up."""
RECORDED = "implementation_error"
"""The finding that a process ended by an exception of its own."""
STUCK = "no_progress"
IDLE_RUNS = 40
"""So many runs that come to the mutant and do what the original does, and it counts as survived without the
rest: the score is never above the true one."""
PATIENCE = 300
"""The same for runs that differ and are not convicted: no limit, as there are no more than 300."""


class Outcome(StrEnum):
    """Of a mutant. The first three convict; they are never added up."""

    JUDGED = "judged"
    """A judge found an anomaly other than no progress."""
    NO_PROGRESS = "no progress"
    """Nothing was wrong except that something never ended, or the run itself."""
    RAISED = "raised"
    """A run raised an exception, or recorded that a process did, after others had passed."""
    BROKEN = "broken"
    """The first run did so, or the source cannot be imported: that is no mutant at all."""
    LOG_MACHINE = "log machine"
    """No run convicted it, and the log machine did (log_machine.py). Only in the area `log`."""
    SURVIVED = "survived"
    UNREACHED = "unreached"
    """No run of the sample that was measured came to the line."""


class EndlessRunError(BaseException):
    """A run took more processor time than any healthy one does. No Exception: the code under test must not
    catch it."""


def places(profiles: Sequence[str], first: int, count: int) -> Iterator[tuple[str, int]]:
    """Profiles in turn, each with its next seed."""
    for number in range(count):
        yield profiles[number % len(profiles)], first + number // len(profiles)


def outcome_of(anomalies: Sequence[str], *, first: bool) -> Outcome:
    """What these findings of a run make of its mutant. first: whether it is the mutant's first run. A process
    that ends by an exception of its own is recorded (implementation_error), and the run goes on. That is no
    judge's merit, and neither is the missing progress after it."""
    others = set(anomalies) - {RECORDED, STUCK}
    if others:
        return Outcome.JUDGED
    if RECORDED in anomalies:
        return Outcome.BROKEN if first else Outcome.RAISED
    return Outcome.NO_PROGRESS


def on_alarm(signum: int, frame: FrameType | None) -> None:
    """The processor time is over. Raises EndlessRunError."""
    raise EndlessRunError


def try_it(
    runs: Iterable[tuple[str, int, str]],
    limit_s: float = RUN_CPU_S,
    patience: int = PATIENCE,
    passed: bool = False,
) -> tuple[Outcome, int, str, str, int, int]:
    """Outcome, runs, by what, profile, seed, and how many runs were another one than the original's.
    Everything that a run raises is an outcome. runs: profile, seed, and the digest of the unmutated code's
    run, or nothing if it is not known. patience: so many runs that differ and are not convicted, and the
    mutant counts as survived. passed: a run that reaches the mutant and is not changed by it was left out, so
    that none of these is its first one."""
    signal.signal(signal.SIGPROF, on_alarm)
    done = weak = differed = 0
    profile, seed = "", -1
    try:
        from fencepost.campaign.swarm.swarm import swarm
        from fencepost.checkers.judges import judge
        from fencepost.checkers.verdict import Decision
        from fencepost.run.simulated.run import run

        for profile, seed, known in runs:
            done += 1
            signal.setitimer(signal.ITIMER_PROF, limit_s)
            trace = run(swarm(seed, profile))
            if trace.digest == known:
                signal.setitimer(signal.ITIMER_PROF, 0)
                if done == IDLE_RUNS and not differed:
                    break
                continue
            differed += 1
            verdicts = judge(trace)
            signal.setitimer(signal.ITIMER_PROF, 0)
            anomalies = sorted({finding.anomaly for verdict in verdicts for finding in verdict.findings})
            weak += any(verdict.decision is Decision.ASSUMPTION_BROKEN for verdict in verdicts)
            if anomalies:
                by = ", ".join(anomalies)
                first = done == 1 and not passed
                return outcome_of(anomalies, first=first), done, by, profile, seed, differed
            if done == WEAK_RUNS and weak == done:
                return Outcome.NO_PROGRESS, done, "the cluster never comes up", profile, seed, differed
            if differed == patience:
                break
    except EndlessRunError:
        return Outcome.NO_PROGRESS, done, "the run never ends", profile, seed, differed
    except Exception as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        return (
            (Outcome.RAISED if done > 1 or passed else Outcome.BROKEN),
            done,
            repr(error)[:200],
            profile,
            seed,
            differed,
        )
    return Outcome.SURVIVED, done, "", "", -1, differed

"""How often a plan shows an anomaly in a real system, and a smaller plan that still does often enough.

Owns the repetitions and what counts as shown. Must not know how a run works, or which candidates there are
(campaign/shrink). A real run does not replay: the same plan meets other timings each time. So a finding has a
rate, and a candidate counts if a share of its repetitions shows the anomaly.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define, evolve, field, frozen

from fencepost.campaign.real.worker import RealWorker
from fencepost.campaign.shrink.lists import Pass
from fencepost.campaign.shrink.oracle import OutOfTimeError, Target, key_of
from fencepost.campaign.shrink.shrink import (
    ShrinkProgress,
    Shrunk,
    remove_faults,
    remove_operations,
    shrink,
)
from fencepost.campaign.workers.results import Job, Orders, RunResult, Task
from fencepost.checkers.verdict import Decision
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json

TIMES = 10
"""Repetitions of a replay."""
CANDIDATE_RUNS, CANDIDATE_SHOWN = 4, 2
"""A candidate of a shrink is run so often at most, and has to show the anomaly so often: two in four, as a
single one may be luck, and a plan that shows it every second time is still useful."""
MOST_RUNS = 400
"""Of one shrink: an hour at nine seconds a run."""


@frozen(kw_only=True)
class Rate:
    """What repetitions came to."""

    runs: int
    anomalies: dict[str, int]
    """How many runs showed each."""
    undecided: int
    """Runs that were too weak, or that a judge could not decide."""
    results: tuple[RunResult, ...] = ()

    def words(self) -> str:
        """In a sentence."""
        shown = [f"{name} in {count}" for name, count in sorted(self.anomalies.items())]
        weak = [f"{self.undecided} undecided or too weak"] if self.undecided else []
        return f"{self.runs} runs: " + (", ".join(shown + weak) or "no finding")


@define(eq=False)
class Repeater:
    """Runs plans again and again in one cluster at a time; a context manager. folder: of the cluster's
    files, which are removed with it."""

    job: Job
    folder: Path
    worker: RealWorker = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.worker = RealWorker(orders=Orders(job=self.job, out="", name="again"))
        self.worker.clusters.folder = self.folder

    def __enter__(self) -> "Repeater":
        return self

    def __exit__(self, *error: object) -> None:
        self.worker.release()

    def once(self, plan: Plan) -> RunResult:
        """One run of this plan, judged. Raises FencepostError for a cluster that does not start."""
        job = evolve(self.job, plan=plan_to_json(plan))
        orders = Orders(job=job, out="", name="again")
        self.worker.orders = self.worker.clusters.orders = orders
        return self.worker.do(Task(seed=plan.seed))

    def rate(
        self, plan: Plan, times: int, on_run: Callable[[int, RunResult], None] = lambda number, result: None
    ) -> Rate:
        """Run a plan so often.

        Parameters:
          plan: what to run.
          times: how often.
          on_run: called after each run with its number, from 1, and its result.
        Returns: what they showed.
        """
        results = []
        for number in range(1, times + 1):
            results.append(self.once(plan))
            on_run(number, results[-1])
        shown = Counter(one.anomaly or "unnamed" for one in results if one.decision is Decision.ILLEGAL)
        undecided = sum(one.decision not in (Decision.OK, Decision.ILLEGAL) for one in results)
        return Rate(runs=times, anomalies=dict(shown), undecided=undecided, results=tuple(results))


def shows(result: RunResult, anomaly: str) -> bool:
    """Whether a run has a finding of this name, whichever names the run: what is lost shows as one thing or
    another, by when it was read.

    Args:
        result: of the run.
        anomaly: its name.
    """
    return anomaly in (result.anomaly, *(finding.anomaly for finding in result.findings))


def target_of(recorded: str, rate: Rate) -> tuple[str, int]:
    """What a plan is shrunk to: the anomaly of the recorded run if repetitions show it often enough, or else
    what they show most often, since the same loss may show otherwise at another time.

    Parameters:
      recorded: an anomaly.
      rate: repetitions of the plan.
    Returns: the anomaly, and how many repetitions showed it.
    """
    names = {finding.anomaly for one in rate.results for finding in one.findings} | {recorded}
    shown = {
        name: sum(shows(one, name) for one in rate.results) for name in sorted(names | {*rate.anomalies})
    }
    if shown[recorded] >= CANDIDATE_SHOWN:
        return recorded, shown[recorded]
    return max(shown.items(), key=lambda each: (each[1], rate.anomalies.get(each[0], 0)))


@define(eq=False, kw_only=True)
class RateOracle:
    """shrink/oracle.py's Oracle over repetitions."""

    target: Target
    once: Callable[[Plan], RunResult]
    """Runs a plan, as Repeater.once."""
    seconds: float | None = None
    """Longest time of the shrink; None: none but MOST_RUNS."""
    runs: int = 0
    rates: dict[bytes, tuple[int, int]] = field(factory=dict)
    """Runs that showed it and runs so far, by plan."""
    _started: float = field(factory=time.monotonic, init=False)

    def first(self, candidates: Sequence[Plan]) -> int | None:
        """The place of the first candidate that shows the target often enough; None if none does. Raises
        OutOfTimeError."""
        for place, plan in enumerate(candidates):
            if self.shows(plan):
                return place
        return None

    def shows(self, plan: Plan) -> bool:
        """Whether enough of its repetitions show the anomaly. Raises OutOfTimeError."""
        key = key_of(plan)
        shown, runs = self.rates.get(key, (0, 0))
        while shown < CANDIDATE_SHOWN and CANDIDATE_RUNS - runs >= CANDIDATE_SHOWN - shown:
            over = self.seconds is not None and time.monotonic() - self._started > self.seconds
            if over or self.runs >= MOST_RUNS:
                raise OutOfTimeError
            self.runs += 1
            runs += 1
            shown += shows(self.once(plan), self.target.anomaly)
            self.rates[key] = shown, runs
        return shown >= CANDIDATE_SHOWN


PASSES: tuple[Pass, ...] = (remove_faults, remove_operations)
"""What is left out of a plan for a real system: each candidate takes tens of seconds, and its settings are
the cluster's."""


def shrink_by_rate(
    plan: Plan,
    oracle: RateOracle,
    *,
    on_better: Callable[[Plan], None],
    on_progress: Callable[[ShrinkProgress], None],
) -> Shrunk:
    """A smaller plan that still shows the anomaly in CANDIDATE_SHOWN of CANDIDATE_RUNS runs.

    Parameters:
      plan: shows it that often, too.
      oracle: runs candidates.
      on_better: called with each plan that replaces the one before.
      on_progress: called after each candidate.
    Returns: the result, also when the time is over.
    Raises: FencepostError for a plan that shows it too seldom.
    """
    return shrink(
        plan,
        oracle,
        on_better=on_better,
        on_progress=on_progress,
        passes=PASSES,
    )

"""How often a plan shows an anomaly in a real system, and a smaller plan that still does often enough.

Owns the repetitions and what counts as shown. Must not know how a run works, or which candidates there are
(campaign/shrink). A real run does not replay: the same plan meets other timings each time. So a finding has a
rate, and a candidate counts if it shows the anomaly about as often as the plan does. A sequential test says
so (Wald, Sequential Tests of Statistical Hypotheses, 1945): it ends as soon as the answer is known, after two
runs where the plan and the candidate show it always, or the candidate never, and after more otherwise.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define, evolve, field, frozen

from fencepost.campaign.shrink.lists import Pass
from fencepost.campaign.shrink.oracle import OutOfTimeError, Target, key_of
from fencepost.campaign.shrink.shrink import ShrinkProgress, Shrunk, remove_faults, remove_operations, shrink
from fencepost.campaign.workers.real_worker import RealWorker
from fencepost.campaign.workers.results import Job, Orders, RunResult, Task
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json

TIMES = 10
"""Repetitions of a replay."""
FIRST_RUNS, OFTEN = 4, 2
"""A plan that is to be shrunk is run so often first, and an anomaly that so many of these runs show is shrunk
to."""
SELDOMER = 4
"""A candidate is refused that shows the anomaly so many times less often than the plan. Reason: at a
quarter of the rate a replay of ten runs may show nothing."""
WRONG = 0.15
"""How likely a decision may be wrong: a good candidate that is refused costs a smaller plan, and of one that
is wrongly kept the replay tells. With 0.05 a candidate has to show it three times instead of twice."""
RATES = (0.25, 0.9)
"""What a plan's rate is taken for at least and at most: four runs say no more."""
MOST_A_CANDIDATE = 12
"""Runs of a candidate between both; then the likelier of the two is taken."""
MOST_RUNS = 400
"""Of one shrink: an hour at nine seconds a run."""


@frozen(kw_only=True)
class Rate:
    """What repetitions came to."""

    runs: int
    # How many runs showed each.
    anomalies: dict[str, int]
    # Runs that were too weak, or that a judge could not decide.
    undecided: int
    results: tuple[RunResult, ...] = ()

    def words(self) -> str:
        """In a sentence."""
        shown = [f"{name} in {count}" for name, count in sorted(self.anomalies.items())]
        weak = [f"{self.undecided} undecided or too weak"] if self.undecided else []
        return f"{self.runs} runs: " + (", ".join(shown + weak) or "no finding")


@define(eq=False)
class Repeater:
    """Runs plans again and again in one cluster at a time; a context manager."""

    job: Job
    # Of the cluster's files, which are removed with it.
    folder: Path
    worker: RealWorker = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.worker = RealWorker(orders=Orders(job=self.job, out="", name="again"), keeps_clusters=True)
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
        shown = Counter(one.anomaly or "unnamed" for one in results if one.convicted)
        undecided = sum(one.undecided for one in results)
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
    if shown[recorded] >= OFTEN:
        return recorded, shown[recorded]
    return max(shown.items(), key=lambda each: (each[1], rate.anomalies.get(each[0], 0)))


def rate_of(shown: int, runs: int) -> float:
    """What the rate of a plan is taken for (Laplace's rule of succession, within RATES).

    Parameters:
      shown: runs that showed the anomaly.
      runs: all.
    """
    return min(RATES[1], max(RATES[0], (shown + 1) / (runs + 2)))


def as_often(rate: float, shown: int, runs: int) -> bool | None:
    """Whether a candidate shows the anomaly as often as this; None: its runs do not decide yet.

    Parameters:
      rate: of the plan, in RATES.
      shown: runs of the candidate that showed it.
      runs: all of the candidate's.
    """
    seldom, missed = rate / SELDOMER, runs - shown
    likelier = (rate / seldom) ** shown * ((1 - rate) / (1 - seldom)) ** missed
    if runs >= MOST_A_CANDIDATE:
        return likelier >= 1
    if likelier >= (1 - WRONG) / WRONG:
        return True
    return False if likelier <= WRONG / (1 - WRONG) else None


@define(eq=False, kw_only=True)
class RateOracle:
    """shrink/oracle.py's Oracle over repetitions."""

    target: Target
    # Of the plan that is shrunk: how often its runs show the target, as rate_of has it.
    rate: float
    # Runs a plan, as Repeater.once.
    once: Callable[[Plan], RunResult]
    # Longest time of the shrink; None: none but `most`.
    seconds: float | None = None
    # Runs after which it ends.
    most: int = MOST_RUNS
    runs: int = 0
    # Runs that showed it and runs so far, by plan.
    rates: dict[bytes, tuple[int, int]] = field(factory=dict)
    _started: float = field(factory=time.monotonic, init=False)

    def first(self, candidates: Sequence[Plan]) -> int | None:
        """The place of the first candidate that shows the target often enough; None if none does. Raises
        OutOfTimeError."""
        for place, plan in enumerate(candidates):
            if self.shows(plan):
                return place
        return None

    def shows(self, plan: Plan) -> bool:
        """Whether it shows the anomaly as often as the plan that is shrunk. Raises OutOfTimeError."""
        key = key_of(plan)
        shown, runs = self.rates.get(key, (0, 0))
        while (decided := as_often(self.rate, shown, runs)) is None:
            over = self.seconds is not None and time.monotonic() - self._started > self.seconds
            if over or self.runs >= self.most:
                raise OutOfTimeError
            self.runs += 1
            runs += 1
            shown += shows(self.once(plan), self.target.anomaly)
            self.rates[key] = shown, runs
        return decided


PASSES: tuple[Pass, ...] = (remove_operations, remove_faults)
"""What is left out of a plan for a real system: each candidate takes tens of seconds, and its settings are
the cluster's. Operations first: there are hundreds, and most findings need few of them, while a plan has a
few faults, of which each step leaves out one."""


def shrink_by_rate(
    plan: Plan,
    oracle: RateOracle,
    *,
    on_better: Callable[[Plan], None],
    on_progress: Callable[[ShrinkProgress], None],
) -> Shrunk:
    """A smaller plan that still shows the anomaly about as often.

    Parameters:
      plan: shows it that often, too.
      oracle: runs candidates.
      on_better: called with each plan that replaces the one before.
      on_progress: called after each candidate.
    Returns: the result, also when the time is over.
    Raises: FencepostError for a plan that shows it too seldom.
    """
    return shrink(plan, oracle, on_better=on_better, on_progress=on_progress, passes=PASSES)

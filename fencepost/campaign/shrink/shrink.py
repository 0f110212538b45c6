"""Shrinking: a plan that shows an anomaly becomes a small plan that shows the same one.

Owns: the order of the passes, and the best plan so far. Must not know how a candidate is run and judged
(oracle.py), or what the candidates of a pass are (lists.py, smaller_cluster.py, options.py, times.py).

Delta debugging (Zeller and Hildebrandt, 2002), greedy: each pass proposes plans that are simpler in one
respect, in a fixed order, and the first of them that still shows the anomaly replaces the plan. The passes
are repeated until none of them gets any further. Every move removes something, lowers a number or returns an
option to its default, so there is an end; and because the first of the candidates wins, not the quickest, the
result does not depend on how many of them are tried at once. That a plan shrinks at all is due to randomness
keyed by cause: an operation that goes reshuffles no other.
"""

import time
from collections.abc import Callable, Iterable, Sequence

from attrs import define, field, frozen

from fencepost.campaign.shrink.lists import Pass, Shrinking, remove_from, remove_pairs
from fencepost.campaign.shrink.options import option_passes
from fencepost.campaign.shrink.oracle import Oracle, OutOfTimeError
from fencepost.campaign.shrink.smaller_cluster import cluster_passes
from fencepost.campaign.shrink.times import time_passes
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import Plan

MOST_ROUNDS = 30
"""Repetitions of all passes: far above what a plan needs, since most of its size goes in the first."""


@frozen(kw_only=True)
class ShrinkProgress:
    """How far it is."""

    # Of the best plan so far.
    operations: int
    faults: int
    # Candidates judged.
    runs: int


@frozen(kw_only=True)
class Shrunk:
    """What shrinking came to."""

    # Before and after.
    original: Plan
    plan: Plan
    anomaly: str
    # Candidates run and judged.
    runs: int
    # Of all passes, the last one without a change.
    rounds: int
    wall_s: float
    # Nothing more can be removed; false where a limit of time or a Ctrl-C (interrupted) ended it.
    finished: bool
    interrupted: bool = False


def _ignore_progress(progress: ShrinkProgress) -> None:
    """Tell nobody."""


def _ignore_plan(plan: Plan) -> None:
    """Keep nothing."""


@define(eq=False, kw_only=True)
class Shrinker:
    """A plan under way."""

    # The best so far; it always shows the anomaly. on_better hears of each that replaces it.
    plan: Plan
    oracle: Oracle
    on_better: Callable[[Plan], None] = _ignore_plan
    on_progress: Callable[[ShrinkProgress], None] = _ignore_progress
    rounds: int = field(default=0, init=False)

    def first(self, candidates: Iterable[Plan]) -> int | None:
        """Replace the plan by the first candidate that shows the anomaly; answers its place, None if none
        does."""
        listed = list(candidates)
        place = self.oracle.first(listed)
        if place is not None:
            self.plan = listed[place]
            self.on_better(self.plan)
        self.on_progress(
            ShrinkProgress(
                operations=len(self.plan.operations), faults=len(self.plan.faults), runs=self.oracle.runs
            )
        )
        return place

    def to_the_end(self, passes: Sequence[Pass]) -> bool:
        """All passes until a round changes nothing; whether that was reached."""
        for _ in range(MOST_ROUNDS):
            before = self.plan
            for one in passes:
                one(self)
            self.rounds += 1
            if self.plan == before:
                return True
        return False


def remove_faults(shrinker: Shrinking) -> None:
    """Leave out faults."""
    remove_from(shrinker, "faults")


def remove_operations(shrinker: Shrinking) -> None:
    """Leave out operations."""
    remove_from(shrinker, "operations")


def all_passes() -> tuple[Pass, ...]:
    """Everything that is simpler in one respect."""
    return (
        remove_faults,
        remove_operations,
        *cluster_passes(),
        *option_passes(),
        *time_passes(),
        remove_pairs,
    )


def shrink(
    plan: Plan,
    oracle: Oracle,
    *,
    on_better: Callable[[Plan], None] = _ignore_plan,
    on_progress: Callable[[ShrinkProgress], None] = _ignore_progress,
    passes: Sequence[Pass] | None = None,
) -> Shrunk:
    """Shrink a plan that shows the oracle's anomaly (shrink_oracle.target_of says which). A Ctrl-C or the
    oracle's limit of time ends it with the best so far.

    on_better: is given each plan that replaces the one before it, so that it can be kept. passes: None for
    all of them. Raises
    FencepostError for a plan that does not show it where the oracle runs it: every candidate would be
    refused, and the plan taken for small.
    """
    started = time.monotonic()
    shrinker = Shrinker(plan=plan, oracle=oracle, on_better=on_better, on_progress=on_progress)
    finished = interrupted = False
    try:
        if oracle.first((plan,)) is None:
            raise FencepostError(
                expected=f"a run that shows {oracle.target.anomaly} again",
                seen="one that does not, or none at all",
                where="the plan to shrink",
                hint="a run that does not repeat cannot be shrunk",
            )
        finished = shrinker.to_the_end(all_passes() if passes is None else passes)
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        interrupted = True
    return Shrunk(
        original=plan,
        plan=shrinker.plan,
        anomaly=oracle.target.anomaly,
        runs=oracle.runs,
        rounds=shrinker.rounds,
        wall_s=time.monotonic() - started,
        finished=finished,
        interrupted=interrupted,
    )

"""Steering: what a campaign has not reached yet becomes likelier in the plans that follow.

Owns the rounds, and what is learnt from a round. Must not know how a plan is drawn (swarm/profiles.py says
what a name such as "default+log_cut" means) or which process runs what.

Seeds come in rounds. The profile of a round names the marks that no run of any earlier round reached, so that
it is a function of the job, the first seed and those runs alone: not of the number of processes, the order in
which runs ended, or how often the campaign was interrupted. A round begins when those before it have ended. A
run that crashed counts as one that reached nothing.

Against a real system it also names what the plans had that reached rare marks: the kinds of their faults, and
the order of the steps of their schedules. A real run takes half a minute instead of half a second, and few
marks are never reached by any of them; what leads to the rare ones is not known beforehand.
"""

from collections import Counter
from collections.abc import Iterable

from attrs import define, field

from fencepost.campaign.marks.real_marks import REAL_MARKS
from fencepost.campaign.swarm.mark_weights import marks_possible
from fencepost.campaign.swarm.profiles import STEERED, profile_named
from fencepost.campaign.swarm.real_systems import bounds_of, features_of
from fencepost.campaign.workers.plans import real_profile
from fencepost.campaign.workers.results import Job, RunResult

ROUND = 50
"""Seeds that are drawn with the same weights: enough to tell what is rare, few enough to act on it."""
REAL_ROUND = 10
"""The same for a real system, of whose runs a campaign has tens."""
RARE_ONE_IN = 4
"""A mark is rare that at most one run in so many reached."""


@define
class Steering:
    """seeds: of the campaign, step 1. possible: marks that the profile can reach. reached, ended: by round,
    marks and seeds that have a result. marks: by seed, of a real system."""

    job: Job
    seeds: range
    possible: tuple[str, ...] = field(init=False)
    reached: dict[int, set[str]] = field(factory=dict)
    ended: dict[int, set[int]] = field(factory=dict)
    marks: dict[int, tuple[str, ...]] = field(factory=dict)
    # The profile of each round that has begun.
    _names: dict[int, str] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        job = self.job
        if job.plan or job.control:
            self.possible = ()
        elif job.real:
            self.possible = marks_possible(bounds_of(real_profile(job), job.faults), REAL_MARKS)
        else:
            self.possible = marks_possible(profile_named(job.profile, job.faults))

    @property
    def on(self) -> bool:
        """Whether the campaign is steered."""
        return self.job.steer_from >= 0 and not self.job.plan and not self.job.control

    def add(self, result: RunResult) -> None:
        """Take the result of a run in."""
        number = self._round(result.seed)
        self.reached.setdefault(number, set()).update(result.marks)
        self.ended.setdefault(number, set()).add(result.seed)
        if self.job.real:
            self.marks[result.seed] = result.marks

    def profile_of(self, seed: int) -> str | None:
        """The profile of a seed's plan; None while a run that it depends on has not ended."""
        base = real_profile(self.job) if self.job.real else self.job.profile
        if not self.on:
            return base
        number = self._round(seed)
        if any(len(self.ended.get(before, ())) < self._size for before in range(number)):
            return None
        if number not in self._names:
            before = range(number)
            names = (*self.missing(before), *self.learnt(before)) if before else ()
            self._names[number] = STEERED.join((base, *names))
        return self._names[number]

    def missing(self, rounds: range | None = None) -> tuple[str, ...]:
        """The marks that no run of these rounds reached, of all if none are named."""
        within = self.reached if rounds is None else rounds
        reached = {name for number in within for name in self.reached.get(number, ())}
        return tuple(name for name in self.possible if name not in reached)

    def learnt(self, rounds: range) -> tuple[str, ...]:
        """What the plans of these rounds had that reached a rare mark, if it is more frequent among them than
        among all plans. Nothing of a simulated campaign.

        Parameters:
          rounds: that have ended.
        Returns: kinds of fault and orders, sorted.
        """
        if not self.job.real:
            return ()
        seeds = [seed for seed in sorted(self.marks) if self._round(seed) in rounds]
        features = {seed: self._features(seed) for seed in seeds}
        everywhere = Counter(name for seed in seeds for name in features[seed])
        found: set[str] = set()
        for mark in self.possible:
            having = [seed for seed in seeds if mark in self.marks[seed]]
            if 0 < len(having) * RARE_ONE_IN <= len(seeds):
                found.update(
                    _lifted(
                        Counter(n for s in having for n in features[s]), len(having), everywhere, len(seeds)
                    )
                )
        return tuple(sorted(found))

    def _features(self, seed: int) -> frozenset[str]:
        job, profile = self.job, self.profile_of(seed)
        assert profile is not None, f"seed {seed} has run"
        return features_of(seed, job.faults, job.control, profile)

    @property
    def _size(self) -> int:
        return REAL_ROUND if self.job.real else ROUND

    def _round(self, seed: int) -> int:
        return (seed - self.seeds.start) // self._size


def _lifted(having: Counter[str], reached: int, everywhere: Counter[str], runs: int) -> Iterable[str]:
    """The names whose share among the plans that reached a mark is above their share among all. having,
    everywhere: how many plans had each; reached, runs: how many plans these are."""
    return (name for name, count in having.items() if count * runs > everywhere[name] * reached)

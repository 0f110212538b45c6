"""Steering: what a campaign has not reached yet becomes likelier in the plans that follow.

Owns the rounds. Must not know how a plan is drawn (swarm/profiles.py says what a name such as
"default+log_cut" means) or which process runs what.

Seeds come in rounds of ROUND. The profile of a round names the marks that no run of any earlier round
reached, so that it is a function of the job, the first seed and those runs alone: not of the number of
processes, the order in which runs ended, or how often the campaign was interrupted. A round begins when those
before it have ended. A run that crashed counts as one that reached nothing.
"""

from attrs import define, field

from fencepost.campaign.swarm.mark_weights import marks_possible
from fencepost.campaign.swarm.profiles import STEERED, profile_named
from fencepost.campaign.workers.results import Job, RunResult

ROUND = 50
"""Seeds that are drawn with the same weights: enough to tell what is rare, few enough to act on it."""


@define
class Steering:
    """seeds: of the campaign, step 1. possible: marks that the profile can reach. reached, ended: by round,
    marks and seeds that have a result."""

    job: Job
    seeds: range
    possible: tuple[str, ...] = field(init=False)
    reached: dict[int, set[str]] = field(factory=dict)
    ended: dict[int, set[int]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.possible = (
            ()
            if self.job.plan or self.job.real
            else marks_possible(profile_named(self.job.profile, self.job.faults))
        )

    @property
    def on(self) -> bool:
        """Whether the campaign is steered."""
        return self.job.steer_from >= 0 and not self.job.plan and not self.job.real

    def add(self, result: RunResult) -> None:
        """Take the result of a run in."""
        number = self._round(result.seed)
        self.reached.setdefault(number, set()).update(result.marks)
        self.ended.setdefault(number, set()).add(result.seed)

    def profile_of(self, seed: int) -> str | None:
        """The profile of a seed's plan; None while a run that it depends on has not ended."""
        if not self.on:
            return self.job.profile
        before = range(self._round(seed))
        if any(len(self.ended.get(number, ())) < ROUND for number in before):
            return None
        return STEERED.join([self.job.profile, *self.missing(before)]) if before else self.job.profile

    def missing(self, rounds: range | None = None) -> tuple[str, ...]:
        """The marks that no run of these rounds reached, of all if none are named."""
        within = self.reached if rounds is None else rounds
        reached = {name for number in within for name in self.reached.get(number, ())}
        return tuple(name for name in self.possible if name not in reached)

    def _round(self, seed: int) -> int:
        return (seed - self.seeds.start) // ROUND

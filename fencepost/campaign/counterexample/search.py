"""A plan that reproduces a counterexample: drafts, each judged by real runs, until one shows the bug and
nothing without it.

Owns the search. Must not know how a draft is made.

A draft has the order of events right and its timing at random. So the search is honest by construction: a
plan is only handed out after the implementation with the bug planted has shown an anomaly of the bug's own
invariant, and the healthy one, on the same plan, nothing at all.
"""

from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from fencepost.bugs import BUGS
from fencepost.campaign.counterexample.plan import draft_plan
from fencepost.campaign.counterexample.story import Story
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.plan import Plan
from fencepost.traces.protections import BY_BUG, BY_NAME, Protection

FIRST = ("invariants",)
"""What a draft's run is asked first: it is quick, and the bugs of the data path break invariants."""


@frozen(kw_only=True)
class Reproduction:
    """plan: without the bug; drafts: how many were tried; runs: of the implementation, healthy ones included.
    sick, healthy: the verdicts on both."""

    plan: Plan
    bug: str
    drafts: int
    runs: int
    sick: tuple[Verdict, ...]
    healthy: tuple[Verdict, ...]

    @property
    def finding(self) -> Finding:
        """The first of the bug's own anomalies."""
        return next(_own(self.bug, self.sick))


@frozen(kw_only=True)
class Fruitless:
    """No draft was one."""

    drafts: int
    runs: int
    # How many showed the bug, but something without it too.
    near: int


def protection_of(name: str) -> Protection:
    """A protection by its name or its bug, if a bug without it can be planted. Raises FencepostError."""
    protection = BY_NAME.get(name) or BY_BUG.get(name)
    if protection is None or protection.bug not in BUGS:
        raise FencepostError(
            expected="a protection that a planted bug misses, by its name or the bug's",
            seen=unknown_name(name, (*(BY_BUG[bug].name for bug in BUGS), *BUGS)),
            where="drop",
            hint="`fencepost campaign bugs list` has them",
        )
    return protection


def reproduce(
    story: Story, bug: str, seed: int, most_drafts: int, on_draft: Callable[[int], None] | None = None
) -> Reproduction | Fruitless:
    """Try drafts 0, 1, ... of this story. on_draft: hears how many were tried. The same for the same
    arguments."""
    runs = near = 0
    for attempt in range(most_drafts):
        if on_draft is not None:
            on_draft(attempt)
        plan = draft_plan(story, (), seed, attempt)
        planted = evolve(plan, cluster=evolve(plan.cluster, bugs=(bug,)))
        trace = run(planted)
        runs += 1
        if next(_own(bug, judge(trace, FIRST)), None) is None:
            continue
        healthy = judge(run(plan))
        runs += 1
        if all(verdict.decision is Decision.OK for verdict in healthy):
            return Reproduction(
                plan=plan, bug=bug, drafts=attempt + 1, runs=runs, sick=judge(trace), healthy=healthy
            )
        near += 1
    return Fruitless(drafts=most_drafts, runs=runs, near=near)


def _own(bug: str, verdicts: tuple[Verdict, ...]) -> Iterator[Finding]:
    for verdict in verdicts:
        for finding in verdict.findings:
            if finding.anomaly in BUGS[bug].anomalies:
                yield finding

"""The zoo: each planted bug is one swapped part, the general swarm finds it, and without it the same seed is clean."""

import pytest
from attrs import fields

from fencepost.campaign.bugs import BUGS, parts_with
from fencepost.campaign.run import run
from fencepost.campaign.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.impl.parts import Parts
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.errors import FencepostError

FOUND_BY_SEED = {
    "KIP-101": 20,
    "KIP-207": 106,
    "KAFKA-532": 7,
    "KAFKA-6082": 9,
    "KAFKA-5634": 20,
    "KAFKA-13194": 129,
    "KAFKA-3978": 24,
    "KAFKA-9491": 22,
    "KAFKA-6975": 22,
}
"""The first seeds of each bug's swarm profile that find it; `fencepost bugs hunt` measures them. A change of the swarm moves them."""


def anomalies(seed: int, profile: str, *bugs: str) -> set[str]:
    """What all checks find."""
    verdicts = judge(run(swarm(seed, profile, bugs=bugs)))
    return {finding.anomaly for verdict in verdicts for finding in verdict.findings}


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_the_general_swarm_finds_the_bug_and_only_with_it_planted(bug):
    """The verdict names an anomaly of the invariant that the bug breaks; the unmodified implementation shows none for the same seed."""
    profile = BUGS[bug].profile
    assert anomalies(FOUND_BY_SEED[bug], profile, bug) & BUGS[bug].anomalies
    assert anomalies(FOUND_BY_SEED[bug], profile) == set()


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_planted_bug_is_one_swapped_part(bug):
    """Nothing but the named part differs, and the swap is a subclass of what it replaces: no monkeypatch, no switch inside."""
    healthy, sick = Parts(), parts_with((bug,))
    changed = [
        field.name for field in fields(Parts) if getattr(healthy, field.name) is not getattr(sick, field.name)
    ]
    assert changed == [BUGS[bug].role]
    assert issubclass(BUGS[bug].part, getattr(healthy, BUGS[bug].role))


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_the_anomalies_of_a_bug_are_of_the_invariant_that_it_breaks(bug):
    """The score counts no accident: every anomaly that counts for a bug breaks its invariant, or follows from one that does."""
    broken = BUGS[bug].protection.breaks
    for name in BUGS[bug].anomalies:
        roots = {BY_NAME[root].breaks for root in BY_NAME[name].implied_by} | {BY_NAME[name].breaks}
        assert broken in roots, name


def test_a_bug_that_is_not_in_the_zoo_is_refused():
    """An unknown id names the known ones; two bugs of one part cannot both be planted."""
    with pytest.raises(FencepostError, match="KIP-101"):
        parts_with(("KIP-0",))
    with pytest.raises(FencepostError, match="at most one bug"):
        parts_with(("KIP-101", "KIP-101"))

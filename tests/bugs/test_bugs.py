"""The zoo: each planted bug is one swapped part, the general swarm finds it, and without it the same seed is
clean."""

from functools import cache
from pathlib import Path

import pytest
from attrs import fields

from fencepost.bugs import BUGS, FAMILIES, parts_with
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.impl.broker.parts import Parts
from fencepost.run.simulated.run import run
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.errors import FencepostError

FOUND_BY_SEED = {
    "KIP-101": 20,
    "KIP-279": 112,
    "KIP-320": 1_000_344,
    "KIP-207": 25,
    "KAFKA-532": 7,
    "KAFKA-6082": 9,
    "KAFKA-5634": 20,
    "KAFKA-13194": 198,
    "KAFKA-3978": 24,
    "KAFKA-9491": 22,
    "KAFKA-6975": 22,
    "KAFKA-2729": 62,
    "KAFKA-1382": 210,
    "KAFKA-708": 7,
    "KAFKA-14140": 7,
    "KAFKA-1096": 9,
    "KAFKA-1188": 1,
    "KIP-570": 486,
    "KIP-380": 2,
    "KAFKA-1387": 1,
    "KAFKA-13407": 17,
    "KAFKA-5310": 234,
    "KAFKA-340": 149,
    "KAFKA-3143": 10,
    "KAFKA-6193": 0,
    "KAFKA-1097": 0,
    "KAFKA-1681": 50,
    "KAFKA-6650": 55,
    "KAFKA-7235": 28,
    "KAFKA-9946": 109,
    "KIP-98": 1,
    "KIP-360": 11,
    "R10": 3,
    "KAFKA-7298": 47,
    "KAFKA-8484": 63,
    "KIP-126": 11,
    "R1-COPIES": 48,
    "P3-LISTS": 130,
    "KAFKA-6003": 22,
    "KAFKA-6683": 7,
    "KAFKA-10614": 57,
    "KAFKA-5600": 3,
    "KAFKA-4362": 17,
    "KAFKA-13636": 11,
    "KAFKA-8069": 0,
    "P3": 73,
    "P5": 14,
    "KAFKA-10284": 194,
    "KAFKA-7128": 24,
    "KAFKA-7415": 146,
    "KAFKA-1647": 482,
    "KAFKA-4443": 0,
    "T1": 1,
    "T2": 8,
    "KAFKA-16352": 12,
    "T3": 0,
    "T4": 40,
    "T5": 0,
    "T6": 0,
    "T7": 0,
    "T8": 1,
    "KIP-447": 9,
    "T9": 105,
    "T10": 13,
    "T11": 64,
    "T12": 20,
    "T13": 39,
    "T14": 11,
    "T15": 9,
    "T26": 11,
    "KIP-890": 55,
}
"""A seed of each bug's swarm profile that finds it, mostly the first one (KAFKA-10284 shows at 61 already).
`fencepost campaign bugs hunt` measures them. A change of the swarm moves them."""


def anomalies(seed: int, profile: str, *bugs: str) -> set[str]:
    """What all checks find."""
    verdicts = judge(run(swarm(seed, profile, bugs=bugs)))
    return {finding.anomaly for verdict in verdicts for finding in verdict.findings}


of_healthy = cache(anomalies)
"""The same of a run without a bug, once for all bugs that one seed finds."""


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_the_general_swarm_finds_the_bug_and_only_with_it_planted(bug):
    """The verdict names an anomaly of the invariant that the bug breaks; the unmodified implementation shows
    none for the same seed."""
    profile = BUGS[bug].profile
    assert anomalies(FOUND_BY_SEED[bug], profile, bug) & BUGS[bug].anomalies
    assert of_healthy(FOUND_BY_SEED[bug], profile) == set()


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_planted_bug_is_one_swapped_part(bug):
    """Nothing but the named part differs, and the swap is a subclass of what it replaces: no monkeypatch, no
    switch inside."""
    healthy, sick = Parts(), parts_with((bug,))
    changed = [
        field.name for field in fields(Parts) if getattr(healthy, field.name) is not getattr(sick, field.name)
    ]
    assert changed == [BUGS[bug].role]
    assert issubclass(BUGS[bug].part, getattr(healthy, BUGS[bug].role))


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_the_anomalies_of_a_bug_are_of_the_invariant_that_it_breaks(bug):
    """The score counts no accident: every anomaly that counts for a bug breaks its invariant, or follows from
    one that does."""
    broken = {*BUGS[bug].also_breaks, BUGS[bug].protection.breaks}
    for name in BUGS[bug].anomalies:
        roots = {BY_NAME[root].breaks for root in BY_NAME[name].implied_by} | {BY_NAME[name].breaks}
        assert broken & roots, name


def test_families_are_of_planted_bugs_and_documented():
    """Near duplicates count once: each family's members are in the zoo, in no other family, and
    docs/explanation/zoo.md says the same."""
    members = [bug for bugs in FAMILIES.values() for bug in bugs]
    assert len(members) == len(set(members)) and set(members) <= BUGS.keys()
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "zoo.md").read_text()
    for family, bugs in FAMILIES.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {family} |")]
        told = row.split("|")[2]
        assert all(bug in told for bug in bugs), family
        assert {BUGS[bug].family for bug in bugs} == {family}
    assert BUGS["KIP-101"].family == "KIP-101"


def test_a_bug_that_is_not_in_the_zoo_is_refused():
    """An unknown id names the known ones; two bugs of one part cannot both be planted."""
    with pytest.raises(FencepostError, match="KIP-101"):
        parts_with(("KIP-0",))
    with pytest.raises(FencepostError, match="at most one bug"):
        parts_with(("KIP-101", "KIP-101"))

"""The zoo: each planted bug is one swapped part, the general swarm finds it, and without it the same seed is
clean."""

import re

import pytest
from attrs import evolve, fields

from fencepost.bugs import BUGS, FAMILIES, parts_with
from fencepost.checkers.judges import judge
from fencepost.cli import run as command
from fencepost.impl.broker.parts import Parts
from fencepost.run.simulated.run import run
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import Plan
from tests.bugs.found import FOUND
from tests.selfcheck.amounts import amount


def anomalies(plan: Plan) -> set[str]:
    """What all checks find."""
    return {finding.anomaly for verdict in judge(run(plan)) for finding in verdict.findings}


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_plan_of_the_swarm_shows_the_bug(bug):
    """The verdict names an anomaly of the invariant that the bug breaks."""
    assert anomalies(FOUND[bug]) & BUGS[bug].anomalies


@pytest.mark.parametrize("bug", sorted(BUGS)[:: amount(4, 1)])
def test_the_plan_without_the_bug_shows_nothing(bug):
    """The unmodified implementation is clean under the plan that shows the bug."""
    plan = FOUND[bug]
    assert anomalies(evolve(plan, cluster=evolve(plan.cluster, bugs=()))) == set()


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


def test_families_are_of_planted_bugs_and_shown(capsys):
    """Near duplicates count once: each family's members are in the zoo and in no other family, and
    `campaign bugs show` names it."""
    members = [bug for bugs in FAMILIES.values() for bug in bugs]
    assert len(members) == len(set(members)) and set(members) <= BUGS.keys()
    for family, bugs in FAMILIES.items():
        assert {BUGS[bug].family for bug in bugs} == {family}
        command(["campaign", "bugs", "show", bugs[0]])
        assert re.search(rf"^family +{family} *$", capsys.readouterr().out, re.M)
    assert BUGS["KIP-101"].family == "KIP-101"


def test_a_bug_that_is_not_in_the_zoo_is_refused():
    """An unknown id names the known ones; two bugs of one part cannot both be planted."""
    with pytest.raises(FencepostError, match="KIP-101"):
        parts_with(("KIP-0",))
    with pytest.raises(FencepostError, match="at most one bug"):
        parts_with(("KIP-101", "KIP-101"))

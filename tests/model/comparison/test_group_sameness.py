"""The explorer and TLC see the same consumer groups: as many states, as deep, the very same ones, and the
same variants fail.

Each JVM costs seconds, so few runs cover all protections here; `fencepost model matrix --model group` runs
every variant.
"""

import time

import pytest

from fencepost.cli import run as fencepost
from fencepost.model.comparison.sameness import (
    by_explorer,
    by_tlc,
    compare,
    states_of_explorer,
    states_of_tlc,
)
from fencepost.model.explore import explore
from fencepost.model.group.state import OF_GROUPS, Constants
from fencepost.model.group.system import Groups
from fencepost.model.tla import FOLDER, SIZES, files_of
from fencepost.model.tla.group import constants_to_tla, state_from_tla, state_to_tla
from fencepost.model.tlc import RunOutcome, Spec, check, show
from tests.model.comparison.reaching import reaches_all
from tests.model.quick import QUICK

FAIL_OVER = Constants(members=1, generations=1, epochs=1, drop={"apply_whole_load", "not_coordinator"})
RETENTION = Constants(
    members=1, brokers=1, commits=2, expiries=1,
    drop={"generation_fencing", "commit_async_not_retried", "no_expiry_while_rebalancing"},
)  # fmt: skip
STATIC = Constants(generations=1, brokers=1, statics=1)


@pytest.mark.parametrize(
    "constants",
    [RETENTION, STATIC, Constants(brokers=1, partitions=2, generations=1)],
    ids=["retention", "a static member", "two partitions"],
)
def test_a_state_has_one_form_on_each_side(constants):
    """Rule: the map between states of Python and TLA+ loses nothing, and fingerprints lose no state."""
    states = states_of_explorer(constants)
    told = {show(tuple(state_to_tla(state).values())) for state in states}
    assert len(told) == len(states) == explore(Groups(constants, ())).distinct
    assert all(state_from_tla(state_to_tla(state)) == state for state in states)


@pytest.mark.java
@pytest.mark.parametrize(
    ("constants", "distinct"),
    [(RETENTION, 1_875), (FAIL_OVER, 1_201), (STATIC, 368)],
    ids=["retention", "fail-over", "a static member"],
)
def test_the_very_same_states(constants, distinct):
    """Rule: TLC's dump of Group.tla and the Python model's states are one set, with five protections dropped,
    and with a static member."""
    assert (states_of_tlc(constants, QUICK), distinct) == (
        states := states_of_explorer(constants),
        len(states),
    )


@pytest.mark.java
def test_counts_depth_and_verdict():
    """Rule: with nothing dropped both find as many distinct states and as deep a graph, and no violation."""
    comparison = compare(Constants(brokers=1, partitions=2, generations=1), time.monotonic, QUICK)
    assert comparison.same
    assert comparison.explorer.compared == ("holds", 0, 1_492, 14)


@pytest.mark.java
def test_a_missed_protection_is_missed_by_both():
    """Rule (KAFKA-10614): a shortest counterexample has the same length and the same invariant on both
    sides."""
    constants = Constants(members=1, generations=1, commits=0, epochs=2, drop={"coordinator_epoch_order"})
    seen = by_explorer(constants, time.monotonic, count=False), by_tlc(constants, QUICK, count=False)
    assert [(one.compared, one.invariant) for one in seen] == [
        (("violated", 6, -1, -1), "ONE-COORDINATOR")
    ] * 2


@pytest.mark.java
def test_an_assignment_handed_out_early_has_two_owners(tmp_path):
    """Rule (ONE-CONSUMER): the twin's invariant has failed on purpose: an assignment is handed out before it
    is durable."""
    text = (FOLDER / "Group.tla").read_text()
    sync = '    /\\ group[b].state = "Stable"\n    /\\ phase\' = [phase EXCEPT ![m] = "Owning"]'
    assert text.count(sync) == 1
    (tmp_path / "Group.tla").write_text(
        text.replace(sync, sync.replace('group[b].state = "Stable"', "group[b].assignment # Nobody"))
    )
    module, config = files_of("Group")
    mine = tmp_path / module.name
    mine.write_text(module.read_text())
    constants = Constants(members=2, generations=1, commits=0, epochs=1)
    found = check(Spec.at(mine, config, constants_to_tla(constants)), QUICK)
    assert (found.outcome, found.violation.name) == (RunOutcome.VIOLATED, "OneConsumer")


@pytest.mark.java
def test_what_a_useful_set_of_constants_reaches(tmp_path):
    """Rule: the small configuration is not vacuous: each of the module's `never` is refuted."""
    assert reaches_all("Group", tmp_path)


def test_protections_have_one_name():
    """Rule: the module's protections are those that the Python model can drop, and each shipped file is where
    it should be."""
    text = (FOLDER / "Group.tla").read_text()
    names = text[text.index("Protections ==") : text.index("ASSUME")]
    assert all(f'"{name}"' in names for name in OF_GROUPS)
    assert names.count('"') == 2 * len(OF_GROUPS)
    for size in SIZES:
        assert all(file.is_file() for file in files_of("Group", size))


def test_the_command_line(capsys):
    """Rule: the group model is explored, bounded and listed like any other; a bug's id names its
    protection."""
    small = ["model", "explore", "group", "--constant", "members=1", "--constant", "epochs=1"]
    assert fencepost([*small, "--constant", "generations=1", "--drop", "KAFKA-5600"]) == 1
    out = capsys.readouterr().out
    assert "OFFSET-SAFE is violated in 12 steps" in out
    assert "12. load(1, 1)" in out
    assert fencepost([*small, "--states", "100"]) == 3
    assert fencepost(["model", "explore", "group", "--drop", "KIP-101"]) == 2
    assert fencepost(["model", "list", "--json"]) == 0
    assert '"no_expiry_while_rebalancing"' in capsys.readouterr().out

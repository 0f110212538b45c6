"""The explorer and TLC see the same consumer groups: as many states, as deep, the very same ones, and the
same variants fail.

Each JVM costs seconds, so few runs cover all protections here; `test_every_variant.py` runs
every variant.
"""

import time

import pytest

from fencepost.cli import run as fencepost
from fencepost.model.comparison.sameness import by_explorer, by_tlc, compare
from fencepost.model.group.group_state import Constants
from fencepost.model.tla import FOLDER, files_of
from fencepost.model.tla.group import constants_to_tla
from fencepost.model.tlc import RunOutcome, Spec, check
from tests.model.comparison.whole_states import states_of_explorer, states_of_tlc
from tests.model.quick import QUICK

FAIL_OVER = Constants(members=1, generations=1, epochs=1, drop={"apply_whole_load", "not_coordinator"})
RETENTION = Constants(
    members=1, brokers=1, commits=2, expiries=1,
    drop={"generation_fencing", "commit_async_not_retried", "no_expiry_while_rebalancing"},
)  # fmt: skip
STATIC = Constants(generations=1, brokers=1, statics=1)


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

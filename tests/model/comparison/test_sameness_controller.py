"""The explorer and TLC see the same control plane: as many states, as deep, the very same ones, and the same
variants fail."""

import time

import pytest
from attrs import evolve

from fencepost.cli import run as fencepost
from fencepost.model.comparison import sameness
from fencepost.model.comparison.sameness import compare
from fencepost.model.controller.controller_state import Constants
from fencepost.model.tla.controller import constants_to_tla
from tests.model.comparison.whole_states import states_of_explorer, states_of_tlc
from tests.model.quick import QUICK

ZOMBIES = Constants(epochs=2, writes=1, drop={"fenced_zookeeper_write", "leader_epoch_fencing"})
REASSIGNED = Constants(
    spare=1, epochs=1, sessions=0, writes=4, reassignments=1, deletions=1,
    drop={"assigned_replicas_only", "stop_replica_fencing"},
)  # fmt: skip
DELETED = Constants(writes=0, deletions=1, drop={"offline_without_state"})
UNHEARD = Constants(epochs=1, writes=1, unheard=1)
NOT_AGAIN = Constants(epochs=1, writes=1, unheard=1, drop={"resend_until_answered"})
STOPPED = Constants(
    epochs=1, writes=1, shutdowns=1, crashes=0,
    drop={"last_in_sync_stays", "staying_isr_members_only", "shutdown_fencing"},
)  # fmt: skip
CRASHED = Constants(
    epochs=1, writes=0, crashes=1, deletions=1, drop={"resume_deletions", "broker_epoch_fencing"}
)
ALL = {
    "zombies": ZOMBIES,
    "reassigned": REASSIGNED,
    "deleted": DELETED,
    "stopped": STOPPED,
    "crashed": CRASHED,
    "unheard": UNHEARD,
    "not again": NOT_AGAIN,
}


@pytest.mark.java
@pytest.mark.parametrize(
    ("name", "distinct"),
    [
        ("zombies", 3_301),
        ("reassigned", 299),
        ("deleted", 4_069),
        ("stopped", 6_029),
        ("crashed", 3_237),
        ("unheard", 1_797),
        ("not again", 4_639),
    ],
)
def test_the_very_same_states(name, distinct):
    """Rule: TLC's dump of Controller.tla and the Python model's states are one set."""
    states = states_of_explorer(ALL[name])
    assert len(states) == distinct
    assert states_of_tlc(ALL[name], QUICK) == states


@pytest.mark.java
@pytest.mark.parametrize(
    ("constants", "invariant", "steps"),
    [
        (Constants(epochs=1, writes=1, crashes=1, drop={"re_elect"}), "EPOCH-MONO", 6),
        (Constants(epochs=1, shutdowns=1, drop={"staying_isr_members_only"}), "STOP-SAFE", 8),
        (Constants(writes=0, deletions=1, drop={"offline_without_state"}), "DEL-COMPLETE", 12),
    ],
    ids=["a restarted leader", "KAFKA-14140", "KAFKA-6650"],
)
def test_a_missed_protection_is_missed_by_both(constants, invariant, steps):
    """Rule: a shortest counterexample is as long on both sides, and breaks the same invariant."""
    comparison = compare(constants, time.monotonic, QUICK, count=False)
    assert comparison.same
    assert (comparison.tlc.invariant, comparison.explorer.invariant, comparison.tlc.steps) == (
        invariant,
        invariant,
        steps,
    )


@pytest.mark.java
def test_counts_and_depth():
    """Rule: with a protection dropped and no invariant looked at, both find as many states and as deep a
    graph."""
    constants = Constants(epochs=1, writes=1, drop={"re_elect"})
    comparison = compare(constants, time.monotonic, QUICK)
    assert comparison.same
    assert comparison.explorer.compared == ("holds", 0, 684, 10)


@pytest.mark.java
def test_a_twin_that_differs_is_caught(monkeypatch):
    """Rule: the comparison has failed on purpose: TLC without a protection that the explorer has."""
    monkeypatch.setattr(
        sameness, "constants_to_tla", lambda constants: constants_to_tla(evolve(constants, drop={"re_elect"}))
    )
    assert not compare(Constants(epochs=1, writes=1, crashes=1), time.monotonic, QUICK, count=False).same


def test_the_command_line(capsys):
    """Rule: every shipped model is listed and explored alike; a dropped protection ends with 1 and the way to
    the violation."""
    assert (
        fencepost(["model", "explore", "controller", "--constant", "writes=1", "--drop", "KAFKA-1096"]) == 1
    )
    out = capsys.readouterr().out
    assert "CTRL-FENCE is violated in 4 steps" in out
    assert "4. adopt_epoch(0)" in out
    assert fencepost(["model", "explore", "controller", "--check", "LOG-MATCH"]) == 2
    assert fencepost(["model", "list", "--json"]) == 0
    assert '"epoch_read_in_election_only"' in capsys.readouterr().out

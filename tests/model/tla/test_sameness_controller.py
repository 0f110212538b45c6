"""The explorer and TLC see the same control plane: as many states, as deep, the very same ones, and the same variants fail."""

import time

import pytest
from attrs import evolve

from fencepost.cli import run as fencepost
from fencepost.model.controller_state import CONTROL_PLANE, Constants
from fencepost.model.tla import FOLDER, SIZES, files_of, sameness
from fencepost.model.tla.controller import constants_to_tla, state_from_tla, state_to_tla
from fencepost.model.tla.sameness import compare, states_of_explorer, states_of_tlc
from fencepost.model.tlc import Outcome, RunOptions, Spec, check, show

QUICK = RunOptions(java_options=("-XX:TieredStopAtLevel=1",))
"""One worker, as ever; a JVM that is not worth warming up."""
TINY = Constants(epochs=1, writes=1)
REASSIGNED = Constants(spare=1, epochs=1, sessions=0, writes=3, reassignments=1)
CRASH = Constants(epochs=1, writes=1, crashes=1)


def test_a_state_has_one_form_on_each_side():
    """Rule: the map between states of Python and TLA+ loses nothing."""
    states = states_of_explorer(evolve(CRASH, drop={"broker_epoch_fencing"}))
    told = {show(tuple(state_to_tla(state).values())) for state in states}
    assert len(told) == len(states)
    assert all(state_from_tla(state_to_tla(state)) == state for state in states)


@pytest.mark.java
@pytest.mark.parametrize(
    ("constants", "distinct"),
    [
        (CRASH, 1_661),
        (REASSIGNED, 88),
        (evolve(TINY, epochs=2, drop={"fenced_zookeeper_write", "leader_epoch_fencing"}), 3_301),
    ],
    ids=["nothing dropped, a crash", "a reassignment", "a zombie writes, requests unfenced"],
)
def test_the_very_same_states(constants, distinct):
    """Rule: TLC's dump of Controller.tla and the Python model's states are one set."""
    states = states_of_explorer(constants)
    assert len(states) == distinct
    assert states_of_tlc(constants, QUICK) == states


@pytest.mark.java
@pytest.mark.parametrize(
    ("constants", "result", "steps", "distinct", "depth"),
    [
        (TINY, "holds", 0, 683, 10),
        (evolve(CRASH, drop={"re_elect"}), "violated", 6, 1_672, 11),
        (Constants(drop={"epoch_read_in_election_only"}, writes=1), "violated", 4, 2_722, 14),
    ],
    ids=["tiny", "restarted leader", "KAFKA-1096"],
)
def test_counts_depth_and_verdict(constants, result, steps, distinct, depth):
    """Rule: both find as many distinct states and as deep a graph, and a shortest counterexample of the same length exactly where a protection is missed."""
    comparison = compare(constants, time.monotonic, QUICK)
    assert comparison.same
    assert comparison.explorer.compared == (result, steps, distinct, depth)


@pytest.mark.java
def test_a_twin_that_differs_is_caught(monkeypatch):
    """Rule: the comparison has failed on purpose: TLC without a protection that the explorer has."""
    monkeypatch.setattr(
        sameness, "constants_to_tla", lambda constants: constants_to_tla(evolve(constants, drop={"re_elect"}))
    )
    assert not compare(CRASH, time.monotonic, QUICK, count=False).same


@pytest.mark.java
@pytest.mark.parametrize("never", ["NeverTwoControllersAtOnce", "SomebodyAlwaysLeads"])
def test_what_a_useful_set_of_constants_reaches(never, tmp_path):
    """Rule: the small configuration is not vacuous: such a `never` of the module is refuted."""
    module, config = files_of("Controller")
    mine = tmp_path / "Mine.cfg"
    text = config.read_text()
    mine.write_text(text[: text.index("INVARIANTS")] + f"INVARIANT {never}\nCHECK_DEADLOCK FALSE\n")
    found = check(Spec.at(module, mine), QUICK)
    assert (found.outcome, found.violation.name) == (Outcome.VIOLATED, never)


def test_protections_have_one_name():
    """Rule: the module's protections are those that the Python model can drop, and each shipped file is where it should be."""
    text = (FOLDER / "Controller.tla").read_text()
    listed = text[text.index("Protections ==") : text.index("ASSUME")]
    assert all(f'"{name}"' in listed for name in CONTROL_PLANE)
    assert listed.count('"') == 2 * len(CONTROL_PLANE)
    assert all(file.is_file() for size in SIZES for file in files_of("Controller", size))


def test_the_command_line(capsys):
    """Rule: every shipped model is listed and explored alike; a dropped protection ends with 1 and the way to the violation."""
    assert (
        fencepost(["model", "explore", "controller", "--constant", "writes=1", "--drop", "KAFKA-1096"]) == 1
    )
    out = capsys.readouterr().out
    assert "CTRL-FENCE is violated in 4 steps" in out
    assert "4. adopt_epoch(0)" in out
    assert fencepost(["model", "explore", "controller", "--check", "LOG-MATCH"]) == 2
    assert fencepost(["model", "list", "--json"]) == 0
    assert '"epoch_read_in_election_only"' in capsys.readouterr().out

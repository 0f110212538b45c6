"""TLC on specifications that are not ours: a violated invariant, a deadlock, a property that never comes
true, and mistakes."""

import re
from pathlib import Path

import pytest

from fencepost.cli import run as fencepost
from fencepost.model.tlc import (
    Kind,
    RunLimits,
    RunOptions,
    RunOutcome,
    RunProgress,
    Spec,
    Walks,
    check,
    find_toolbox,
    simulate,
)
from fencepost.traces.errors import FencepostError
from tests.model.quick import QUICK

SPECS = Path(__file__).parent / "specs"
pytestmark = pytest.mark.java


def spec(name: str, **constants: str) -> Spec:
    return Spec.at(SPECS / f"{name}.tla", constants=constants)


def test_a_violated_invariant():
    """Rule: the shortest counterexample comes as Python values, with the actions that lead through it."""
    seen: list[RunProgress] = []
    found = check(spec("Jugs"), QUICK, seen.append)
    violated = found.outcome, found.violation.kind, found.violation.name
    assert violated == (RunOutcome.VIOLATED, Kind.INVARIANT, "NotMeasured")
    actions = [state.action for state in found.counterexample.states]
    assert actions == ["", "Fill", "Pour", "Empty", "Pour", "Fill", "Pour"]
    assert found.counterexample.states[-1].variables["held"] == {"small": 3, "big": 4}
    assert found.steps == 6
    assert '<<"fill", "big">>' in found.output
    assert seen[-1].distinct == found.distinct
    assert (found.toolbox.jar_from, found.toolbox.jar) == (find_toolbox().jar_from, find_toolbox().jar)


def test_another_constant():
    """Rule: a constant given replaces the file's; what holds says how many states."""
    found = check(spec("Jugs", Wanted="6"), QUICK)
    assert (found.outcome, found.distinct, found.queue) == (RunOutcome.HOLDS, 16, 0)


def test_states_are_handed_over():
    """Rule: each distinct state is given once, as values."""
    states = []
    check(spec("Jugs"), QUICK, unchecked=True, on_state=states.append)
    held = [(state["held"]["small"], state["held"]["big"]) for state in states]
    assert len(held) == len(set(held)) == 16
    assert all(small in (0, 3) or big in (0, 5) for small, big in held)


def test_a_deadlock_and_its_cure():
    """Rule: a deadlock is found with the state in which nothing is possible, unless it is not looked for;
    model values are values."""
    found = check(spec("Locks"), QUICK)
    assert (found.outcome, found.violation.kind, found.exit_code) == (RunOutcome.VIOLATED, Kind.DEADLOCK, 11)
    assert {len(held) for held in found.counterexample.states[-1].variables["holds"].values()} == {1}
    assert check(spec("Locks", SameOrder="TRUE"), QUICK).outcome is RunOutcome.HOLDS


def test_a_property_that_fails_in_a_loop_and_by_stuttering():
    """Rule: a liveness counterexample ends in a way back, or in stuttering."""
    loop = check(spec("Lamp"), QUICK)
    assert (loop.outcome, loop.violation.kind) == (RunOutcome.VIOLATED, Kind.TEMPORAL)
    assert (loop.counterexample.back_to, loop.counterexample.stuttering) == (1, False)
    still = check(spec("Lamp", Fair="FALSE"), QUICK)
    assert (still.counterexample.back_to, still.counterexample.stuttering) == (None, True)


@pytest.mark.parametrize(
    ("how", "outcome", "says"),
    [
        ("head", RunOutcome.FAILED, "Head"),
        ("assert", RunOutcome.VIOLATED, "x is"),
        ("assume", RunOutcome.VIOLATED, "Assumption"),
    ],
)
def test_mistakes_of_a_specification(how, outcome, says):
    """Rule: an expression that cannot be evaluated breaks the run; an assertion or assumption that is false
    is a finding."""
    found = check(spec("Mistaken", How=f'"{how}"'), QUICK)
    assert found.outcome is outcome
    assert says in found.reason


def test_a_limit_leaves_nothing_behind(tmp_path, monkeypatch):
    """Rule: an endless specification is stopped, undecided, and its private folder is gone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = check(spec("Mistaken", How='"endless"'), RunOptions(limits=RunLimits(seconds=2, memory_mb=600)))
    assert (found.outcome, found.exit_code) == (RunOutcome.UNDECIDED, None)
    assert list(tmp_path.iterdir()) == []
    assert sorted(path.suffix for path in SPECS.iterdir()) == [".cfg"] * 4 + [".tla"] * 4


def test_a_simulation_finds_or_samples():
    """Rule: a walk that violates counts although TLC 2.15 ends with 0; walks that find nothing prove nothing.
    The seed decides."""
    walks = Walks(number=200, depth=30, seed=5)
    found = simulate(spec("Jugs"), walks, QUICK)
    assert (found.outcome, found.violation.name) == (RunOutcome.VIOLATED, "NotMeasured")
    assert found.counterexample.states[-1].variables["held"]["big"] == 4
    assert simulate(spec("Jugs", Wanted="6"), Walks(number=3, depth=5), QUICK).outcome is RunOutcome.SAMPLED


def test_mistakes_of_the_caller(tmp_path):
    """Rule: a missing file, a missing configuration and a limit that Java cannot keep are told before Java
    starts."""
    with pytest.raises(FencepostError, match="expected a TLA"):
        Spec.at(tmp_path / "None.tla")
    (tmp_path / "Alone.tla").write_text("---- MODULE Alone ----\n====\n")
    with pytest.raises(FencepostError, match="expected TLC's configuration"):
        Spec.at(tmp_path / "Alone.tla")
    with pytest.raises(FencepostError, match="at least 384 MB"):
        check(spec("Jugs"), RunOptions(limits=RunLimits(memory_mb=10)))


def test_the_command_line(capsys):
    """Rule: exit code 1 for a finding, the counterexample for a person; 2 and a sentence for a mistake."""
    assert fencepost(["model", "tlc", "check", str(SPECS / "Locks.tla"), "--workers", "1"]) == 1
    out, err = capsys.readouterr()
    assert re.search(r"violated: Deadlock reached .*TLC \d", out)
    assert "Take" in out
    assert "TLC from" in err
    assert fencepost(["model", "tlc", "check", str(SPECS / "Locks.tla"), "--constant", "Nothing=1"]) == 2
    assert "expected constants that the configuration assigns" in capsys.readouterr().err

"""Counterexamples become plans: what the model says can happen is made to happen in the implementation
without that protection, and nowhere else."""

import json
from pathlib import Path

import pytest
from attrs import evolve

from fencepost.bugs import BUGS
from fencepost.campaign.counterexample.plan import draft_plan
from fencepost.campaign.counterexample.search import Fruitless, Reproduction, protection_of, reproduce
from fencepost.campaign.counterexample.story import read_counterexample, story_of
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision
from fencepost.cli import run as fencepost
from fencepost.cli.model.tlc.tlc_words import as_dict
from fencepost.model.explore.transition_system import Step
from fencepost.model.replication.replication_state import Constants
from fencepost.model.replication.replication_system import Replication
from fencepost.model.tla.dropped import shortest_counterexample
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan_json import plan_from_json
from tests.model.replication.test_replication import CASES

FILES = Path(__file__).parent / "counterexamples"
TLC, EXPLORER = FILES / "kip_279_tlc.json", FILES / "kip_101_explorer.json"
DRAFTS = 300
SEEDS = {"KIP-101": 2, "KIP-279": 4, "KIP-320": 4, "KAFKA-7128": 5}
"""With which a few dozen drafts are enough; others may need some hundreds."""


def story(bug: str):
    """The shortest counterexample that tests/model asserts, with its history, as a story."""
    protection = protection_of(bug).name
    _, epochs, history, actions = CASES[protection]
    system = Replication(Constants(epochs=epochs, drop=frozenset({protection})), ())
    state = next(iter(system.initial()))
    path = [Step(("init",), state)]
    for action in (*history, *actions):
        state = system.apply(state, action)
        path.append(Step(action, state))
    return story_of(system.constants, path)


def read(file: Path, *drop: str):
    return read_counterexample(json.loads(file.read_bytes()), drop, file.name)


def shows(plan, *bugs: str) -> set[str]:
    """What all judges find in the plan's run."""
    verdicts = judge(run(evolve(plan, cluster=evolve(plan.cluster, bugs=bugs))))
    return {finding.anomaly for verdict in verdicts for finding in verdict.findings}


@pytest.mark.parametrize("bug", SEEDS)
def test_a_counterexample_is_reproduced(bug):
    """Rule: the plan breaks the bug's own invariant where the bug is planted, and nothing where it is not."""
    found = reproduce(story(bug), bug, seed=SEEDS[bug], most_drafts=DRAFTS)
    assert isinstance(found, Reproduction), found
    assert found.plan.cluster.bugs == ()
    assert found.finding.anomaly in BUGS[bug].anomalies & shows(found.plan, bug)
    assert shows(found.plan) == set()
    assert all(verdict.decision is Decision.OK for verdict in found.healthy)


def test_tlcs_counterexample_is_reproduced():
    """Rule: what TLC printed is enough, with the name of what was dropped; a leader that the model moved is
    moved."""
    found = reproduce(read(TLC, "truncate_below_own_epoch"), "KIP-279", seed=3, most_drafts=DRAFTS)
    assert isinstance(found, Reproduction)
    assert found.finding.anomaly in BUGS["KIP-279"].anomalies


def test_the_search_is_a_function_of_its_arguments():
    """Rule: a draft depends on the story, the seed and its number alone; another seed makes others."""
    told = story("KIP-101")
    assert draft_plan(told, (), 1, 7) == draft_plan(told, (), 1, 7)
    assert draft_plan(told, (), 1, 7) != draft_plan(told, (), 2, 7)


def test_a_search_that_finds_nothing_says_so():
    """Rule: no plan is handed out that did not show the bug: without that bug's story there is none."""
    found = reproduce(story("KIP-101"), "KAFKA-7128", seed=1, most_drafts=3)
    assert found == Fruitless(drafts=3, runs=3, near=0)


def test_a_story_is_told_by_leader_epochs():
    """Rule: TLC's order of independent steps is another one: here each era's steps stand together, and the
    story ends in the same state."""
    told = read(TLC, "truncate_below_own_epoch")
    eras = [step.era for step in told.steps]
    assert eras == sorted(eras) and told.eras == 3
    assert [step.name for step in told.steps if step.era == 1] == ["elect", "become_leader", "append"]
    last = json.loads(TLC.read_bytes())["counterexample"]["states"][-1]["variables"]
    assert [replica.high_watermark for replica in told.steps[-1].after.replicas] == [
        last["highWatermark"][str(number)] for number in range(3)
    ]


def test_what_is_no_counterexample_is_refused():
    """Rule: one sentence for a file that is none, for one of another variant, and for a protection that no
    planted bug misses."""
    with pytest.raises(FencepostError, match="name the protection that was dropped"):
        read(TLC)
    with pytest.raises(FencepostError, match="a counterexample of Replication"):
        read_counterexample({"counterexample": None}, (), "here")
    with pytest.raises(FencepostError, match="a protection that a planted bug misses"):
        protection_of("KIP-0")


def test_the_command_writes_a_plan_that_was_verified(tmp_path, capsys):
    """Rule: the command writes the plan, says how many runs it took and what both verdicts were; the file is
    a plan that shows the bug."""
    out = tmp_path / "plan.json"
    asked = [
        "model",
        "tlc",
        "to-plan",
        "--counterexample",
        str(EXPLORER),
        "--seed",
        "3",
        "--out",
        str(out),
        "--json",
    ]
    assert fencepost(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == told["drafts"] + 1
    assert {verdict["decision"] for verdict in told["without_bug"]} == {"ok"}
    plan = plan_from_json(out.read_bytes())
    assert told["anomaly"] in shows(plan, told["bug"])


def test_the_command_without_a_plan(tmp_path, capsys):
    """Rule: drafts that run out end undecided and write nothing; bad input ends with 2 and one sentence."""
    out = tmp_path / "plan.json"
    common = ["--out", str(out), "--drafts", "1"]
    assert (
        fencepost(["model", "tlc", "to-plan", "--counterexample", str(EXPLORER), *common, "--seed", "5"]) == 3
    )
    assert fencepost(["model", "tlc", "to-plan", *common]) == 2
    assert (
        fencepost(["model", "tlc", "to-plan", "--counterexample", str(tmp_path / "none.json"), *common]) == 2
    )
    (tmp_path / "bad.json").write_text("{")
    assert (
        fencepost(["model", "tlc", "to-plan", "--counterexample", str(tmp_path / "bad.json"), *common]) == 2
    )
    assert not out.exists()
    assert capsys.readouterr().err.count("expected") == 3


def test_tlc_is_asked_for_the_invariant_that_falls():
    """Rule: without a file TLC finds the shortest counterexample of the bug's own invariant, and it reads as
    a story."""
    constants = Constants(replicas=2, epochs=2, drop=frozenset({"truncate_below_own_epoch"}))
    result = shortest_counterexample(constants, "LOG-MATCH")
    assert (result.violation.name, result.steps) == ("LogMatch", 10)
    told = read_counterexample(as_dict(result), constants.drop, "TLC")
    assert [step.name for step in told.steps if step.era == 1] == ["elect", "become_leader", "append"]

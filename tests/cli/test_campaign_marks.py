"""What `fencepost campaign` tells of marks, and of the kinds of fault there are."""

from fencepost.campaign.marks.marks import NAMES
from fencepost.run.faults.table import KINDS
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json


def test_a_campaign_tells_which_marks_it_reached(fencepost, tmp_path) -> None:
    """The summary and --json count the runs that reached each mark, and name those that none did; --resume
    counts those of earlier sittings."""
    command = ("campaign", "--seeds", "5:8", "--jobs", 1, "--out", tmp_path / "c")
    told = fencepost(*command, "--json").json
    assert told["marks"] and set(told["marks"]) | set(told["never_reached"]) <= set(NAMES)
    assert not set(told["marks"]) & set(told["never_reached"])
    assert all(1 <= count <= 3 for count in told["marks"].values())
    again = fencepost(*command, "--resume")
    possible = len(told["marks"]) + len(told["never_reached"])
    assert f"{len(told['marks'])} of {possible}" in again.out and "never reached" in again.out
    assert fencepost(*command, "--resume", "--json").json["marks"] == told["marks"]


def test_the_lists_show_every_kind_and_every_mark(fencepost) -> None:
    """--list-faults and --list-marks name all there are, the marks with the profiles that reach each, and run
    nothing."""
    faults = fencepost("campaign --list-faults --json").json["faults"]
    assert [row["kind"] for row in faults] == list(KINDS)
    assert all(row["says"] and row["parameter"] and row["systems"] for row in faults)
    of = {row["kind"]: row for row in faults}
    assert of["bounce"]["parameter"].endswith("(1 to 400)") and of["pause"]["parameter"] == "not used"
    assert of["power_loss"]["costs"] == ["stops the broker", "loses data"] and of["loss"]["costs"] == []
    assert of["pause"]["systems"] == ["simulated", "embedded", "real (pause)"]
    assert of["client_loss"]["systems"] == ["embedded"]
    marks = {row["mark"]: row for row in fencepost("campaign --list-marks --json").json["marks"]}
    assert tuple(marks)[: len(NAMES)] == NAMES and "default" in marks["log_cut"]["profiles"]
    assert {"strong (--system)", "real (--system)"} <= set(marks["written_between"]["profiles"])
    assert marks["commit_refused"]["profiles"] == ["default"]


def test_a_plan_of_ones_own_is_not_steered(fencepost, tmp_path) -> None:
    """--steer with --plan is a usage error in one sentence: there is no draw to lean."""
    plan = tmp_path / "plan.json"
    plan.write_text(plan_to_json(Plan(seed=0)))
    told = fencepost("campaign --plan", plan, "--steer", "--out", tmp_path / "c")
    assert told.code == 2 and "--plan" in told.sentence


def test_a_steered_seed_is_replayed_from_its_name(fencepost) -> None:
    """The name of a steered profile is enough to make the plan of a seed again."""
    told = fencepost("replay --seed 3 --profile calm+log_start_moved --json")
    assert told.code == 0 and told.json["replay"].endswith("--profile calm+log_start_moved")

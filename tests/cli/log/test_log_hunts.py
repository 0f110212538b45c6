"""Hunts of the log machine from the command line: what they tell, keep and refuse."""

import subprocess
import sys


def test_the_bugs_of_the_log_are_listed(fencepost) -> None:
    """Rule: each planted bug of the log is a row with what it breaks, its story and who finds it."""
    told = fencepost("campaign bugs list --json")
    rows = {bug["bug"]: bug for bug in told.json["log_bugs"]}
    assert rows["KAFKA-4529"]["breaks"] == "COMPACTION"
    assert rows["KAFKA-4529"]["found_by"] == "log machine"
    assert "delete.retention.ms" in rows["KAFKA-4529"]["story"]


def test_a_hunt_ends_in_a_script_that_shows_the_bug(fencepost, tmp_path) -> None:
    """Rule: the record names examples and steps, the script beside it fails the same way, and a recorded bug
    is not hunted again."""
    asked = ("campaign bugs hunt KAFKA-5249 --examples 400 --no-shrink --out", tmp_path, "--json")
    first = fencepost(*asked)
    assert first.code == 0 and first.json["hunts"] == []
    (hunt,) = first.json["log_hunts"]
    assert 1 <= hunt["examples_needed"] <= 400 and hunt["steps"] >= 1
    script = subprocess.run(
        [sys.executable, str(tmp_path / "KAFKA-5249.py")], capture_output=True, text=True, check=False
    )
    assert script.returncode == 1
    assert script.stderr.splitlines()[-1].endswith(hunt["complaint"].splitlines()[-1])
    assert fencepost(*asked).json["log_hunts"] == first.json["log_hunts"]


def test_a_hunt_that_finds_nothing_is_undecided(fencepost) -> None:
    """Rule: one example proves nothing about a bug that takes several steps."""
    told = fencepost("campaign bugs hunt KAFKA-4529 --examples 1")
    assert told.code == 3
    assert "not in 1" in told.out


def test_an_unknown_bug_is_refused_with_the_ids_of_both_kinds(fencepost) -> None:
    """Rule: one sentence, what was expected and what was seen."""
    told = fencepost("campaign bugs hunt KAFKA-1")
    assert told.code == 2
    assert "KAFKA-4529" in told.sentence and "KIP-101" in told.sentence


def test_a_garbled_record_is_refused(fencepost, tmp_path) -> None:
    """Rule: a record that is none is named, not overwritten."""
    (tmp_path / "log-track-record.json").write_text("[")
    told = fencepost("campaign bugs hunt KAFKA-6975 --out", tmp_path)
    assert told.code == 2
    assert "log-track-record.json" in told.sentence

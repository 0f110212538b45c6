"""`fencepost check --checks kafka` judges histories of Jepsen's Kafka workload as they are."""

import json
import re
from pathlib import Path

import pytest

from fencepost.cli import run
from fencepost.traces.anomalies import ANOMALIES

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "anomalies.md"


def documented_history() -> str:
    """The history that docs/reference/anomalies.md shows."""
    return "\n".join(
        line.strip() for line in DOCUMENT.read_text().split("\n") if line.startswith("    {:index")
    )


def check(path: Path, capsys: pytest.CaptureFixture[str], checks: str) -> tuple[int, dict]:
    """Exit code and answer of the command."""
    capsys.readouterr()
    code = run(["check", str(path), "--checks", checks, "--jobs", "1", "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_anomalies_are_listed(fencepost) -> None:
    """--anomalies lists every name that a finding can have, the one that names a trace first, with what
    allows it."""
    told = fencepost("check --anomalies --json").json["anomalies"]
    assert [row["name"] for row in told] == [anomaly.name for anomaly in ANOMALIES]
    assert [row["rank"] for row in told] == sorted(row["rank"] for row in told)
    assert all(row["definition"] and row["breaks"] for row in told)
    assert {row["name"] for row in told if row["jepsen"]} >= {"lost_write", "poll_skip"}
    out = fencepost("check --anomalies").out
    assert "lost_write" in out and "acks=0 and 1" in out


def test_jepsens_names_are_documented() -> None:
    """docs/reference/anomalies.md has each name of Jepsen's workload with ours."""
    rows = re.findall(r"^\| ([\w-]+) \| `(\w+)` \|$", DOCUMENT.read_text(), flags=re.M)
    assert rows == [(anomaly.jepsen, anomaly.name) for anomaly in ANOMALIES if anomaly.jepsen]


def test_the_documented_history_is_judged(tmp_path, capsys) -> None:
    """The history of the documentation is read and nothing is found."""
    path = tmp_path / "history.edn"
    path.write_text(documented_history())
    code, answer = check(path, capsys, "kafka,groups")
    assert (code, answer["decisions"]) == (0, {"ok": 1})


def test_another_value_is_told_by_both(tmp_path, capsys) -> None:
    """A poll that shows another value than was acknowledged is told by the log check, and by kafka as a lost
    write; exit code 1."""
    path = tmp_path / "history.edn"
    path.write_text(documented_history().replace("[[0 10]]}", "[[0 11]]}"))
    code, answer = check(path, capsys, "kafka")
    assert (code, answer["anomalies"]) == (1, {"lost_write": 1})
    assert [(f["check"], f["anomaly"]) for f in answer["verdicts"][0]["findings"]] == [
        ("kafka", "lost_write"),  # the headline first
        ("log", "inconsistent_offsets"),
        ("log", "phantom_record"),
    ]


def test_what_the_last_look_misses_is_unseen(tmp_path, capsys) -> None:
    """An acknowledged record that a consumer does not find, after it sought the beginning, is told by the
    kafka check; exit code 1."""
    path = tmp_path / "history.edn"
    lines = documented_history().replace("[:poll {0 [[0 10]]}]", "[:poll {}]").split("\n")
    text = "\n".join([*lines[2:4], *lines[:2], *lines[4:]])
    path.write_text(re.sub(r":(?:index|time) \d+, ", "", text))
    code, answer = check(path, capsys, "kafka")
    assert (code, answer["verdicts"][0]["findings"][0]["check"]) == (1, "kafka")
    assert answer["anomalies"] == {"unseen": 1}


def test_what_is_not_understood_is_told(tmp_path, capsys) -> None:
    """A function that is none of the workload's is refused with file and line, and exit code 2 where nothing
    else was readable."""
    path = tmp_path / "history.edn"
    path.write_text(documented_history() + "\n{:type :invoke, :process 9, :f :smash, :value nil}")
    code, answer = check(path, capsys, "kafka")
    assert code == 2
    assert answer["unreadable"][0].startswith(f"{path}:7: expected a function out of assign, crash, poll")

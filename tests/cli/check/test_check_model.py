"""`fencepost check --model`: what it prints and answers, and how it tells mistakes."""

import json
import re
import sys
from pathlib import Path

import pytest

from fencepost.checkers.models import MODELS
from fencepost.checkers.models.workloads import WORKLOADS
from fencepost.mining.inputs.traces import FORMATS

HISTORIES = Path(__file__).parents[2] / "checkers" / "linearizability" / "histories"
MODELS_TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "models.md").read_text()


def test_a_folder_with_one_verdict_per_history(fencepost, tmp_path) -> None:
    """Every readable history of a folder gets a verdict with counts and time; what is unreadable is told and
    left out."""
    for name in ("stale-read.edn", "late-effect.log"):
        (tmp_path / name).write_text((HISTORIES / name).read_text())
    (tmp_path / "broken.edn").write_text("[{:process 0")
    told = fencepost("check", tmp_path, "--model", "cas-register", "--failed-cas-observes", "--json")
    assert told.code == 1
    assert [
        (Path(row["source"]).name, row["decision"], row["operations"]) for row in told.json["verdicts"]
    ] == [("late-effect.log", "ok", 5), ("stale-read.edn", "illegal", 4)]
    assert all(row["seconds"] >= 0 and row["parts"] == 1 for row in told.json["verdicts"])
    (reason,) = told.json["unreadable"]
    assert "broken.edn:1: expected a closing }" in reason


def test_an_illegal_history_is_drawn(fencepost) -> None:
    """The finding is told in words and drawn with a lane per process, the convicting operations marked;
    --explain 0 leaves it out."""
    told = fencepost("check", HISTORIES / "stale-read.edn", "--model", "register")
    assert told.code == 1
    assert "read() -> 1 of process 3" in told.out
    assert re.search(r"^>>> .*╔═ read\(\) -> 1$", told.out, flags=re.M)
    assert "process 0" in told.out
    assert (
        "╔" not in fencepost("check", HISTORIES / "stale-read.edn", "--model", "register", "--explain", 0).out
    )


def test_exit_codes(fencepost, tmp_path) -> None:
    """Ok is 0, Illegal 1, undecided 3, unreadable beside Ok 4, nothing readable 2."""
    good = HISTORIES / "late-effect.log"
    (tmp_path / "broken.edn").write_text("[")
    assert fencepost("check", good, "--model", "cas-register").code == 0
    assert fencepost("check", good, "--model", "counter").code == 3
    assert fencepost("check", good, tmp_path / "broken.edn", "--model", "cas-register").code == 4
    assert fencepost("check", tmp_path / "broken.edn", "--model", "cas-register").code == 2


def test_initial_and_limits_reach_the_judge(fencepost) -> None:
    """--initial starts the model elsewhere; a timeout that is met is undecided and says so."""
    sample = HISTORIES / "counter.json"
    assert fencepost("check", sample, "--model", "counter").code == 1
    assert fencepost("check", sample, "--model", "counter", "--initial", "1").code == 0
    told = fencepost("check", sample, "--model", "counter", "--timeout", "1e-9", "--memory", 64)
    assert told.code == 3
    assert "time limit" in told.out


USAGE = [
    (["--model", "nope"], "--model: expected a model out of register"),
    (
        ["--model", "counter", "--format", "xml"],
        "expected --format out of auto, fencepost, edn, json, jepsen-log",
    ),
    (["--model", "counter", "--initial", "{"], "expected --initial as JSON"),
    (["--model", "counter", "--checks", "log"], "expected --model without --checks and --profile"),
    (["--timeout", "3"], "expected --model with --initial, --parameter, --timeout and --memory"),
]


@pytest.mark.parametrize(("options", "says"), USAGE)
def test_mistakes_are_told_in_one_sentence(fencepost, options, says) -> None:
    """A mistake of the caller is one sentence and exit code 2."""
    told = fencepost("check", HISTORIES / "counter.json", *options)
    assert told.code == 2
    assert says in told.sentence


def test_overlap_is_told_and_demanded(fencepost, tmp_path) -> None:
    """The number of overlapping pairs is in the table and in the JSON; a minimum that is not met, or no
    success at all, is assumption_broken."""
    entry = '{{"process":{},"type":"{}","f":"write","value":{}}}'
    lines = [(0, "invoke", 1), (1, "invoke", 2), (0, "ok", 1), (1, "ok", 2), (0, "invoke", 3), (0, "ok", 3)]
    (tmp_path / "h.json").write_text("\n".join(entry.format(*line) for line in lines))
    told = fencepost("check", tmp_path / "h.json", "--model", "register", "--json")
    assert (told.code, told.json["verdicts"][0]["overlapping"]) == (0, 1)
    assert "overlapping" in fencepost("check", tmp_path / "h.json", "--model", "register").out
    assert fencepost("check", tmp_path / "h.json", "--model", "register", "--minimum-overlap", "1").code == 0
    weak = fencepost("check", tmp_path / "h.json", "--model", "register", "--minimum-overlap", "2", "--json")
    (row,) = weak.json["verdicts"]
    assert (weak.code, row["decision"]) == (3, "assumption_broken")
    assert row["reason"] == "1 pairs of operations overlapped, where at least 2 were asked for"
    (tmp_path / "h.json").write_text(entry.format(0, "invoke", 1))
    none = fencepost("check", tmp_path / "h.json", "--model", "register", "--json")
    assert (none.code, none.json["verdicts"][0]["decision"]) == (3, "assumption_broken")


def test_what_can_be_asked_is_listed(fencepost) -> None:
    """Rule: `check --models` lists models and workloads with their functions, as a table and as JSON."""
    told = fencepost("check --models")
    assert told.code == 0 and "total-queue" in told.out and "fenced-lock" in told.out
    rows = {row["name"]: row for row in json.loads(fencepost("check --models --json").out)["models"]}
    assert set(rows) == {*MODELS, *WORKLOADS}
    assert (rows["bank"]["kind"], rows["register"]["kind"]) == ("workload", "model")
    assert (rows["register"]["linear"], rows["counter"]["linear"]) == ("yes", "no")
    assert fencepost("check").code == 2


def test_a_workload_is_judged_as_a_whole(fencepost, tmp_path) -> None:
    """Rule: what was acknowledged and never fetched is named; without --model the sentence says what fits."""
    lines = [
        {"process": 0, "type": kind, "f": "publish", "value": value}
        for value in ("a", "b")
        for kind in ("invoke", "ok")
    ]
    fetched = [{"process": 1, "type": kind, "f": "fetch", "value": ["b"]} for kind in ("invoke", "ok")]
    path = tmp_path / "messages.json"
    path.write_text("\n".join(map(json.dumps, [*lines, *fetched])))
    told = fencepost("check --model total-queue", path)
    assert told.code == 1 and "element_lost" in told.out and 'publish("a")' in told.out
    assert "total-queue" in fencepost("check", path).err


def test_formats_are_documented() -> None:
    """docs/reference/models.md lists each format, in order, and names the command that lists the models."""
    formats = MODELS_TEXT.split("## Foreign formats")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", formats, flags=re.M) == [*FORMATS[1:]]
    assert "fencepost check --models" in MODELS_TEXT


def test_the_worked_example_works(fencepost, tmp_path, monkeypatch) -> None:
    """The bank of docs/reference/models.md judges a transfer that was read, and one that was not."""
    (tmp_path / "bank_of_the_docs.py").write_text(MODELS_TEXT.split("```python\n")[1].split("```")[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    history = """{"process":0,"type":"invoke","f":"cas","value":[0,1,4]}
    {"process":0,"type":"info","f":"cas","value":[0,1,4]}
    {"process":1,"type":"invoke","f":"read"} {"process":1,"type":"ok","f":"read","value":[6,14]}
    {"process":1,"type":"invoke","f":"read"} {"process":1,"type":"ok","f":"read","value":[%s]}"""
    for second, code in (("6,14", 0), ("10,10", 1)):
        (tmp_path / "bank.json").write_text(history % second)
        assert fencepost("check", tmp_path / "bank.json", "--model", "bank_of_the_docs:Bank").code == code
    sys.modules.pop("bank_of_the_docs", None)

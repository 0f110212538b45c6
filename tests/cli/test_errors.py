"""Whatever the caller or the machine does wrong is told in one sentence, with the exit code of the table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

import fencepost
from fencepost import cli
from fencepost.checkers.models import model_named
from fencepost.history import History, assert_linearizable
from fencepost.traces.errors import FencepostError
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace
from tests.checkers import lab

FOREIGN = Trace(trace_id=1, plan="", seed=0, target="elsewhere", software_version="1")

USAGE = [
    (["nope"], "No such command 'nope'."),
    (["campaign", "--seeds", "5:3"], "Invalid value for '--seeds': expected A below B, saw '5:3'"),
    (["campaign", "--seeds", "x"], "Invalid value for '--seeds': expected seeds as A:B or N, saw 'x'"),
    (["campaign", "--seeds", f"{2**63}"], "Invalid value for '--seeds': expected seeds below"),
    (["campaign", "--bug", "KIP-999"], "planted bugs: expected one of KAFKA-1028, "),
    (
        ["campaign", "--checks", "lgo"],
        "the list of checks: expected checks out of log, kafka, transactions, groups, exactly_once, "
        "invariants, conformance, liveness, application, saw 'lgo'",
    ),
    (["campaign", "--profile", "wild"], "swarm profile: expected default"),
    (
        ["campaign", "--plan", "missing.json"],
        "missing.json: expected a readable file, saw No such file or directory",
    ),
    (["replay"], "expected one of --trace, --seed and --plan, saw none of them"),
    (
        ["replay", "--seed", "1", "--trace", "2"],
        "expected one of --trace, --seed and --plan, saw --trace and --seed",
    ),
    (["replay", "--trace", "1"], "expected a folder of traces with --trace, saw none"),
    (
        ["replay", "x", "--trace", "1", "--bug", "KIP-101"],
        "expected --trace alone: a stored run knows its own plan",
    ),
    (["replay", "x", "--seed", "1"], "expected no folder with --seed, saw x"),
    (["replay", "missing", "--trace", "1"], "missing: expected a folder of traces, saw no such folder"),
    (
        ["check", "missing"],
        "unreadable, left out: missing: expected a file or folder of traces, saw nothing there",
    ),
    (
        ["check", "missing", "--profile", "x"],
        "the profile of the log check: expected a profile out of default",
    ),
    (["mine", "missing", "--out", "mined"], "expected a folder of traces, saw no such folder"),
    (["campaign", "bugs", "hunt", "KIP-999"], "planted bugs: expected one of"),
    (["replay", "--seed", "1", "--anomaly", "lost_wrte"], "saw 'lost_wrte' (did you mean 'lost_write'?)"),
    (["check", "x", "--model", "register", "--timeout", "nan"], "nan is not in the range x>0"),
    (["shrink", "x", "--seconds", "NaN"], "nan is not in the range"),
    (["model", "tlc", "check", "--timeout", "nan"], "nan is not in the range x>0"),
]


@pytest.mark.parametrize(("arguments", "says"), USAGE)
def test_usage_is_told_in_one_sentence(fencepost, arguments, says, tmp_path, monkeypatch) -> None:
    """A mistake of the caller is one sentence on standard error, nothing on standard output of --json, exit
    code 2."""
    monkeypatch.chdir(tmp_path)
    told = fencepost(*arguments)
    assert told.code == 2
    assert says in told.sentence
    assert not list(tmp_path.iterdir()), "a refused command leaves nothing behind"


def test_a_plan_with_an_unknown_field(fencepost, tmp_path) -> None:
    """An unknown field of a plan is named with its path and its file."""
    plan = tmp_path / "plan.json"
    plan.write_text('{"seed":1,"cluster":{"broker":3}}')
    for command in ("campaign", "replay"):
        told = fencepost(command, "--plan", plan)
        assert told.code == 2
        assert f"{plan}.cluster.broker: expected one of the fields brokers," in told.sentence


def test_a_truncated_trace(fencepost, tmp_path) -> None:
    """A cut file is told with its line; alone it is nothing readable (2), beside a whole one it is
    quarantined (4)."""
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    write_traces(whole, [FOREIGN])
    write_traces(cut, [FOREIGN])
    cut.write_bytes(cut.read_bytes()[:-20])
    alone = fencepost("check", cut)
    assert alone.code == 2
    assert (
        f"unreadable, left out: {cut}:1: expected a whole last line, saw one that was cut" in alone.sentence
    )
    both = fencepost("check", whole, cut, "--checks", "log", "--json")
    assert both.code == 4
    assert (both.json["traces"], len(both.json["unreadable"])) == (1, 1)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00", b"[]\n", b'{"type":"trace"}\n', b"PAR1"])
def test_an_unreadable_trace(fencepost, tmp_path, content) -> None:
    """Bytes that are no trace are nothing readable, whatever they are."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    told = fencepost("check", path)
    assert told.code == 2
    assert f"{path}" in told.sentence and ": expected " in told.sentence


def test_a_broken_part_is_left_out(fencepost, planted, tmp_path) -> None:
    """A Parquet part that was cut is quarantined, and the journal beside it is still judged."""
    store = lab.stored(tmp_path / "store", [TraceStore.open(planted).read(0)], sealed=False)
    part = next((planted / "traces").glob("*.parquet"))
    for table in ("traces", "operations", "events"):
        source = planted / table / part.name
        (store.path / table / part.name).write_bytes(source.read_bytes()[: source.stat().st_size // 2])
    told = fencepost("check", store.path, "--json")
    assert told.code == 4
    assert told.json["decisions"] == {"ok": 1}
    assert told.json["unreadable"]


def test_one_file_of_a_store_is_not_a_trace(fencepost, planted) -> None:
    """Pointing at a Parquet file says which folder to point at."""
    told = fencepost("check", next((planted / "traces").glob("*.parquet")))
    assert told.code == 2
    assert "name the folder that holds traces/" in told.sentence


def test_a_foreign_trace_cannot_be_replayed(fencepost, tmp_path) -> None:
    """A trace without a plan can be judged, not run again, and says so."""
    lab.stored(tmp_path / "store", [FOREIGN], sealed=False)
    told = fencepost("replay", tmp_path / "store", "--trace", 1)
    assert told.code == 2
    assert (
        "expected a plan to run again, saw a trace without one; a foreign trace can be judged"
        in told.sentence
    )


def _fake_java(folder: Path, banner: str) -> Path:
    folder.mkdir()
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize("command", [["mine"], ["demo"]])
def test_java_is_missing_or_too_old(fencepost, planted, tmp_path, monkeypatch, command) -> None:
    """Without a Java runtime, or with one below 17, what needs Spark says so in one sentence before it does
    anything."""
    arguments = [*command, *([planted] if command == ["mine"] else []), "--out", tmp_path / "out"]
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(_fake_java(tmp_path / "old", 'openjdk version "11.0.2" 2019-01-15')))
    told = fencepost(*arguments)
    assert told.code == 2
    assert "expected Java 17 or newer for Spark, saw Java 11" in told.sentence
    monkeypatch.setenv("PATH", str(tmp_path))
    told = fencepost(*arguments)
    assert told.code == 2
    assert "expected Java 17 or newer for Spark, saw no java on the path" in told.sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", [["mine"], ["demo"]])
def test_an_extra_is_missing(fencepost, planted, tmp_path, monkeypatch, command) -> None:
    """Without pyspark the sentence says which libraries to install."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    arguments = [*command, *([planted] if command == ["mine"] else []), "--out", tmp_path / "out"]
    told = fencepost(*arguments)
    assert told.code == 2
    assert "pip install 'pyspark>=4.0' 'pandas>=2.2,<3'" in told.sentence


def test_a_folder_that_cannot_be_written(fencepost, tmp_path) -> None:
    """An output path below a file is refused in one sentence."""
    (tmp_path / "file").write_text("")
    told = fencepost("campaign --seeds 1 --out", tmp_path / "file" / "x")
    assert told.code == 2
    assert "expected a folder to write to, saw" in told.sentence


def test_the_demo_does_not_delete_what_is_not_its_own(fencepost, tmp_path) -> None:
    """A folder with other files in it is refused, and the files stay."""
    (tmp_path / "precious").write_text("data")
    told = fencepost("demo --out", tmp_path)
    assert told.code == 2
    assert "expected a new folder, or an earlier demo's, saw other files in it" in told.sentence
    assert (tmp_path / "precious").read_text() == "data"


def test_a_mistake_of_our_own_is_no_finding(fencepost, monkeypatch) -> None:
    """An internal error shows its traceback, asks for a report, and never exits 1, which would read as a
    finding."""

    def broken(**_: object) -> None:
        raise AssertionError("leader epoch 3 after 4")

    monkeypatch.setattr(cli.group, "main", broken)
    told = fencepost("campaign bugs list")
    assert told.code == 2
    assert "leader epoch 3 after 4" in told.err and "please report it" in told.err


def test_a_digest_that_does_not_repeat(fencepost, planted, tmp_path) -> None:
    """A stored run whose digest another execution does not confirm is undecided, and says which version
    recorded it."""
    trace = TraceStore.open(planted).read(0)
    lab.stored(tmp_path / "store", [evolve(trace, digest="0" * 32)], sealed=False)
    told = fencepost("replay", tmp_path / "store", "--trace", 0, "--json")
    assert told.code == 3
    assert told.json["repeats"] is False
    assert "did not repeat: it was recorded by fencepost" in told.err


def test_errors_of_the_python_api_speak_python() -> None:
    """Rule: what can be called from Python names no option of the command line as the place of a mistake."""
    package = Path(fencepost.__file__).parent
    spoken = [
        path
        for path in package.rglob("*.py")
        if not {"cli", "console"} & set(path.relative_to(package).parts) and 'where="--' in path.read_text()
    ]
    assert spoken == []
    for call, says in (
        (lambda: model_named("regster"), "the model: expected a model out of"),
        (
            lambda: assert_linearizable(History(), "no_such_module:X"),
            "the model no_such_module:X: expected a module",
        ),
        (
            lambda: assert_linearizable(History(), "semaphore"),
            r"the model semaphore: expected its parameters \(permits\)",
        ),
    ):
        with pytest.raises(FencepostError, match=says) as failed:
            call()
        assert "--" not in str(failed.value)


def test_a_reader_that_has_enough_is_no_mistake(tmp_path) -> None:
    """Rule: with a closed pipe, as of `| head -1`, a command ends without a word."""
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "fencepost", "doctor", "--help"]
    try:
        done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, check=False, timeout=120)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (130, b"")

"""`mine convert`: any history into Parquet, and back to JSON lines, with nothing lost or half done."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from fencepost.mining.inputs.traces import Found, traces_of
from fencepost.traces.digest import digest_of
from fencepost.traces.jsonlines import read_traces, write_traces
from fencepost.traces.parquet.writer import PartWriter
from fencepost.traces.store import TraceStore

HISTORIES = Path(__file__).parents[1] / "checkers" / "linearizability" / "histories"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "histories"
FOREIGN = ["stale-read.edn", "late-effect.log", "keys.txt", "counter.json"]


def digests(path: Path) -> list[str]:
    """Of what a path holds, computed from the rows."""
    found = list(traces_of((path,), "auto"))
    assert all(isinstance(one, Found) for one in found), found
    return sorted(digest_of(one.trace) for one in found)


def round_trip(fencepost, source: Path, folder: Path) -> None:
    """Through Parquet, JSON lines and Parquet again."""
    steps = [source, folder / "a", folder / "b.jsonl", folder / "c"]
    for origin, target in pairwise(steps):
        told = fencepost("mine convert", origin, "--out", target, "--json")
        assert (told.code, told.json["to"]) == (0, "jsonl" if target.suffix else "parquet")
    assert len({tuple(digests(step)) for step in steps}) == 1
    assert sorted(trace.digest for trace in TraceStore.open(folder / "c")) == digests(source)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_history_goes_round(fencepost, tmp_path, name) -> None:
    """Each foreign format becomes Parquet, then JSON lines, then Parquet again: the digest stays, and the
    file is named."""
    round_trip(fencepost, HISTORIES / name, tmp_path)


def test_a_campaign_goes_round(fencepost, tmp_path, planted) -> None:
    """Runs of the simulator keep their ids, plans, claims and events."""
    round_trip(fencepost, planted, tmp_path)
    stored = {trace.trace_id: trace for trace in TraceStore.open(planted)}
    assert {trace.trace_id: trace for trace in TraceStore.open(tmp_path / "c")} == stored
    assert list(read_traces(tmp_path / "b.jsonl")) == list(stored.values())


def test_a_folder_of_histories_becomes_one_folder_of_traces(fencepost, tmp_path) -> None:
    """Histories without an id are numbered in order; the answer says which is which; verdicts are those of
    the files."""
    told = fencepost("mine convert", HISTORIES, "--out", tmp_path / "all", "--json")
    names = [Path(row["source"]).name for row in told.json["foreign"]]
    assert names == sorted(names) and set(FOREIGN) <= set(names)
    assert [row["trace_id"] for row in told.json["foreign"]] == list(range(len(names)))
    checked = fencepost("check", tmp_path / "all", "--model", "cas-register", "--jobs", 1, "--json").json
    verdicts = {names[row["trace_id"]]: row["decision"] for row in checked["verdicts"]}
    assert (verdicts["stale-read.edn"], verdicts["late-effect.log"]) == ("illegal", "ok")


@pytest.mark.skipif(not SHARED.exists(), reason="no recorded histories beside the repository")
def test_recorded_histories_keep_their_verdicts(fencepost, tmp_path) -> None:
    """Recordings of other people's systems are judged in Parquet as in their own format."""
    fencepost("mine convert", SHARED, "--out", tmp_path / "all", "--json")
    for model, wanted in (("cas-register", ["illegal", "ok"]), ("key-value", ["illegal", "ok"])):
        told = fencepost("check", tmp_path / "all", "--model", model, "--jobs", 1, "--json")
        decided = [row["decision"] for row in told.json["verdicts"] if row["decision"] in ("ok", "illegal")]
        assert decided[-2:] == wanted


def test_nothing_is_written_for_input_that_is_unreadable(fencepost, tmp_path) -> None:
    """One broken file and there is no output at all; with --keep-going it is left out, told, and the exit
    code is 4."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.edn").write_text((HISTORIES / "stale-read.edn").read_text())
    (tmp_path / "in" / "zbroken.edn").write_text("[{:process 0")
    for out in ("folder", "file.jsonl"):
        told = fencepost("mine convert", tmp_path / "in", "--out", tmp_path / out)
        assert told.code == 2
        assert "zbroken.edn:1: expected a closing }" in told.sentence and "--keep-going" in told.sentence
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    told = fencepost("mine convert", tmp_path / "in", "--out", tmp_path / "some", "--keep-going", "--json")
    assert (told.code, told.json["traces"], len(told.json["unreadable"])) == (4, 1, 1)


def test_an_interrupted_conversion_leaves_nothing(fencepost, tmp_path, monkeypatch) -> None:
    """Ctrl-C while parts are written removes what was begun; a folder that was empty stays."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PartWriter, "write", interrupted)
    (tmp_path / "out").mkdir()
    told = fencepost("mine convert", HISTORIES / "stale-read.edn", "--out", tmp_path / "out")
    assert told.code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and not any((tmp_path / "out").iterdir())


def test_what_stands_there_is_left_alone(fencepost, tmp_path) -> None:
    """An existing file or full folder is not written over; bad names are told in a sentence."""
    history = HISTORIES / "stale-read.edn"
    (tmp_path / "full").mkdir()
    for path in (tmp_path / "full" / "x", tmp_path / "file.jsonl"):
        path.write_text("mine")
    for out in ("full", "file.jsonl"):
        told = fencepost("mine convert", history, "--out", tmp_path / out)
        assert told.code == 2 and "saw something there already" in told.sentence
    assert (tmp_path / "file.jsonl").read_text() == (tmp_path / "full" / "x").read_text() == "mine"
    assert (
        "expected --format out of"
        in fencepost("mine convert", history, "--out", tmp_path / "a", "--format", "x").sentence
    )
    assert (
        "expected a file or folder"
        in fencepost("mine convert", tmp_path / "no", "--out", tmp_path / "a").sentence
    )
    (tmp_path / "empty.jsonl").write_text("\n")
    assert (
        "expected traces to convert, saw none"
        in fencepost(
            "mine convert", tmp_path / "empty.jsonl", "--format", "fencepost", "--out", tmp_path / "a"
        ).sentence
    )
    assert not (tmp_path / "a").exists()


def test_two_runs_under_one_id(fencepost, tmp_path, planted) -> None:
    """The same run twice goes over once; another run under its id is refused, unless ids are given anew."""
    folder = planted
    twice = fencepost("mine convert", folder, folder.parent, "--out", tmp_path / "a", "--json")
    assert twice.json["traces"] == 10
    trace = TraceStore.open(folder).read(3)
    text = tmp_path / "other.jsonl"
    write_traces(text, [trace])
    text.write_text(text.read_text().replace('"seed":3', '"seed":4', 1))
    assert (
        "expected one run under trace id 3"
        in fencepost("mine convert", folder, text, "--out", tmp_path / "b").sentence
    )
    told = fencepost("mine convert", folder, text, "--out", tmp_path / "b", "--renumber", "--json").json
    assert (told["traces"], told["restated_digests"]) == (11, 1)
    assert TraceStore.open(tmp_path / "b").trace_ids() == set(range(11))


def test_memory_does_not_grow_with_the_number_of_traces(fencepost, tmp_path, monkeypatch) -> None:
    """Traces are written as they are read: never more than two are alive at once."""
    from weakref import ref

    from fencepost.traces.trace import Trace

    lines = []
    for number in range(30):
        head = {"type": "trace", "trace_id": number, "plan": "", "seed": number, "software_version": ""}
        row = {
            "type": "operation",
            "op_id": 0,
            "process": 0,
            "function": "read",
            "invoke_time": 0,
            "outcome": "unknown",
        }
        lines += [json.dumps(head), json.dumps(row)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    seen: list[ref[Trace]] = []
    most = 0

    def counted(trace: Trace) -> str:
        nonlocal most
        seen.append(ref(trace))
        most = max(most, sum(one() is not None for one in seen))
        return digest_of(trace)

    monkeypatch.setattr("fencepost.traces.digest.digest_of", counted)
    for out in ("a", "a.jsonl"):
        assert fencepost("mine convert", tmp_path / "many.jsonl", "--out", tmp_path / out).code == 0
    assert 1 <= most <= 3

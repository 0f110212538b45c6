"""`model tlc conform`: what it says of runs that are explained, of one that is not, and of other input."""

import json

from attrs import evolve

from fencepost.cli import run as fencepost
from fencepost.traces.jsonlines import write_traces
from tests.checkers.conformance_by_hand import START
from tests.checkers.traces_by_hand import appends, shows, trace


def told(capsys, *arguments) -> tuple[int, dict]:
    code = fencepost(["model", "tlc", "conform", *map(str, arguments), "--json"])
    return int(code), json.loads(capsys.readouterr().out)


def test_the_first_unexplained_event_is_told_with_its_guard(tmp_path, capsys):
    """Rule: exit code 1, the event's position, the guard that stands against it, and whether the Python model
    says the same; a file's weak trace stays open."""
    wrong = evolve(trace(*START, appends(1, 0, 2, 12), shows(1, 0, 3)), trace_id=7)
    weak = evolve(trace(*START[1:]), trace_id=8)
    path = tmp_path / "runs.jsonl"
    write_traces(path, [trace(*START), wrong, weak])
    code, found = told(capsys, path, "--compare")
    assert (code, found["traces"], found["disagreements"]) == (1, 3, 0)
    explained, unexplained = found["partitions"]
    assert explained["explained"] and explained["event"] is None
    assert (unexplained["trace_id"], unexplained["event"]) == (7, len(START) + 1)
    assert "high watermark that does not go down" in unexplained["guard"]
    assert [one["trace_id"] for one in found["undecided"]] == [8]
    code, found = told(capsys, path, "--trace", 1, "--partition", "t-0")
    assert (code, len(found["partitions"])) == (0, 1)


def test_input_that_cannot_be_replayed(tmp_path, capsys):
    """Rule: nothing readable is a usage error, client operations alone are explained, a partition that is not
    there is told in one sentence; no JVM."""
    path = tmp_path / "runs.jsonl"
    write_traces(path, [trace()])
    assert told(capsys, path)[0] == 0
    assert told(capsys, tmp_path / "none.jsonl")[0] == 2
    write_traces(path, [trace(*START)])
    assert fencepost(["model", "tlc", "conform", str(path), "--partition", "t-9"]) == 2
    assert "partition t-9" in capsys.readouterr().err

"""`fencepost check` on files of events: verdicts, exit codes, promises and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost.cli import run
from fencepost.traces.errors import ExitCode

AT = {"topic": "t", "partition": 0}


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    """A file of events of a consumer `c` of group g, or of the processes that rows name."""
    base = {"process": "c", "group": "g"}
    path.write_text("".join(json.dumps(base | row) + "\n" for row in rows))
    return path


def record(event: str, offset: int, **more: Any) -> dict[str, Any]:
    """A line about a record of t-0."""
    return {"event": event, **AT, "offset": offset, **more}


def work(*offsets: int) -> list[dict[str, Any]]:
    """Records that are received, processed and committed, one after the other."""
    found = []
    for offset in offsets:
        found += [record("received", offset), record("processed", offset), record("committed", offset + 1)]
    return found


AGAIN = [*work(0, 1), record("received", 1), record("processed", 1)]
"""Record 1 is processed again after its commit."""
EARLY = [record("received", 0), record("committed", 1), record("processed", 0)]
LOST = [record("received", 0), record("committed", 1)]


def found(capsys: Any, *arguments: str) -> tuple[int, set[str]]:
    """The exit code and the anomalies."""
    code = run(["check", *arguments, "--json"])
    said = json.loads(capsys.readouterr().out)
    return code, {one["anomaly"] for one in said.get("findings", ())}


@pytest.mark.parametrize(
    ("rows", "promise", "anomalies"),
    [
        (work(0, 1, 2), "exactly-once", set()),
        (AGAIN, "at-least-once", {"processed_twice"}),
        (AGAIN, "at-most-once", {"processed_twice"}),
        (EARLY, "at-least-once", {"committed_before_processed"}),
        (EARLY, "exactly-once", {"committed_before_processed"}),
        (EARLY, "at-most-once", set()),
        (LOST, "at-least-once", {"record_never_processed"}),
        (LOST, "at-most-once", set()),
    ],
)
def test_a_promise_decides(tmp_path, capsys, rows, promise, anomalies):
    path = lines(tmp_path / "c.events", *rows)
    code, seen = found(capsys, str(path), "--promise", promise)
    assert seen == anomalies
    assert code == (ExitCode.FINDINGS if anomalies else ExitCode.NOTHING_FOUND)


def test_what_is_allowed_is_no_finding(tmp_path, capsys):
    path = lines(tmp_path / "c.events", *LOST)
    assert found(capsys, str(path), "--allow", "record_never_processed") == (ExitCode.NOTHING_FOUND, set())


def test_a_repetition_that_is_due_is_allowed_once(tmp_path, capsys):
    begun = [{"event": "started"}, record("received", 0), record("processed", 0)]
    first = lines(tmp_path / "a.events", *({**row, "process": "a"} for row in begun))
    second = lines(tmp_path / "b.events", *({**row, "process": "b"} for row in work(0)))
    assert found(capsys, str(first), str(second)) == (ExitCode.NOTHING_FOUND, set())
    code, seen = found(capsys, str(first), str(second), "--promise", "exactly-once")
    assert (code, seen) == (ExitCode.FINDINGS, {"processed_twice"})


def test_order_is_that_of_keys_unless_it_is_said_otherwise(tmp_path, capsys):
    rows = [record("received", offset, key="ab"[offset % 2]) for offset in range(3)]
    rows += [record("processed", offset) for offset in (1, 0, 2)]
    path = lines(tmp_path / "c.events", *rows)
    assert found(capsys, str(path))[1] == set()
    assert found(capsys, str(path), "--ordered-by", "partition")[1] == {"processed_out_of_order"}
    same = lines(tmp_path / "d.events", *({**row, "key": "a"} for row in rows))
    assert found(capsys, str(same))[1] == {"processed_out_of_order"}
    assert found(capsys, str(same), "--ordered-by", "none")[1] == set()


def test_a_folder_of_files_is_one_run(tmp_path, capsys):
    lines(tmp_path / "b.events", *({**row, "process": "b"} for row in work(1)))
    lines(tmp_path / "a.events", *({**row, "process": "a"} for row in work(0)))
    (tmp_path / "notes.txt").write_text("anything")
    assert found(capsys, str(tmp_path)) == (ExitCode.NOTHING_FOUND, set())


def test_lines_that_are_left_out_are_said_and_cost_the_exit_code(tmp_path, capsys):
    path = lines(tmp_path / "c.events", *work(0))
    path.write_text(path.read_text() + "nonsense\n")
    assert run(["check", str(path)]) == ExitCode.QUARANTINED
    assert f"left out: {path}:4" in capsys.readouterr().err


def test_what_is_under_way_is_said(tmp_path, capsys):
    path = lines(tmp_path / "c.events", *work(0), record("received", 1))
    assert run(["check", str(path)]) == ExitCode.NOTHING_FOUND
    assert "records received and not processed: 1," in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--checks", "log"], ["--model", "register"], ["--profile", "strong"]])
def test_other_questions_are_refused(tmp_path, capsys, option):
    path = lines(tmp_path / "c.events", *work(0))
    assert run(["check", str(path), *option]) == ExitCode.USAGE
    assert option[0] in capsys.readouterr().err


def test_a_promise_without_events_is_refused(tmp_path, capsys):
    path = tmp_path / "h.edn"
    path.write_text("{:type :invoke, :f :read, :value nil, :process 0}\n")
    assert run(["check", str(path), "--promise", "exactly-once"]) == ExitCode.USAGE
    assert "expected files of events" in capsys.readouterr().err


def test_a_finding_names_the_lines_that_show_it(tmp_path, capsys):
    path = lines(tmp_path / "c.events", *EARLY)
    run(["check", str(path), "--json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["lines"] == [f"{path}:2", f"{path}:3"]
    assert (finding["topic"], finding["partition"], finding["offset"]) == ("t", 0, 0)


def test_text_of_lines_is_escaped(tmp_path, capsys):
    rows = [{**row, "topic": "t\x1b[31m"} for row in LOST]
    run(["check", str(lines(tmp_path / "c.events", *rows))])
    assert "\x1b" not in capsys.readouterr().out

"""What commands share: tables in any width, a line every half minute where there is no terminal, near
names."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from fencepost.console import heartbeat
from fencepost.console.output import Output
from fencepost.console.tables import add_row, fitted, table
from fencepost.traces.errors import did_you_mean, unknown_name

LIMIT_S = 600


def drawn(
    width: int, *rows: tuple[str, ...], columns: tuple[str, ...], title: str | None = None
) -> list[str]:
    made, console = table(*columns, title=title), Console(file=io.StringIO(), width=width)
    for row in rows:
        add_row(made, *row)
    shown = fitted(made, console)
    console.print(shown, soft_wrap=shown is not made)
    return [line.rstrip() for line in console.file.getvalue().rstrip("\n").split("\n")]


ROWS = (
    ("KIP-101", "12", "a follower truncates to the end offset of its last epoch on the leader"),
    ("KAFKA-10284", "3", "fencepost replay out/planted --trace 77"),
)
COLUMNS = ("bug", ">seeds", "the protection that is missing")


@pytest.mark.parametrize("width", [30, 40, 60, 80, 160])
def test_tables_fit_and_break_no_word(width: int) -> None:
    """Rule: in any width no line is longer, and no word of a cell is broken or lost."""
    lines = drawn(width, *ROWS, columns=COLUMNS)
    assert max(map(len, lines)) <= width
    shown = " ".join(lines).split()
    for row in ROWS:
        for word in " ".join(row).split():
            assert word in shown, (word, lines)


def test_a_row_is_a_paragraph_where_columns_do_not_fit() -> None:
    """Rule: where the columns do not fit beside each other, each cell says whose it is."""
    assert drawn(30, ROWS[1], columns=COLUMNS) == [
        "KAFKA-10284",
        "  seeds: 3",
        "  the protection that is",
        "    missing: fencepost replay",
        "    out/planted --trace 77",
    ]
    assert (
        drawn(20, ("a", "/a/path/that/is/longer/than/that"), columns=("x", "y"))[-1].strip()
        == "/a/path/that/is/longer/than/that"
    )


def test_no_headings_take_no_line() -> None:
    """Rule: a table without headings has no empty first line."""
    assert drawn(60, ("a", "b"), columns=("", "")) == ["a  b"]


@pytest.mark.parametrize("columns", ["60", "80"])
def test_columns_is_obeyed_in_a_pipe(columns: str, monkeypatch, fencepost) -> None:
    """Rule: COLUMNS says how wide, also where no terminal is; without it a pipe has 160."""
    monkeypatch.setenv("COLUMNS", columns)
    told = fencepost("campaign bugs list")
    assert max(map(len, told.out.split("\n"))) <= int(columns)
    monkeypatch.delenv("COLUMNS")
    assert int(columns) < max(map(len, fencepost("campaign bugs list").out.split("\n"))) <= 160


def told_while(output: Output, wanted: int, what: str, total: int | None, extra: str) -> list[str]:
    written = io.StringIO()
    output.errors = Console(file=written, force_terminal=False, width=100)
    end = time.monotonic() + LIMIT_S
    with output.progress(what, total) as bar:
        bar.to(4, extra)
        while written.getvalue().count("\n") < wanted and time.monotonic() < end:
            time.sleep(0.01)
    kept = written.getvalue()
    time.sleep(0.1)
    assert written.getvalue() == kept, "it went on after the work had ended"
    return kept.splitlines()


def test_long_work_reports_where_no_terminal_is(monkeypatch) -> None:
    """Rule: without a terminal, work says again and again how far it is, and stops when it is done."""
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.02)
    lines = told_while(Output(), 2, "runs", 10, "1 with findings")
    assert lines[0].startswith("runs: 4 of 10, 1 with findings, after ") and len(lines) >= 2
    assert told_while(Output(), 1, "watching x", None, "lag 2 s")[0].startswith("watching x, lag 2 s, after ")
    assert told_while(Output(), 1, "checking", 0, "")[0].startswith("checking: 4 of 0, after ")


def test_a_command_without_a_bar_reports_too(monkeypatch, fencepost) -> None:
    """Rule: whatever takes long says so; what waits for others, and what has a bar, does not."""
    from fencepost import cli

    monkeypatch.setattr(heartbeat, "EVERY_S", 0.02)

    def until_it_said_something(**_: object) -> None:
        end = time.monotonic() + LIMIT_S
        while not sys.stderr.getvalue() and time.monotonic() < end:  # type: ignore[attr-defined]
            time.sleep(0.01)

    monkeypatch.setattr(cli.group, "main", until_it_said_something)
    assert fencepost("replay").sentence.startswith("fencepost: replay: at work for ")
    monkeypatch.setattr(cli.group, "main", lambda **_: time.sleep(0.2))
    assert fencepost("cluster consume").err == ""

    def barred(**_: object) -> None:
        with Output().progress("runs", 3):
            time.sleep(0.2)

    monkeypatch.setattr(cli.group, "main", barred)
    assert "at work" not in fencepost("campaign").err


def test_half_a_minute_is_half_a_minute() -> None:
    """Rule: no work is silent for longer than 30 s."""
    assert heartbeat.EVERY_S <= 30


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("defalt", " (did you mean 'default'?)"),
        ("kip-101", " (did you mean 'KIP-101'?)"),
        ("strng", " (did you mean 'strong' or 'string'?)"),
        ("xyz", ""),
        ("default", ""),
        ("", ""),
    ],
)
def test_near_names(name: str, said: str) -> None:
    """Rule: up to three near names, the nearest first, whatever the case; none where none is near."""
    known = ("default", "strong", "string", "KIP-101", "KIP-207")
    assert did_you_mean(name, known) == said
    assert unknown_name(name, known) == f"{name!r}{said}"


HOSTILE = "t\u202egro\0\x1b[31m\u2066\nnext"


def test_no_name_turns_the_direction_of_writing_or_moves_the_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rule: whatever a result, a note, a cell or the JSON holds, only printable characters and line ends go
    out."""
    rows = table("name")
    add_row(rows, HOSTILE)
    for as_json in (False, True):
        output = Output(as_json)
        output.say(HOSTILE, rows)
        output.note(HOSTILE)
        output.emit({HOSTILE: [HOSTILE]})
        told = capsys.readouterr()
        assert (told.out + told.err).replace("\n", "").isprintable()
        assert (told.out + told.err).count("t\\u202egro\\x00\\x1b[31m\\u2066\nnext") == 3
    assert json.loads(told.out) == {HOSTILE: [HOSTILE]}


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_answer(closed: str, tmp_path: Path) -> None:
    """Rule: a standard stream that the caller closed is like /dev/null: no traceback, the usual exit code,
    and nothing that is printed gets into a file that is written."""
    trace = '{"type":"trace","trace_id":1,"plan":"","seed":0,"software_version":"x"}\n'
    (tmp_path / "in.jsonl").write_text(trace)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "fencepost", "mine", "convert",
         "in.jsonl", "--out", "out.jsonl"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert lines and all(line.startswith('{"type":') for line in lines)

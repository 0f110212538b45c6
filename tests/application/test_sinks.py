"""Rows of stores as events: from files and databases, and what they decide."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.application.event_columns import read_events
from fencepost.application.sink_rows import sink_lines, write_sink
from fencepost.checkers.application.application_judge import Claims, Promise, judge_events
from fencepost.cli import run
from fencepost.cli.check.application import EMITTERS
from fencepost.traces.errors import EnvironmentError_, ExitCode, TraceError

ROWS = [("orders", 0, 0, "v0"), ("orders", 0, 1, "v1"), ("orders", 0, 1, "v1"), ("orders", 0, 3, "v3")]
NAMES = ("topic", "partition", "offset", "value")
QUERY = 'SELECT topic, partition, "offset", value FROM done ORDER BY 1, 2, 3'
CREATE = 'CREATE TABLE done (topic TEXT, partition INTEGER, "offset" BIGINT, value TEXT)'


def as_csv(folder: Path) -> tuple[str, None]:
    path = folder / "rows.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [NAMES, *ROWS]) + "\n")
    return str(path), None


def as_lines(folder: Path) -> tuple[str, None]:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS))
    return str(path), None


def as_parquet(folder: Path) -> tuple[str, None]:
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in ROWS]), path)
    return str(path), None


def as_sqlite(folder: Path) -> tuple[str, str]:
    path = folder / "app.db"
    with sqlite3.connect(path) as database:
        database.execute(CREATE)
        database.executemany("INSERT INTO done VALUES (?, ?, ?, ?)", ROWS)
    database.close()
    return f"sqlite:///{path}", QUERY


FORMS = [as_csv, as_lines, as_parquet, as_sqlite]


def consumer(path: Path, offsets: range, *, values: bool = True) -> None:
    """A consumer that processed these records."""
    with path.open("w") as file:
        for offset in offsets:
            at = {"process": "c", "group": "g", "topic": "orders", "partition": 0, "offset": offset}
            value = {"value": f"v{offset}"} if values else {}
            for event in ("received", "processed"):
                file.write(json.dumps({"event": event, **at, **value}) + "\n")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_lines(tmp_path, form):
    lines = [json.loads(line) for line in sink_lines(*form(tmp_path))]
    assert [(line["topic"], line["partition"], line["offset"]) for line in lines] == [row[:3] for row in ROWS]
    assert {line["event"] for line in lines} == {"sink"}
    assert lines[0]["value"] == json.loads(next(sink_lines(*as_csv(tmp_path))))["value"]


@pytest.mark.parametrize("form", FORMS)
def test_a_record_that_is_missing_or_there_twice_is_found(tmp_path, form):
    source, query = form(tmp_path)
    app = tmp_path / "app"
    app.mkdir()
    consumer(app / "c.events", range(4), values=False)
    arguments = ["mine", "convert", "--sink", source, "--out", str(app / "db.events")]
    assert run([*arguments, "--query", query] if query else arguments) == ExitCode.NOTHING_FOUND
    events = read_events(sorted(app.glob("*.events")))
    found = {
        finding.anomaly: finding.offset
        for finding in judge_events(events, Claims(promise=Promise.EXACTLY_ONCE)).verdict.findings
    }
    assert found == {"missing_in_sink": 2, "twice_in_sink": 1}


def test_rows_without_places_are_found_by_their_values(tmp_path):
    app = tmp_path / "app"
    app.mkdir()
    consumer(app / "c.events", range(3), values=True)
    rows = tmp_path / "rows.jsonl"
    lines = [json.loads(line) for line in (app / "c.events").read_text().splitlines()]
    assert lines[0]["value"] == "v0"
    rows.write_text(
        '{"event":"sink","process":"db","value":"v0"}\n{"event":"sink","process":"db","value":"v2"}\n'
    )
    events = read_events([app / "c.events", rows])
    (finding,) = judge_events(events).verdict.findings
    assert (finding.anomaly, finding.offset) == ("missing_in_sink", 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("topic,partition,offset\norders,x,1\n", "an integer"),
        ("name\nx\n", "expected a column out of"),
        ("topic,partition,offset\norders,0,-4\n", "from 0"),
    ],
)
def test_a_wrong_row_is_refused_with_its_number(tmp_path, text, says):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=says) as refused:
        list(sink_lines(str(path), None))
    assert "row 1" in str(refused.value)


@pytest.mark.parametrize(
    ("source", "query"),
    [
        ("rows.txt", None),
        ("mysql://h/d", "SELECT 1"),
        ("sqlite:////nowhere/app.db", "SELECT 1"),
        ("rows.csv", "SELECT 1"),
        ("sqlite:///x", None),
        ("gone.csv", None),
        ("gone.parquet", None),
    ],
)
def test_a_source_that_is_none_is_refused(tmp_path, monkeypatch, source, query):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TraceError):
        list(sink_lines(source, query))
    assert run(["mine", "convert", "--sink", source, "--out", "x.events"]) == ExitCode.USAGE
    assert not list(tmp_path.iterdir())


def test_a_wrong_query_is_one_sentence(tmp_path):
    source, _ = as_sqlite(tmp_path)
    with pytest.raises(TraceError, match="no such table"):
        list(sink_lines(source, "SELECT offset FROM gone"))


@pytest.fixture
def postgresql():
    """A server of one's own, where the programs of PostgreSQL are. Root is refused by it, so that it runs as
    nobody then."""
    programs = [shutil.which(name) for name in ("initdb", "pg_ctl", "psql")]
    if not all(programs):
        pytest.skip("needs the programs of PostgreSQL")
    pytest.importorskip("psycopg")
    with tempfile.TemporaryDirectory(prefix="fencepost-postgresql-") as folder:
        data = Path(folder) / "data"
        other = {"user": "nobody", "cwd": folder} if os.getuid() == 0 else {}
        Path(folder).chmod(0o777)
        initdb = ["initdb", "-D", str(data), "-U", "app", "--auth=trust"]
        done = subprocess.run(initdb, capture_output=True, **other)
        if done.returncode:
            pytest.skip("initdb does not run as this user")
        options = f"-k {folder} -c listen_addresses=''"
        start = ["pg_ctl", "-D", str(data), "-o", options, "-w", "start", "-l", f"{folder}/log"]
        subprocess.run(start, check=True, timeout=60, **other)
        yield folder
        subprocess.run(["pg_ctl", "-D", str(data), "-m", "immediate", "stop"], timeout=60, **other)


def test_a_database_of_postgresql(postgresql):
    inserts = "; ".join(f"INSERT INTO done VALUES {row}" for row in ROWS)
    command = ["psql", "-h", postgresql, "-U", "app", "-d", "postgres", "-c", f"{CREATE}; {inserts}"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    host = postgresql.replace("/", "%2F")
    lines = list(sink_lines(f"postgresql://app@{host}/postgres", QUERY))
    assert len(lines) == len(ROWS)


def test_without_a_driver_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("fencepost.application.sink_rows.POSTGRESQL", ("no_such_driver",))
    with pytest.raises(EnvironmentError_, match="psycopg"):
        list(sink_lines("postgresql://h/d", "SELECT 1"))


def test_a_file_of_a_sink_is_there_whole_or_not_at_all(tmp_path):
    def lines():
        yield b"{}\n"
        raise TraceError(expected="a", seen="b", where="c")

    with pytest.raises(TraceError):
        write_sink(tmp_path / "db.events", lines())
    assert not list(tmp_path.iterdir())


# The files that an application copies: each language writes the same lines, and they are read back.


# ruff: noqa: E501 (programs in other languages)


BOUND_S = 600
MOST_LINES = 40
PYTHON = """
from fencepost_events import Events
events = Events("app.events", "billing", "g")
events.write("sent", id="1", topic='or"de\\\\rs', key=b"k", value=b"v")
events.write("failed", id="1", error="refused")
events.write("processed", topic="orders", partition=0, offset=5_000_000_000, sink=False)
events.write("received", topic="orders", partition=0, offset=1, key=None, value=bytearray(b"text"))
events.close()
"""
JAVA = """
public class App {
    public static void main(String[] arguments) throws Exception {
        try (FencepostEvents events = new FencepostEvents("app.events", "billing", "g")) {
            events.write("sent", "id", "1", "topic", "or\\"de\\\\rs", "key", new byte[] {'k'}, "value", new byte[] {'v'});
            events.write("failed", "id", "1", "error", "refused");
            events.write("processed", "topic", "orders", "partition", 0, "offset", 5_000_000_000L, "sink", false);
            events.write("received", "topic", "orders", "partition", 0, "offset", 1L, "key", null, "value", "text");
        }
    }
}
"""
GO = """
package main

import "app/events"

func main() {
	w, err := events.Open("app.events", "billing", "g")
	if err != nil { panic(err) }
	w.Write("sent", events.F{"id": "1", "topic": "or\\"de\\\\rs", "key": []byte("k"), "value": []byte("v")})
	w.Write("failed", events.F{"id": "1", "error": "refused"})
	w.Write("processed", events.F{"topic": "orders", "partition": 0, "offset": 5_000_000_000, "sink": false})
	w.Write("received", events.F{"topic": "orders", "partition": 0, "offset": 1, "key": []byte(nil), "value": "text"})
	w.Close()
}
"""
JAVASCRIPT = """
const { Events } = require("./fencepost-events.js");
const events = new Events("app.events", "billing", "g");
events.write("sent", { id: "1", topic: 'or"de\\\\rs', key: Buffer.from("k"), value: Buffer.from("v") });
events.write("failed", { id: "1", error: "refused" });
events.write("processed", { topic: "orders", partition: 0, offset: "5000000000", sink: false });
events.write("received", { topic: "orders", partition: 0, offset: 1n, key: null, value: "text" });
events.close();
"""
CSHARP = """
public static class App {
    public static void Main() {
        using (var events = new FencepostEvents("app.events", "billing", "g")) {
            events.Write("sent", "id", "1", "topic", "or\\"de\\\\rs", "key", new byte[] { 107 }, "value", new byte[] { 118 });
            events.Write("failed", "id", "1", "error", "refused");
            events.Write("processed", "topic", "orders", "partition", 0, "offset", 5000000000L, "sink", false);
            events.Write("received", "topic", "orders", "partition", 0, "offset", 1L, "key", null, "value", "text");
        }
    }
}
"""


def needs(*programs: str) -> None:
    """Skip where one is not there."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


def in_python(folder: Path) -> list[list[str]]:
    (folder / "app.py").write_text(PYTHON)
    return [[sys.executable, "app.py"]]


def in_java(folder: Path) -> list[list[str]]:
    needs("javac", "java")
    (folder / "App.java").write_text(JAVA)
    return [["javac", "App.java", "FencepostEvents.java"], ["java", "App"]]


def in_go(folder: Path) -> list[list[str]]:
    needs("go")
    (folder / "events").mkdir()
    (folder / "fencepost_events.go").rename(folder / "events" / "events.go")
    (folder / "go.mod").write_text("module app\n\ngo 1.21\n")
    (folder / "main.go").write_text(GO)
    return [["go", "run", "."]]


def in_javascript(folder: Path) -> list[list[str]]:
    needs("node")
    (folder / "app.js").write_text(JAVASCRIPT)
    return [["node", "app.js"]]


def in_csharp(folder: Path) -> list[list[str]]:
    needs("mcs", "mono")
    (folder / "App.cs").write_text(CSHARP)
    return [["mcs", "-out:App.exe", "App.cs", "FencepostEvents.cs"], ["mono", "App.exe"]]


PREPARED = {
    "python": in_python,
    "java": in_java,
    "go": in_go,
    "javascript": in_javascript,
    "csharp": in_csharp,
}


@pytest.mark.parametrize("language", EMITTERS)
def test_every_language_writes_the_same_lines(tmp_path, capsys, language):
    assert run(["check", "--emitter", language]) == ExitCode.NOTHING_FOUND
    source = capsys.readouterr().out
    assert len(source.splitlines()) <= MOST_LINES
    (tmp_path / EMITTERS[language]).write_text(source)
    for command in PREPARED[language](tmp_path):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=BOUND_S)
        assert done.returncode == 0, done.stderr[-2000:]
    path = tmp_path / "app.events"
    texts = path.read_text().splitlines()
    assert all(text.startswith('{"event"') for text in texts), (
        "where a line begins behind half of another one"
    )
    lines = [json.loads(line) for line in texts]
    assert len({line.pop("process") for line in lines}) == 1
    assert lines == [
        {"event": "started", "n": 0, "version": 1, "group": "g"},
        {
            "event": "sent",
            "n": 1,
            "id": "1",
            "topic": 'or"de\\rs',
            "key": "8254c329a92850f6",
            "value": "4c94485e0c21ae6c",
        },
        {"event": "failed", "n": 2, "id": "1", "error": "refused"},
        {
            "event": "processed",
            "n": 3,
            "topic": "orders",
            "partition": 0,
            "offset": 5_000_000_000,
            "sink": False,
        },
        {
            "event": "received",
            "n": 4,
            "topic": "orders",
            "partition": 0,
            "offset": 1,
            "value": "982d9e3eb996f559",
        },
        {"event": "stopped", "n": 5},
    ]
    events = read_events([path])
    assert (len(events), events.left_out, len(events.torn)) == (6, (), 0)

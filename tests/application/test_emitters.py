# ruff: noqa: E501 (programs in other languages)
"""The files that an application copies: each language writes the same lines, and they are read back."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.application.event_columns import read_events
from fencepost.cli import run
from fencepost.cli.check.application import EMITTERS
from fencepost.traces.errors import ExitCode

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

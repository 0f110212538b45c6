"""The runner of the control port's examples."""

import os
import subprocess
import sys

import pytest

from tools.clients_control import CONTROL, EXAMPLES, Example, run
from tools.program import Done


def test_every_example_is_run():
    """Rule: a folder or a file of docs/examples/control is an example of the table."""
    assert {path.name for path in EXAMPLES.iterdir()} == {"control.sh", "go", "junit"}
    assert [example.folder for example in CONTROL.values()] == [".", "go", "junit"]


def test_what_is_absent_is_skipped_by_name(monkeypatch):
    """Rule: without its toolchain an example is skipped, and the program is named."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert run("go", CONTROL["go"]) == Done(case="go", outcome="skipped", why="no go on the path")


@pytest.mark.parametrize(
    ("code", "outcome", "words"),
    [
        ("print(1)", "ok", ""),
        ("raise SystemExit('broken')", "failed", "exit code 1: broken"),
        ("print('--- SKIP: TestALostAnswer')", "failed", "skipped its test"),
        ("raise SystemExit('dial tcp: lookup proxy.golang.org: no such host')", "skipped", "no network"),
    ],
)
def test_outcomes(code, outcome, words):
    """Rule: an exit code, a test that skips itself and a missing network are three different outcomes."""
    done = run("go", Example(folder="go", programs=(), steps=((sys.executable, "-c", code),)))
    assert done.outcome == outcome and words in done.why


def test_a_name_that_is_none_gets_a_sentence():
    """Rule: the sentence has the names that there are."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.clients_control", "cobol"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 2
    assert "expected words out of shell; go; junit, saw cobol" in done.stderr

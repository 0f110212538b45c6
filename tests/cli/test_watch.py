"""`fencepost watch` as a person runs it: findings while they arrive, Ctrl-C, one sentence for what does not
fit."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fencepost.campaign.swarm.swarm import swarm
from fencepost.run.simulated.run import run
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore
from tests.checkers import lab

PROGRAM = [sys.executable, "-c", "from fencepost.cli import main; main()"]
PLANTED, SEED = "KIP-101", 23
"""A seed whose run shows the bug to its clients (tests/bugs/test_bugs.py)."""
PATIENCE_S = 600
"""How long the test waits for a line before it gives up; nothing depends on it otherwise."""


def campaign(path: Path, *bugs: str) -> None:
    """A campaign of one run has been sealed."""
    lab.stored(path, [run(swarm(SEED, bugs=bugs))], sealed=False)
    seal(TraceStore.open(path))


class Watching:
    """A watch in a process of its own, and the JSON lines that it prints."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "watch", *map(str, arguments), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("{}")

    def next(self, kind: str) -> dict:
        """The next line of a kind; an empty one if there will be none."""
        while True:
            told = json.loads(self.lines.get(timeout=PATIENCE_S))
            if not told or told["type"] == kind:
                return told


@pytest.mark.spark
def test_a_planted_bug_is_told_while_the_watch_runs_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    """A healthy campaign arrives and nothing is told; a planted one arrives later and is found; Ctrl-C ends
    with 130 and a summary."""
    folder = tmp_path / "in"
    campaign(folder / "healthy")
    watching = Watching(folder, "--out", tmp_path / "out", "--master", "local[1]", "--interval", 0.2)
    try:
        before = watching.next("progress")
        assert before["files"] and before["findings"] == 0, before
        campaign(folder / "planted", PLANTED)
        found = watching.next("finding")
        assert found["source"] == str(folder / "planted")
        replay = f"fencepost replay {folder / 'planted'} --trace {SEED} --anomaly {found['anomaly']}"
        assert found["replay"] == replay
        os.killpg(watching.process.pid, signal.SIGINT)  # as a terminal does, to all processes of it
        summary = watching.next("summary")
        assert (summary["exit_code"], summary["interrupted"]) == (130, True) and summary["findings"] >= 1
        assert watching.process.wait(timeout=PATIENCE_S) == 130
        assert pq.read_table(tmp_path / "out" / "findings").num_rows == summary["findings"]
        assert watching.process.stderr is not None
        told = watching.process.stderr.read()
        assert "the same command continues" in told and "Traceback" not in told
    finally:
        watching.process.kill()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing"], "missing: expected a folder to watch, saw nothing there"),
        ([".", "--out", "inside"], "expected results outside the watched folder"),
        ([".", "--lateness", "-1"], "Invalid value for '--lateness'"),
        ([".", "--out", "../out", "--checks", "wild"], "expected checks out of"),
        ([".", "--out", "../out", "--profile", "wild"], "expected a profile out of"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    fencepost, tmp_path: Path, monkeypatch, arguments, sentence
) -> None:
    """Bad input ends with exit code 2 and says what was expected, before Spark starts."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    told = fencepost("watch", *arguments)
    assert told.code == 2 and sentence in told.sentence

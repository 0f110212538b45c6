"""A driver that something outside ends, and one that ends by itself: only the second is the library's."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from torture_lab import CONFLUENT, library_here

from fencepost.cli import run
from fencepost.torture.campaign import torture
from fencepost.torture.driver_process import Driver, ended_from_outside
from fencepost.torture.protocol import DisturbedError
from fencepost.torture.scenario import Scenario
from fencepost.torture.workers import Job, Worker

SCENARIO = Scenario(seed=1, producer={"acks": -1}, consumer={}, producers=1, bursts=2, burst=3, members=0)
OUTSIDE = ("SIGHUP", "SIGINT", "SIGTERM", "SIGKILL")
ITSELF = ("SIGSEGV", "SIGABRT")
WAITS = """import os, pathlib, time
flag = pathlib.Path({flag!r})
if flag.exists():
    pathlib.Path({pid!r}).write_text(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def built(tmp_path, monkeypatch):
    """The driver of librdkafka."""
    return library_here(tmp_path, monkeypatch)


def killed_in_a_run(built, tmp_path, monkeypatch, name):
    """One run, in which the driver's process gets this signal before its third append is written."""
    send, appends = Driver.send, []

    def sends(self, command, client="", **fields):
        appends.extend([command] * (command == "append"))
        if len(appends) == 3:
            os.kill(self.process.pid, getattr(signal, name))
        return send(self, command, client, **fields)

    monkeypatch.setattr(Driver, "send", sends)
    job = Job(library=str(built.wanted.library.folder), out=str(tmp_path / "out"), faults=False)
    worker = Worker(job, built)
    try:
        return worker.run(SCENARIO)
    finally:
        worker.driver.kill()


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_driver_that_is_killed_from_outside_disturbs_its_run(built, tmp_path, monkeypatch, name):
    """Rule: a signal that we did not send, and that no crash sends, is nobody's finding."""
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as by nohup, and so by the driver")
    with pytest.raises(DisturbedError, match=name):
        killed_in_a_run(built, tmp_path, monkeypatch, name)


@pytest.mark.parametrize("name", ITSELF)
def test_a_driver_that_crashes_is_a_finding(built, tmp_path, monkeypatch, name):
    """Rule: the signals of a crash are the library's own, and it says in which call it was."""
    found = killed_in_a_run(built, tmp_path, monkeypatch, name)["findings"]
    (seen,) = (finding["seen"] for finding in found if finding["anomaly"] == "ended")
    assert "Fatal Python error" in seen and "most recent call first" in seen


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import sys; sys.exit(128 + 15)", "SIGTERM"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", ""),
        ("import sys; sys.exit(7)", ""),
        ("import sys; sys.exit(128 + 6)", ""),
        ("", ""),
    ],
)
def test_which_ends_come_from_outside(program, seen):
    """Rule: by the exit status alone; a JVM that gets SIGTERM exits with 128 and its number, as a shell
    says."""
    assert ended_from_outside(subprocess.run([sys.executable, "-c", program], check=False).returncode) == seen


def test_what_we_kill_ourselves_is_no_disturbance(built):
    """Rule: the signal that we send is ours."""
    with Driver.start(built) as driver:
        driver.kill()
        driver.refuse_disturbed()


def test_a_disturbed_run_is_counted_and_run_again(tmp_path, monkeypatch, capsys):
    """Rule: a seed whose driver was killed is named, is no finding and no success, and is what --resume runs;
    then it counts once."""
    flag, pid = tmp_path / "flag", tmp_path / "pid"
    flag.touch()
    program = tmp_path / "driver.py"
    program.write_text(WAITS.format(flag=str(flag), pid=str(pid)) + CONFLUENT.read_text())
    built = library_here(tmp_path, monkeypatch, program=program)
    job = Job(library=str(built.wanted.library.folder), out=str(tmp_path / "out"), faults=False)

    def kill() -> None:
        while not pid.exists() or not pid.read_text():
            time.sleep(0.01)
        flag.unlink()
        os.kill(int(pid.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    words = ["torture", f"{job.library}@{built.wanted.version}", "--seeds", "0:1", "--no-faults"]
    assert run([*words, "--out", job.out]) == 3
    killer.join()
    said = capsys.readouterr().out
    assert "1 run was disturbed" in said and "SIGKILL" in said and "--resume" in said
    lines: list[dict] = []
    again = torture(
        Job(library=f"{job.library}@{built.wanted.version}", out=job.out, faults=False),
        range(1),
        resume=True,
        progress=lines.append,
    )
    assert (again["seeds"], again["disturbed"], again["failed"], again["findings"]) == (1, [], [], {})
    assert [line["seed"] for line in lines] == [0]

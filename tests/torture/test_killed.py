"""A campaign that is killed leaves no process behind, and one begins only in a folder of its own."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest

from fencepost.cli import run
from fencepost.impl.runtime.processes import identify, state
from fencepost.torture.campaign import FINDINGS, RUNS, _repeat, _Replays, torture
from fencepost.torture.scenario import Scenario
from fencepost.torture.workers import Job
from fencepost.traces.errors import FencepostError

BOUND_S = 600
DRIVER = """#!{python}
import time
print('{{"event": "ready", "protocol": 1, "driver": "own", "library": "own", "version": "1", '
      '"runtime": "r", "roles": ["producer", "consumer"], "commands": ["open", "send"]}}', flush=True)
open({pids!r}, "a").write(f"{{__import__('os').getpid()}}\\n")
time.sleep(900)
"""


def descendants(pid: int) -> set[int]:
    """Every process below this one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(words[1])
    found, last = {pid}, set()
    while found != last:
        last = set(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {pid}


def eventually(condition) -> None:
    """It comes true; a bound, no measure."""
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


@pytest.fixture
def silent(tmp_path, monkeypatch):
    """The job of a driver that starts, and then reads nothing; and the file of its process ids."""
    own, pids = tmp_path / "own", tmp_path / "pids"
    own.mkdir()
    (own / "driver").write_text(DRIVER.format(python=sys.executable, pids=str(pids)))
    (own / "driver").chmod(0o755)
    (own / "driver.toml").write_text(
        "name='own'\ntitle='t'\ntoolchain='none'\nnewest='1'\nsources=['driver']"
    )
    monkeypatch.setenv("FENCEPOST_DRIVERS", str(tmp_path / "cache"))
    return Job(library=f"{own}@1", out=str(tmp_path / "out")), pids


def test_workers_and_drivers_end_with_a_killed_campaign(silent):
    """Rule: after kill -9 of a campaign its workers, their clusters and their drivers end, though nothing
    is said to them, and though a driver does not read its standard input."""
    job, pids = silent
    words = ["torture", job.library, "--seeds", "0:50", "--jobs", "2", "--out", job.out]
    campaign = subprocess.Popen([sys.executable, "-m", "fencepost", *words], stderr=subprocess.DEVNULL)
    try:
        eventually(
            lambda: (pids.exists() and len(pids.read_text().split()) >= 2) or campaign.poll() is not None
        )
        assert campaign.poll() is None
        left = [identify(pid) for pid in descendants(campaign.pid)]
        assert {int(pid) for pid in pids.read_text().split()} <= {one.pid for one in left}
    finally:
        campaign.kill()
        campaign.wait()
    try:
        eventually(lambda: all(state(one) == "dead" for one in left))
    finally:
        for one in left:
            if state(one) != "dead":
                os.kill(one.pid, signal.SIGKILL)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_another_tool_is_refused(tmp_path, resume):
    """Rule: what something else has written there stays alone, and nothing is built for it."""
    (tmp_path / "campaign.json").write_text("{}")
    with pytest.raises(FencepostError, match=r"expected an empty folder, or a campaign of .*campaign.json"):
        torture(Job(library="sarama", out=str(tmp_path)), range(1), resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.json"]


FOUND = {
    "seed": 0,
    "records": 1,
    "acknowledged": 1,
    "duplicates": 0,
    "hit": [],
    "met": {},
    "findings": [{"anomaly": "lost_write", "seen": "s", "expected": "e", "promise": "p", "evidence": []}],
    "scenario": Scenario(seed=0, producer={}).as_dict(),
    "seconds": 1.0,
    "processor_seconds": 0.0,
    "client_seconds": 0.0,
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_campaign_writes_what_it_found(silent, tmp_path, number):
    """Rule: Ctrl-C and SIGTERM end the workers and their drivers, whatever those are at, no other is started,
    and the findings so far are in their files."""
    job, pids = silent
    torture(job, range(0))  # the folder of a campaign, whose first seed is one with a finding
    words = ["torture", job.library, "--seeds", "0:50", "--jobs", "2", "--out", job.out, "--resume"]
    (Path(job.out) / RUNS).write_bytes(msgspec.json.encode(FOUND) + b"\n")
    campaign = subprocess.Popen(
        [sys.executable, "-m", "fencepost", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        eventually(
            lambda: (pids.exists() and len(pids.read_text().split()) >= 2) or campaign.poll() is not None
        )
        assert campaign.poll() is None, campaign.stderr.read()
        left = [identify(pid) for pid in descendants(campaign.pid)]
        campaign.send_signal(number)
        said, noted = campaign.communicate(timeout=BOUND_S)
    finally:
        campaign.kill()
    assert campaign.returncode == 130 and "interrupted" in noted and "lost_write" in said
    eventually(lambda: all(state(one) == "dead" for one in left))
    found = msgspec.json.decode((Path(job.out) / FINDINGS / "lost_write.json").read_bytes())
    assert (found["rate"], found["seeds"]) == ([0, 0], [0])
    assert len(pids.read_text().split()) == 2


def test_a_campaign_whose_first_seeds_cannot_start_ends(tmp_path, monkeypatch, silent):
    """Rule: three seeds that could not start the driver end the campaign with that sentence; they are no
    runs, and are run again when it is resumed."""
    job, _ = silent
    (tmp_path / "own" / "driver").write_text("#!/bin/sh\necho no such module >&2\nexit 7\n")
    for resume in (False, True):
        with pytest.raises(FencepostError, match=r"first 3 seeds could not start it: .*no such module"):
            torture(job, range(20), jobs=1, resume=resume)


def test_a_driver_that_does_not_start_is_no_build(silent, tmp_path, capsys):
    """Rule: `drivers build` starts what it built, and says why it does not start."""
    job, _ = silent
    (tmp_path / "own" / "driver").write_text("#!/bin/sh\necho no such module >&2\nexit 7\n")
    assert run(["torture", "drivers", "build", job.library]) != 0
    assert "no such module" in capsys.readouterr().err


class NoPool:
    """Runs that take a second of a clock of their own."""

    def __init__(self, clock):
        self.clock = clock

    def submit(self, work, *arguments):
        self.clock[0] += 1.0
        done = Future()
        done.set_result(True)
        return done


def test_all_rates_together_take_no_longer_than_the_seeds_did(tmp_path, monkeypatch):
    """Rule: unless a number was asked for, no replay begins that would not end in the time of the seeds; what
    is repeated is said, with its bound."""
    clock, said = [100.0], []
    monkeypatch.setattr("fencepost.torture.campaign.time.monotonic", lambda: clock[0])
    (tmp_path / "out").mkdir()
    job = Job(library="own@1", out=str(tmp_path / "out"))
    lines = [
        {**FOUND, "findings": [{**FOUND["findings"][0], "anomaly": one}]} for one in ("lost_write", "gap")
    ]
    lines.append({**FOUND, "findings": [], "seconds": 3.0})  # from before the campaign was resumed, too
    for asked, spent, rates in ((None, 5.0, {(2, 2), (3, 3)}), (4, 8.0, {(4, 4)})):
        findings, began = {}, clock[0]
        replays = _Replays(pool=NoPool(clock), jobs=1)
        _repeat(replays, job, lines, findings, asked, frozenset(), False, said.append)
        assert clock[0] - began == spent
        assert {tuple(one["rate"]) for one in findings.values()} == rates
    assert "lost_write (1 of 2): seed 0, 10 runs, 2 s at most" in said[0]

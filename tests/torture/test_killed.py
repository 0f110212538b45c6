"""A campaign that is killed leaves no process behind, and one begins only in a folder of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fencepost.impl.runtime.processes import identify, state
from fencepost.torture.campaign import Job, torture
from fencepost.traces.errors import FencepostError

BOUND_S = 600
DRIVER = """#!{python}
import time
print('{{"event": "ready", "protocol": 1, "driver": "own", "library": "own", "version": "1", '
      '"runtime": "r", "roles": ["producer", "consumer"], "commands": ["open", "send"]}}', flush=True)
open({pids!r}, "a").write(f"{{__import__('os').getpid()}}\\n")
time.sleep(900)
"""
CAMPAIGN = """
import sys
from fencepost.torture.campaign import Job, torture
if __name__ == "__main__":
    torture(Job(library=sys.argv[1], out=sys.argv[2]), range(50), jobs=2)
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


def test_workers_and_drivers_end_with_a_killed_campaign(tmp_path):
    """Rule: after kill -9 of a campaign its workers, their clusters and their drivers end, though nothing
    is said to them, and though a driver does not read its standard input."""
    own, pids = tmp_path / "own", tmp_path / "pids"
    own.mkdir()
    (own / "driver").write_text(DRIVER.format(python=sys.executable, pids=str(pids)))
    (own / "driver").chmod(0o755)
    (own / "driver.toml").write_text(
        "name='own'\ntitle='t'\ntoolchain='none'\nnewest='1'\nsources=['driver']"
    )
    script = tmp_path / "campaign.py"
    script.write_text(CAMPAIGN)
    campaign = subprocess.Popen(
        [sys.executable, script, f"{own}@1", tmp_path / "out"],
        env={**os.environ, "FENCEPOST_DRIVERS": str(tmp_path / "cache")},
        stderr=subprocess.DEVNULL,
    )
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

"""A sweep of what is healthy counts its examples, and leaves a script of each complaint that runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.machines.log.planted import script_of
from tools.machine_hunt import LOGS, importing, sweep


@pytest.mark.parametrize("machine", LOGS.values(), ids=list(LOGS))
def test_the_script_of_a_complaint_finds_its_machine(machine, tmp_path):
    """Rule: what was found can be run without the sweep, by the steps that Hypothesis printed."""
    path = tmp_path / "found.py"
    steps = f"state = {machine.__name__}()\nstate.parts"
    path.write_text(script_of(steps, importing(machine), "found"), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr


def test_a_sweep_of_the_healthy_log(tmp_path):
    """Rule: the healthy log shows nothing, and how many examples there were is reported."""
    *_, swept = sweep("DiskMachine", examples=20, folder=tmp_path)
    assert (swept.complaints, swept.machine, swept.rounds) == ((), "DiskMachine", 1)
    assert swept.examples >= 20

"""The sweep of the healthy log leaves a script of each complaint that runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.machines.log.planted import script_of
from tools.log_sweep import MACHINES, importing


@pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
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

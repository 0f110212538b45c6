"""What a killed session leaves goes with the next one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fencepost.mining.spark.scratch import OWNER, PREFIX, scratch_folder
from fencepost.mining.spark.session import _settings

LONG = """
import time
from fencepost.mining.spark.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "blockmgr-1").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The temporary folder of this test, and of its processes."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_the_next_session_sweeps_what_a_killed_one_left(temporary):
    """Rule: the folder of a dead process goes, one of a living process stays, and so does one without a
    known owner."""
    foreign = temporary / f"{PREFIX}foreign"
    foreign.mkdir()
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as process:
        left = Path(process.stdout.readline().strip())
        with scratch_folder() as first:
            assert left.is_dir() and first.is_dir()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert left.is_dir()
    with scratch_folder() as second:
        assert not left.exists() and (second / OWNER).exists() and foreign.exists()
    assert list(temporary.glob(f"{PREFIX}*")) == [foreign]


def test_a_local_session_puts_everything_into_its_folder(tmp_path):
    """Rule: blocks of a local master lie in the folder that is swept; on a cluster its manager says where,
    and the caller's setting wins."""
    assert _settings("local[2]", {}, tmp_path)["spark.local.dir"] == str(tmp_path)
    assert "spark.local.dir" not in _settings("spark://elsewhere:7077", {}, tmp_path)
    assert _settings("local[2]", {"spark.local.dir": "/x"}, tmp_path)["spark.local.dir"] == "/x"

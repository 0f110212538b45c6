"""Makes the helper module of this folder (log_lab.py) importable by its tests; a disk and a log for them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from log_lab import disk_of, open_log

from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.sim.disk import Disk


@pytest.fixture
def disk() -> Disk:
    """A fresh one."""
    return disk_of()


@pytest.fixture
def log(disk: Disk) -> SegmentedLog:
    """The log of this disk, empty."""
    return open_log(disk)

"""The two worlds: the same test body runs in both."""

import pytest

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness


@pytest.fixture(params=["simulated", "real"])
def files(request, tmp_path) -> FileSystem:
    """An empty file system of either world."""
    if request.param == "real":
        return RealFiles(tmp_path)
    return Disk(node=1, randomness=Randomness(1))

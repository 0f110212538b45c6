"""The folder of a Spark session on this machine: logs of its JVM, and what Spark puts down while it works.

Owns the folder, who it belongs to, and that folders of dead processes go. Must not know Spark. A process that
is killed cannot clean up; the next session does it.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fencepost.impl.runtime.processes import ProcessId, identify, state

PREFIX = "fencepost-spark-"
OWNER = "owner"
"""The file that says which process made the folder: its number and its start time."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is gone at the end, or when the next one is made after this process was killed."""
    sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        ours = identify(os.getpid())
        (Path(name) / OWNER).write_text(f"{ours.pid} {ours.began}", encoding="ascii")
        yield Path(name)


def sweep() -> None:
    """Delete the folders of processes that are dead. One without an owner, or of another user, stays."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            pid, began = (folder / OWNER).read_text(encoding="ascii").split()
            if state(ProcessId(int(pid), int(began))) == "dead":
                shutil.rmtree(folder, ignore_errors=True)

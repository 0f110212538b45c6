"""Whose tasks may write into a campaign's folder, when some run in processes that outlive their driver.

Owns the file that names the driver's sitting. Must not know what a task writes.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = ".spark"
"""In the campaign's folder, while there is such a sitting."""
SITTING = "sitting"
NO_SITTING = "another driver"
"""The name of a sitting without such tasks."""


@contextmanager
def sitting_locked(folder: Path, *, exclusive: bool) -> Iterator[int]:
    """The open file that names the sitting; it does not change meanwhile. With `exclusive` it is not read
    either."""
    descriptor = os.open(folder / SITTING, os.O_RDWR | (os.O_CREAT if exclusive else 0), 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def take_over(folder: Path, sitting: str) -> None:
    """Make this the only sitting: from now on the tasks of earlier sittings write nothing."""
    folder.mkdir(exist_ok=True)
    with sitting_locked(folder, exclusive=True) as descriptor:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, sitting.encode(), 0)
    for path in folder.glob("begun-*"):  # seeds that ran when the last sitting ended did not end it
        path.unlink(missing_ok=True)

"""The end of a mount, also of one that nobody serves any more; and the writing of what the kernel holds.

Owns these two calls of the system. Must not know what is mounted.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

MNT_DETACH = 2
UNMOUNT_S = 10.0
"""An unmount takes milliseconds; a machine under load may need seconds."""
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def unmount(folder: str | Path) -> None:
    """Take the mount away at once, even if files are open. Nothing happens if there is none."""
    if _LIBC is None or _LIBC.umount2(os.fsencode(folder), MNT_DETACH) == 0:
        return
    helper = shutil.which("fusermount3")
    if helper is not None:
        command = [helper, "-u", "-z", "-q", str(folder)]
        subprocess.run(command, capture_output=True, timeout=UNMOUNT_S, check=False)


def is_mounted(folder: Path) -> bool:
    """Whether something is mounted there, served or not."""
    wanted = str(folder.absolute())
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return os.path.ismount(folder)
    return any(line.split(" ")[1].replace("\\040", " ") == wanted for line in lines)


def write_dirty_pages(folder: Path) -> None:
    """Have the kernel write what processes changed in memory; there is no device to wait for. Raises
    OSError."""
    if _LIBC is None:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if _LIBC.syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)

"""The machine resources of this process.

Owns reading the memory in use. Must not know how it is used.
"""

import re
import resource
import sys
from pathlib import Path

_UNIT = 1 if sys.platform == "darwin" else 1024
"""Of ru_maxrss: bytes on macOS, kibibytes elsewhere."""
_HIGH_WATER = re.compile(rb"^VmHWM:\s*(\d+) kB$", re.MULTILINE)


def resident_bytes() -> int:
    """The largest memory that this process has had so far. On Linux ru_maxrss is different: a child process
    inherits the peak of its parent."""
    try:
        match = _HIGH_WATER.search(Path("/proc/self/status").read_bytes())
    except OSError:
        match = None
    return int(match[1]) * 1024 if match else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT

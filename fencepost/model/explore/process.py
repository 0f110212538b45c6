"""What this process uses of the machine.

Owns: reading the memory in use. Must not know why anybody asks.
"""

import resource
import sys

_UNIT = 1 if sys.platform == "darwin" else 1024
"""Of ru_maxrss: bytes on macOS, kibibytes elsewhere."""


def resident_bytes() -> int:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT

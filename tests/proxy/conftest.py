"""Helpers of the wire tests are at hand: the simulated cluster behind real sockets."""

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "wire"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

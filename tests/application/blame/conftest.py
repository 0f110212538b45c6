"""Helpers of the proxy and wire tests are at hand: a proxy, and the simulated cluster with real sockets."""

import sys
from pathlib import Path

for folder in (Path(__file__).parents[2] / "proxy", Path(__file__).parents[2] / "wire"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

"""Lets the tests of this folder import the naive twins of both checks and their histories."""

import sys
from pathlib import Path

for folder in ("transactions", "exactly_once"):
    sys.path.insert(0, str(Path(__file__).parents[2] / folder))

"""Lets the tests of this folder import its histories, and the naive twins of both checks and theirs."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent, HERE.parents[1] / "exactly_once"):
    sys.path.insert(0, str(folder))

"""The explorer and TLC agree on every variant of every model: half an hour (`make measure NAME=model`)."""

import os
import time

import pytest

from fencepost.model.comparison.sameness import compare
from fencepost.model.registry import NAMES
from fencepost.model.tla import variants
from tests.model.quick import QUICK

ROWS = [
    row for name in NAMES for size in ("small", "medium") for row in getattr(variants, f"of_{name}")(size)
]


@pytest.mark.java
@pytest.mark.skipif("FENCEPOST_ALL_VARIANTS" not in os.environ, reason="half an hour")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.constants))
def test_both_say_the_same(row):
    """Rule: result, length of a shortest counterexample, number and depth of states are one."""
    comparison = compare(row.constants, time.monotonic, QUICK, count=row.count)
    assert comparison.explorer.compared == comparison.tlc.compared

"""The explorer and TLC see the same answers to ListOffsets in the replication model."""

import pytest

from fencepost.model.comparison.sameness import by_tlc
from fencepost.model.replication.replication_state import Constants
from tests.model.quick import QUICK

UNGUARDED = Constants(replicas=2, log_size=1, values=1, lists=2, drop={"offset_not_available"})


@pytest.mark.java
def test_an_unguarded_answer_is_missed_by_both():
    """Rule (KIP-207): TLC's shortest counterexample is as long as the explorer's
    (tests/model/replication/test_replication_lists.py), and breaks HW-MONO."""
    seen = by_tlc(UNGUARDED, QUICK, count=False)
    assert (seen.result, seen.invariant, seen.steps) == ("violated", "HW-MONO", 8)

"""The explorer and TLC see the same answers to ListOffsets in the replication model."""

import pytest

from fencepost.model.replication_state import Constants
from fencepost.model.tla.sameness import by_tlc, states_of_explorer, states_of_tlc
from fencepost.model.tlc import RunOptions

QUICK = RunOptions(java_options=("-XX:TieredStopAtLevel=1",))
UNGUARDED = Constants(replicas=2, log_size=1, values=1, lists=2, drop={"offset_not_available"})


@pytest.mark.java
def test_the_very_same_states_with_lists():
    """Rule: TLC's dump of Replication.tla and the Python model's states are one set, where leaders answer as they like."""
    assert (states_of_tlc(UNGUARDED, QUICK), 2_112) == (states := states_of_explorer(UNGUARDED), len(states))


@pytest.mark.java
def test_an_unguarded_answer_is_missed_by_both():
    """Rule (KIP-207): TLC's shortest counterexample is as long as the explorer's, and breaks HW-MONO."""
    seen = by_tlc(UNGUARDED, QUICK, count=False)
    assert (seen.result, seen.invariant, seen.steps) == ("violated", "HW-MONO", 8)

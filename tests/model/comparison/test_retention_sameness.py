"""The explorer and TLC see the same retention in the replication model."""

import time

import pytest

from fencepost.model.comparison.sameness import compare, states_of_explorer, states_of_tlc
from fencepost.model.replication.replication_state import Constants
from fencepost.model.tla.dropped import shortest_counterexample
from fencepost.model.tla.variants import RETENTION
from fencepost.traces.errors import FencepostError
from tests.model.quick import QUICK


@pytest.mark.java
def test_the_very_same_states_with_retention():
    """Rule: TLC's dump of Replication.tla and the Python model's states are one set, with the three
    protections of a log's bounds dropped and a record lost."""
    constants = Constants(replicas=2, log_size=1, values=1, crashes=1, losses=1, log_starts=1, drop=RETENTION)
    assert (states_of_tlc(constants, QUICK), 14_059) == (states := states_of_explorer(constants), len(states))


@pytest.mark.java
@pytest.mark.parametrize(
    ("drop", "expected"),
    [((), ("holds", 0, 3_161, 15)), (("high_watermark_within_log",), ("violated", 10, -1, -1))],
    ids=["nothing dropped", "KAFKA-3978"],
)
def test_a_high_watermark_leaves_its_log_on_both_sides(drop, expected):
    """Rule (HW-BOUNDS): counts, depth and the length of a shortest counterexample are TLC's, too.

    Its steps are in tests/model/replication/test_replication_retention.py.
    """
    comparison = compare(Constants(replicas=2, log_starts=1, drop=drop), time.monotonic, QUICK, count=False)
    assert comparison.same
    assert comparison.explorer.compared == expected


def test_no_plan_is_drafted_of_retention():
    """Rule: a counterexample that no plan can follow is refused in one sentence, before TLC runs."""
    with pytest.raises(FencepostError, match="below_high_watermark, which keeps HW-BOUNDS"):
        shortest_counterexample(Constants(drop={"below_high_watermark"}), "HW-BOUNDS")

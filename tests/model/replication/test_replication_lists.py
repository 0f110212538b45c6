"""model/replication with ListOffsets: what clients are told as the end of a log never goes back (KIP-207)."""

import pytest

from fencepost.model.explore import ExplorationOutcome, breadth_first, explore
from fencepost.model.replication.replication_invariants import listed_ends_grow
from fencepost.model.replication.replication_state import Constants
from fencepost.model.replication.replication_system import Replication
from tests.model.acts import acts

SMALL = Constants(replicas=2, log_size=1, values=1, lists=2)
UNGUARDED = Constants(replicas=2, log_size=1, values=1, lists=2, drop={"offset_not_available"})


@pytest.mark.parametrize(
    ("constants", "distinct", "depth"),
    [
        (SMALL, 1_781, 13),
        (Constants(replicas=2, log_size=1, values=1, crashes=1, lists=2), 11_120, 16),
        (Constants(replicas=2, lists=2), 9_589, 16),
    ],
    ids=["one record", "a crash", "two records"],
)
def test_told_ends_never_go_back(constants: Constants, distinct: int, depth: int) -> None:
    """Rule (HW-MONO): a leader of the same or a later epoch never tells less; restarts and elections
    included."""
    result = explore(Replication(constants))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, distinct, depth)
    assert result.never_taken == ()


def test_a_lagging_high_watermark_is_told_without_the_guard() -> None:
    """Rule (KIP-207): a new leader that answers at once tells less than its predecessor did."""
    result = explore(Replication(UNGUARDED))
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, "HW-MONO")
    assert result.actions == acts(
        "elect 1 2, append 0, fetch 1, fetch 1, advance_high_watermark 0, list_offsets 0, become_leader 1 1, "
        "list_offsets 1"
    )
    assert result.path == breadth_first.explore(Replication(UNGUARDED)).path


def test_a_deposed_leader_may_tell_less() -> None:
    """Rule: an answer of an earlier epoch that comes later is an accepted hazard; one of the same epoch is
    not."""
    assert listed_ends_grow(((1, 1), (0, 0)))
    assert not listed_ends_grow(((0, 1), (0, 0)))


def test_replicas_stay_alike_with_lists() -> None:
    """Rule: what was listed names no replica, so followers stay alike: about half as many states."""
    system = Replication(Constants(log_size=1, values=1, lists=1))
    plain, result = explore(system), explore(system, symmetry=True)
    assert (plain.distinct, result.distinct) == (23_884, 12_197)
    assert (result.outcome, result.depth) == (ExplorationOutcome.HOLDS, plain.depth)


def test_nobody_asks_by_default() -> None:
    """Rule: without lists there is no such action, no such slot, and as many states as ever."""
    system = Replication(Constants(replicas=2))
    assert "list_offsets" not in system.action_names
    assert len(system.kinds) == 5
    assert explore(system).distinct == 1_241

"""model/replication with retention: logs that start later, high watermarks inside them (HW-BOUNDS), and
followers that start over."""

import pytest

from fencepost.model.explore import ExplorationOutcome, breadth_first, explore, render
from fencepost.model.replication.epoch_truncation import truncate_start
from fencepost.model.replication.replication_invariants import (
    high_watermark_inside,
    leader_holds_committed,
    logs_match,
)
from fencepost.model.replication.replication_state import GONE, Constants
from fencepost.model.replication.replication_system import Replication
from tests.model.acts import acts


@pytest.mark.parametrize(
    ("constants", "distinct", "depth"),
    [
        (Constants(replicas=2, log_starts=1), 3_161, 15),
        (Constants(replicas=2, log_size=1, values=1, epochs=2, log_starts=1), 5_553, 17),
    ],
    ids=["two records", "two elections"],
)
def test_logs_that_start_later_are_safe(constants: Constants, distinct: int, depth: int) -> None:
    """Rule: with every protection, retention loses no committed record that a leader should hold, and no high
    watermark leaves its log."""
    result = explore(Replication(constants))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, distinct, depth)
    assert (result.never_taken, result.never_reached) == ((), ())


CASES = {
    "below_high_watermark": (7_217, (("append", 0), ("delete_oldest", 0))),
    "high_watermark_within_log": (
        3_207,
        acts(
            "elect 1 2, append 0, fetch 1, fetch 1, advance_high_watermark 0, become_follower 0 1, "
            "delete_oldest 0, become_leader 1 1, truncate 0, fetch 0"
        ),
    ),
    "high_watermark_follows_log_start": (
        3_179,
        acts("append 0, shrink_isr 0 1, advance_high_watermark 0, delete_oldest 0, start_over 1"),
    ),
}


@pytest.mark.parametrize("protection", CASES)
def test_a_high_watermark_leaves_its_log(protection: str) -> None:
    """Rule (KAFKA-5634, KAFKA-3978, KAFKA-9491): without a protection HW-BOUNDS falls first, by this shortest
    history."""
    distinct, actions = CASES[protection]
    constants = Constants(replicas=2, log_starts=1, drop={protection})
    result = explore(Replication(constants))
    assert (result.outcome, result.invariant, result.actions) == (
        ExplorationOutcome.VIOLATED,
        "HW-BOUNDS",
        actions,
    )
    assert result.path == breadth_first.explore(Replication(constants)).path
    assert explore(Replication(constants, ())).distinct == distinct


def test_a_checkpoint_may_lie_beyond_a_log_that_lost_its_end() -> None:
    """Rule (KAFKA-3978): what a replica starts with is compared with the log that it finds; the loss itself
    is another matter (COMMIT-SAFE)."""
    bounds = Constants(replicas=2, log_size=1, values=1, crashes=1, losses=1)
    assert explore(Replication(bounds, ("HW-BOUNDS",))).outcome is ExplorationOutcome.HOLDS
    unclamped = Constants(
        replicas=2, log_size=1, values=1, crashes=1, losses=1, drop={"high_watermark_within_log"}
    )
    result = explore(Replication(unclamped, ("HW-BOUNDS",)))
    assert result.actions == acts("append 0, shrink_isr 0 1, advance_high_watermark 0, crash 0 1, restart 0")


def test_what_is_gone_is_no_divergence() -> None:
    """Rule: logs are compared from where both start, and a leader need not hold what retention took; another
    record there is a loss as ever."""
    assert logs_match(((GONE, (0, 1)), 2), (((0, 0), (0, 1)), 2))
    assert not logs_match(((GONE, (0, 1)), 2), (((0, 0), (1, 2)), 2))
    assert leader_holds_committed(((GONE,), 1), ((0, 0, 0),))
    assert not leader_holds_committed((((1, 1),), 1), ((0, 0, 0),))
    assert high_watermark_inside((1, 1, 1))
    assert not high_watermark_inside((1, 0, 1))


def test_a_cut_at_the_start_keeps_the_epoch_of_the_first_record() -> None:
    """Rule (truncateFromStart): the epoch that the first record is of begins at the new start, earlier ones
    go."""
    assert truncate_start(((0, 0), (1, 2), (3, 4)), 3) == ((1, 3), (3, 4))
    assert truncate_start(((1, 2),), 1) == ((1, 2),)
    assert truncate_start((), 1) == ()


def test_a_counterexample_tells_what_is_gone() -> None:
    """Rule: a person sees where a log starts."""
    system = Replication(Constants(replicas=2, log_starts=1, drop={"below_high_watermark"}))
    assert "0: [gone] high watermark 0, leads epoch 0" in render(system, explore(system))


def test_nothing_is_deleted_by_default() -> None:
    """Rule: without log_starts there are no such actions and as many states as ever."""
    system = Replication(Constants(replicas=2))
    assert not {"delete_oldest", "start_over"} & set(system.action_names)
    assert explore(system).distinct == 1_241

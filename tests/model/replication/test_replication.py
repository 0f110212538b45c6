"""model/replication/replication_system.py: what holds with every protection, and the shortest way to a
violation without each.

The numbers are exact: breadth-first exploration of a fixed system in one process. A case may start after a
history, where the violation is too deep for a quick test.
"""

import pytest

from fencepost.model.explore import After, ExplorationOutcome, explore, render
from fencepost.model.replication.replication_state import Constants
from fencepost.model.replication.replication_system import Replication
from tests.model.acts import acts

SAFE = ("COMMIT-SAFE", "LOG-MATCH")


@pytest.mark.parametrize(
    ("constants", "distinct", "depth"),
    [
        (Constants(epochs=1), 55_860, 21),
        (Constants(epochs=2, replicas=2), 13_740, 19),
        (Constants(epochs=1, replicas=2, crashes=1), 8_509, 16),
    ],
)
def test_all_protections_hold(constants: Constants, distinct: int, depth: int) -> None:
    """Rule: with every protection all invariants hold in every reachable state, and every action and
    `sometimes` is reached."""
    result = explore(Replication(constants))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, distinct, depth)
    assert result.never_taken == ()
    assert result.never_reached == ()


CASES = {
    "truncate_by_epoch": (
        "COMMIT-SAFE",
        2,
        (("append", 0), ("shrink_isr", 0, 1), ("elect", 0, 5)),
        acts(
            "elect 2 4, fetch 2, fetch 2, advance_high_watermark 0, become_follower 2 1, truncate 2, "
            "become_leader 2 2"
        ),
    ),
    "truncate_below_own_epoch": (
        "LOG-MATCH",
        2,
        (("elect", 1, 6), ("elect", 2, 4)),
        acts(
            "append 0, become_leader 1 1, append 1, become_follower 1 2, fetch 2, become_leader 2 2, "
            "truncate 1, advance_high_watermark 2, fetch 1"
        ),
    ),
    "assign_epoch_on_election": (
        "COMMIT-SAFE",
        3,
        acts(
            "append 0, fetch 1, fetch 2, fetch 1, fetch 2, advance_high_watermark 0, elect 1 6, "
            "become_leader 1 1, append 1"
        ),
        acts("elect 2 6, elect 1 2, become_follower 1 2, become_leader 2 2, truncate 1, become_leader 1 3"),
    ),
    "fetch_fencing": (
        "COMMIT-SAFE",
        3,
        acts(
            "append 0, fetch 1, elect 2 7, become_leader 2 1, become_follower 0 1, truncate 0, append 2, "
            "fetch 0"
        ),
        acts("elect 0 3, elect 1 2, become_leader 0 2, fetch 1, advance_high_watermark 0, become_leader 1 3"),
    ),
    "isr_expand_after_epoch_start": (
        "COMMIT-SAFE",
        2,
        acts("append 0, append 0, shrink_isr 0 1, elect 2 4, become_follower 1 1"),
        acts(
            "fetch 2, fetch 2, fetch 2, advance_high_watermark 0, become_leader 2 1, fetch 1, expand_isr 2 "
            "1, elect 1 2, become_leader 1 2"
        ),
    ),
    "leader_epoch_fencing": (
        "EPOCH-MONO",
        2,
        (),
        (("elect", 0, 7), ("become_leader", 0, 1), ("become_leader", 0, 0)),
    ),
}


@pytest.mark.parametrize("protection", CASES)
def test_a_dropped_protection_is_missed(protection: str) -> None:
    """Rule: without a protection its invariant falls, by this shortest history."""
    invariant, epochs, prefix, actions = CASES[protection]
    constants = Constants(epochs=epochs, drop={protection})
    result = explore(After(Replication(constants, (invariant,)), prefix))
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, invariant)
    assert result.actions == actions


def test_an_unfenced_fetch_parts_logs_before_it_loses_records() -> None:
    """Rule (KIP-320): a follower that never truncated passes for in sync: its log differs below the high
    watermark, one election before a record is lost."""
    _, _, prefix, _ = CASES["fetch_fencing"]
    result = explore(After(Replication(Constants(epochs=2, drop={"fetch_fencing"}), SAFE), prefix))
    assert result.invariant == "LOG-MATCH"
    assert [action[0] for action in result.actions] == [
        "elect", "become_leader", "shrink_isr", "advance_high_watermark", "fetch",
    ]  # fmt: skip


def test_two_replicas_hide_unfenced_fetches() -> None:
    """Rule (TLC's known result): without KIP-320, two replicas look safe; three do not. Always use three."""
    result = explore(Replication(Constants(epochs=2, replicas=2, drop={"fetch_fencing"}), SAFE))
    assert (result.outcome, result.distinct) == (ExplorationOutcome.HOLDS, 24_077)


def test_two_replicas_show_truncation_below_the_own_epoch() -> None:
    """Rule (KIP-279's own story): two brokers and quick elections are enough for logs to part."""
    result = explore(Replication(Constants(epochs=2, replicas=2, drop={"truncate_below_own_epoch"})))
    assert (result.invariant, len(result.actions), result.distinct) == ("LOG-MATCH", 10, 6_581)


def test_an_earlier_incarnation_needs_the_broker_epoch() -> None:
    """Rule (KIP-380): a restarted broker that obeys LeaderAndIsr meant for its former self leads an epoch
    that is over."""
    result = explore(Replication(Constants(crashes=1, drop={"broker_epoch_fencing"})))
    assert (result.invariant, len(result.actions)) == ("EPOCH-MONO", 7)


def test_loss_of_an_unsynced_tail_is_an_accepted_hazard() -> None:
    """Rule: ZooKeeper-era Kafka loses data when the last ISR member loses its tail; a run's claims must say
    so."""
    result = explore(Replication(Constants(crashes=1, losses=1, log_size=1, values=1)))
    assert result.invariant == "COMMIT-SAFE"
    assert result.actions == acts(
        "append 0, shrink_isr 0 1, shrink_isr 0 2, advance_high_watermark 0, crash 0 1, restart 0, "
        "become_leader 0 0"
    )


def test_a_leader_that_leads_its_old_epoch_again_may_fork_it() -> None:
    """Rule: a leader that lost its tail and restarts unwatched writes another record at the same (epoch,
    offset)."""
    result = explore(Replication(Constants(crashes=1, losses=1)))
    assert result.invariant == "LOG-MATCH"
    assert [action[0] for action in result.actions] == [
        "append", "fetch", "crash", "restart", "become_leader", "append",
    ]  # fmt: skip


def test_a_counterexample_tells_roles_and_logs() -> None:
    """Rule: a person can follow a counterexample."""
    system = Replication(Constants(drop={"leader_epoch_fencing"}))
    text = render(system, explore(system))
    assert "3. become_leader(0, 0)\n     ZooKeeper: epoch 1, leader 0, ISR [0, 1, 2]" in text
    assert "1: [] high watermark 0, follows 0 in epoch 0" in text

"""model/replication where the high watermark is all there is to cut at: a checkpoint that forgets a replica
without a role (KAFKA-1647, harmful together with KIP-101 only), and records without epochs (KAFKA-6857)."""

import pytest

from fencepost.model.explore import After, ExplorationOutcome, explore
from fencepost.model.replication.replication_state import Constants
from fencepost.model.replication.replication_system import Replication
from fencepost.traces.errors import FencepostError
from tests.model.acts import acts

BY_EPOCH, CHECKPOINTED = "truncate_by_epoch", "keep_checkpointed"
COPIED = (("append", 0), ("fetch", 1), ("fetch", 1), ("advance_high_watermark", 0), ("fetch", 1))
"""One record, committed, and the follower knows that it is: its high watermark does not lag."""


def two_crashes(*drop: str) -> Constants:
    """Two replicas, one record, one election."""
    return Constants(replicas=2, log_size=1, values=1, crashes=2, drop=drop)


@pytest.mark.parametrize(
    ("drop", "distinct", "depth"),
    [((), 4_623, 16), ((CHECKPOINTED,), 4_969, 15)],
    ids=["nothing dropped", "KAFKA-1647"],
)
def test_truncation_by_epoch_needs_no_checkpoint(drop: tuple[str, ...], distinct: int, depth: int) -> None:
    """Rule: a forgotten high watermark alone loses nothing, from the beginning and with every restart:
    followers cut where epochs part."""
    result = explore(Replication(two_crashes(*drop)))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, distinct, depth)


def test_a_current_high_watermark_saves_a_follower_that_cuts_there() -> None:
    """Rule: KIP-101 alone, from where the follower's high watermark is current, loses nothing in one
    election."""
    result = explore(After(Replication(two_crashes(BY_EPOCH)), COPIED))
    assert (result.outcome, result.distinct) == (ExplorationOutcome.HOLDS, 647)


def test_a_forgotten_checkpoint_loses_what_was_committed() -> None:
    """Rule (KAFKA-1647 with KIP-101): killed twice before its leader is back, a follower starts at 0, cuts
    there, and is elected without the record."""
    result = explore(After(Replication(two_crashes(BY_EPOCH, CHECKPOINTED)), COPIED))
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, "COMMIT-SAFE")
    assert result.actions == acts(
        "crash 1 0, restart 1, crash 1 0, restart 1, elect 1 2, become_follower 1 0, truncate 1, "
        "become_leader 1 1"
    )


def without_epochs(*drop: str, old_format: int = 1, epochs: int = 1) -> Constants:
    """Two replicas, two records for one place in the log."""
    return Constants(replicas=2, log_size=1, old_format=old_format, epochs=epochs, drop=drop)


@pytest.mark.parametrize(
    "constants",
    [without_epochs("undefined_has_no_end", old_format=0), without_epochs()],
    ids=["KAFKA-6857 with epochs", "the old format"],
)
def test_a_leader_without_epochs_has_followers_cut_at_their_high_watermark(constants: Constants) -> None:
    """Rule: with epochs nobody asks for the undefined one and has something to lose; without, the fall back
    holds in one election."""
    result = explore(Replication(constants))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, 340, 10)


def test_a_leader_without_epochs_answers_its_log_end() -> None:
    """Rule (KAFKA-6857): a deposed leader that is told the log end keeps a record that nobody else has, and
    passes for in sync."""
    result = explore(Replication(without_epochs("undefined_has_no_end")))
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, "LOG-MATCH")
    assert result.actions == acts(
        "elect 1 2, append 0, become_follower 0 1, become_leader 1 1, append 1, truncate 0, "
        "advance_high_watermark 1, fetch 0"
    )


def test_the_old_format_loses_records_in_two_elections() -> None:
    """Rule (KIP-101): without epochs in records a committed record is lost with everything in place, so
    nobody should take the old format for safe."""
    result = explore(Replication(without_epochs(epochs=2)))
    assert (result.invariant, len(result.actions)) == ("COMMIT-SAFE", 10)


def test_there_are_two_formats() -> None:
    """Rule: another number is the caller's mistake in one sentence."""
    with pytest.raises(FencepostError, match="0 or 1"):
        without_epochs(old_format=2)

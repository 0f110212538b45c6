"""The explorer and TLC see the same transactions: as many states, as deep, the very same ones, and the same
variants fail.

Each JVM costs seconds, so few runs cover most protections here; `test_every_variant.py`
runs every variant.
"""

import time

import pytest

from fencepost.cli import run as fencepost
from fencepost.model.comparison.sameness import by_explorer, by_tlc
from fencepost.model.tla import FOLDER
from fencepost.model.transaction.transaction_state import OF_TRANSACTIONS, Constants
from tests.model.comparison.whole_states import states_of_explorer, states_of_tlc
from tests.model.quick import QUICK
from tests.model.transaction.needed import ONLY_FIRST_NEEDS

DEPOSED = Constants(
    transactions=1,
    epochs=1,
    drop={"deposed_is_silent", "loaded", "go_on_with_ends", "decide_durably", "coordinator_fencing"},
)
UNGUARDED = Constants(transactions=1, drop={"is_written", "is_needed", "check", "fence"}, producer_epochs=1)
PARTITIONS = Constants(
    version=2, transactions=1, partitions=2, drop={"still_guarded", "to_mark"}, producer_epochs=1
)
FIRST = Constants(drop={"no_late_end", "settle", "epoch_fencing"}, producer_epochs=1)
SECOND = Constants(
    version=2,
    drop={*ONLY_FIRST_NEEDS, "marker_above_epoch", "check_marker", "one_at_a_time"},
    producer_epochs=1,
)
SUCCESSOR = Constants(
    version=2, producers=2, transactions=1, drop={"abort_open_first", "marker_again"}, producer_epochs=1
)
CASES = {
    "a deposed coordinator": (DEPOSED, 2_133),
    "no guards": (UNGUARDED, 709),
    "two partitions": (PARTITIONS, 1_067),
    "late requests, version 1": (FIRST, 2_706),
    "late requests, version 2": (SECOND, 2_791),
    "a successor": (SUCCESSOR, 2_355),
}


@pytest.mark.java
@pytest.mark.parametrize(("constants", "distinct"), CASES.values(), ids=CASES)
def test_the_very_same_states(constants, distinct):
    """Rule: TLC's dump of Transaction.tla and the Python model's states are one set, without protections,
    in both versions."""
    states = states_of_explorer(constants)
    assert (states_of_tlc(constants, QUICK), distinct) == (states, len(states))


def test_the_cases_drop_every_protection_that_changes_states():
    """Rule: what is compared state by state covers all but what only readers see."""
    dropped = set().union(*(constants.drop for constants, _ in CASES.values()))
    assert OF_TRANSACTIONS - dropped == {"last_stable_offset", "aborted_transactions", "count", "ended"}


@pytest.mark.java
@pytest.mark.parametrize(
    ("drop", "offsets", "steps", "invariant"),
    [("still_guarded", 0, 13, "NO-HANGING"), ("ended", 1, 10, "READ-COMMITTED")],
)
def test_a_missed_protection_is_missed_by_both(drop, offsets, steps, invariant):
    """Rule (T8, T10): a shortest counterexample has the same length and the same invariant on both sides."""
    constants = Constants(transactions=1, offsets=offsets, drop={drop})
    seen = by_explorer(constants, time.monotonic, count=False), by_tlc(constants, QUICK, count=False)
    assert [(one.result, one.steps, one.invariant) for one in seen] == [("violated", steps, invariant)] * 2


def test_every_protection_keeps_something():
    """Rule: the module asks for each protection by its name, but for those that only readers see."""
    text = (FOLDER / "Transaction.tla").read_text()
    assert all(f'Keeps("{name}")' in text for name in OF_TRANSACTIONS - {"ended", "aborted_transactions"})


def test_the_command_line(capsys):
    """Rule: the transaction model is explored, bounded and listed like any other; a bug's id names its
    protection; --eventually asks for TXN-END."""
    small = ["model", "explore", "transaction", "--constant", "transactions=1"]
    assert fencepost([*small, "--drop", "T10"]) == 1
    out = capsys.readouterr().out
    assert "NO-HANGING is violated in 13 steps" in out
    assert fencepost([*small, "--constant", "partitions=2", "--states", "100"]) == 3
    assert fencepost(["model", "explore", "transaction", "--drop", "KIP-101"]) == 2
    stuck = [*small, "--constant", "epochs=1", "--drop", "KAFKA-16352", "--eventually"]
    assert fencepost(stuck) == 1
    assert "TXN-END" in capsys.readouterr().out
    assert fencepost(["model", "list", "--json"]) == 0
    assert '"no_late_end"' in capsys.readouterr().out

"""model/transaction: what holds with every protection, in both versions; the table of what falls without
each; the shortest histories of the bugs that Kafka had."""

from pathlib import Path

import pytest
from attrs import evolve

from fencepost.model.explore import ExplorationOutcome, explore, render
from fencepost.model.explore.eventually import stays_possible
from fencepost.model.transaction.transaction_invariants import (
    all_or_nothing,
    as_told,
    decided_as_marked,
    ends_its_own,
    never_hangs,
    nothing_late,
    one_decision,
    shows_committed,
)
from fencepost.model.transaction.transaction_state import (
    ABORTED,
    COMMITTED,
    COMPLETE_COMMIT,
    EMPTY,
    NONE,
    OF_TRANSACTIONS,
    ONGOING,
    UNDECIDED,
    Constants,
    Ghost,
    Journal,
    Partition,
    Record,
    Transaction,
)
from fencepost.model.transaction.transaction_system import Transactions
from fencepost.traces.errors import FencepostError
from tests.model.transaction.needed import HOLDS, ONLY_FIRST_NEEDS, ROWS, Fall, first_fall, table, without

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "model-transaction.md"
IDLE = {
    "give_up", "init", "given",
}  # fmt: skip
"""Actions that need a protection dropped, a second process, or a second transaction."""

COUNTS = {
    (1, 0): (1_919, 32),
    (2, 0): (836, 26),
    (1, 2): (3_012, 24),
    (2, 2): (1_400, 20),
    (1, 3): (7_639, 33),
    (2, 3): (2_878, 29),
    (1, 1): (26_877, 35),
    (2, 1): (11_168, 29),
}
"""(version, number in HOLDS) -> states and depth."""


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("number", range(len(HOLDS)))
def test_all_protections_hold(version: int, number: int) -> None:
    """Rule (KIP-98, KIP-890): with every protection all invariants hold in every reachable state, in both
    versions, and only actions that cannot happen are never taken."""
    constants = evolve(HOLDS[number], version=version)
    result = explore(Transactions(constants))
    assert result.outcome is ExplorationOutcome.HOLDS
    if (version, number) in COUNTS:
        assert (result.distinct, result.depth) == COUNTS[version, number]
    assert set(result.never_taken) <= IDLE
    assert not result.never_reached


@pytest.mark.parametrize("constants", HOLDS, ids=["next", "fail-over", "partitions", "successor"])
def test_the_second_version_holds_without_what_only_the_first_needs(constants: Constants) -> None:
    """Rule (KIP-890): an epoch for each transaction replaces seven protections at once: three assumptions
    about the network, and four guards."""
    result = explore(Transactions(evolve(constants, version=2, drop=ONLY_FIRST_NEEDS)))
    assert result.outcome is ExplorationOutcome.HOLDS
    assert not result.never_reached


def test_the_table_is_the_explorers() -> None:
    """Rule: the page has the table that the explorer makes; each protection has its row; each falls in one
    version at least."""
    assert set(ROWS) == OF_TRANSACTIONS
    made = table()
    assert made in PAGE.read_text()
    for line in made.splitlines()[2:]:
        assert "steps" in line, line


def test_the_highest_producer_epoch_is_no_bound() -> None:
    """Rule: with all protections a higher bound on producer epochs has the same states."""
    for version in (1, 2):
        few, many = (
            explore(Transactions(evolve(HOLDS[3], version=version, producer_epochs=bound)))
            for bound in (8, 20)
        )
        assert (few.distinct, few.depth) == (many.distinct, many.depth)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("constants", HOLDS, ids=["next", "fail-over", "partitions", "successor"])
def test_every_transaction_ends(version: int, constants: Constants) -> None:
    """Rule (TXN-END): from every reachable state the brokers' own steps complete each transaction."""
    system = Transactions(evolve(constants, version=version), ())
    (wanted,) = system.eventually.values()
    prospect = stays_possible(system, wanted)
    assert (prospect.outcome, prospect.stuck) == (ExplorationOutcome.HOLDS, 0)


# ---- the histories of Kafka's bugs


def names(constants: Constants) -> list[str]:
    """The actions of a shortest counterexample, by name."""
    return [str(action[0]) for action in explore(Transactions(constants)).actions]


def test_a_late_end_reaches_the_next_transaction() -> None:
    """Rule (KAFKA-17754): an EndTxn that arrives after its producer was answered ends what the producer has
    begun since. The next transaction loses a record, and its commit is acknowledged."""
    found = explore(Transactions(without("no_late_end", 1)))
    assert found.invariant == "TXN-ATOM"
    answered, arrived = (found.actions.index(one) for one in (("ended", 0, 0), ("end", 0, 0, 0, 0)))
    assert answered < arrived
    ghost = found.path[-1].state.ghost
    (record,) = found.path[-1].state.partitions[0].records
    assert record.fate == ABORTED and ghost.acknowledged >> record.transaction & 1


def test_an_answer_outlives_its_transaction() -> None:
    """Rule (T10, KAFKA-14884): a batch is appended by a verification from before the abort marker, and nobody
    will ever end what it begins."""
    actions = names(without("still_guarded", 1))
    assert actions.index("verify") < actions.index("mark") < actions.index("append")


def test_a_repeated_marker_is_refused_for_ever() -> None:
    """Rule (KAFKA-19999): with KIP-1228's strict epoch the coordinator's second attempt is refused, and the
    transaction stays in PrepareAbort."""
    system = Transactions(without("marker_again", 2), ())
    (wanted,) = system.eventually.values()
    prospect = stays_possible(system, wanted)
    assert prospect.path[-1].action[0] == "deliver"
    assert prospect.stuck > 0


def test_the_second_version_needs_no_fence_but_an_epoch_in_each_end() -> None:
    """Rule (KAFKA-6119): a producer that was timed out goes on in its epoch and tears its transaction; where
    each end has a new epoch it cannot."""
    assert first_fall(without("fence", 1)) == Fall("TXN-ATOM", 19)
    assert first_fall(evolve(without("fence", 1), version=2)) == Fall()


# ---- the invariants have failed on purpose

RECORD = Record(0, 1, COMMITTED, 1, False)
HERE = Partition(0, 0, 0, False, (RECORD,), ())


def with_record(**changes: int) -> Partition:
    """A partition with this record."""
    return HERE._replace(records=(RECORD._replace(**changes),))


def test_each_invariant_can_fail() -> None:
    """Rule: an invariant that cannot fail says nothing."""
    told = Ghost(1, 1, 1 << 1, 0, 0)
    assert all_or_nothing(HERE, HERE) and not all_or_nothing(HERE, with_record(fate=ABORTED))
    assert as_told(HERE, told) and not as_told(HERE, told._replace(asked=0))
    assert not as_told(with_record(fate=ABORTED), told)
    assert one_decision(told) and not one_decision(told._replace(aborted=1 << 1))
    assert decided_as_marked(HERE, told) and not decided_as_marked(HERE, told._replace(committed=0))
    assert ends_its_own(HERE) and not ends_its_own(with_record(under=2))
    assert nothing_late(HERE) and not nothing_late(with_record(late=True))
    shows = Constants(drop={"last_stable_offset"})
    assert shows_committed(shows, False, HERE)
    assert not shows_committed(shows, False, with_record(fate=UNDECIDED))
    is_open = HERE._replace(is_open=True)
    ongoing = Journal(0, Transaction(ONGOING, 0, 1, 1, 0), ())
    assert never_hangs(0, is_open, ongoing)
    assert not never_hangs(1, is_open, ongoing)
    assert not never_hangs(0, is_open, Journal(0, Transaction(COMPLETE_COMMIT, 0, 0, 1, 0), ()))


# ---- how it is explored and told


def test_a_counterexample_tells_coordinators_producers_and_partitions() -> None:
    """Rule: a person can follow a counterexample."""
    system = Transactions(without("is_written", 1))
    text = render(system, explore(system))
    assert "NO-HANGING is violated in 12 steps" in text
    assert "coordinator epoch 0: PrepareAbort 1 epoch 1 [0]" in text
    assert "partition 0: epoch 0 transaction open [transaction 0 undecided]" in text


def test_bounds_without_meaning_are_refused() -> None:
    """Rule: they are the caller's mistake, in one sentence."""
    with pytest.raises(FencepostError, match=r"transaction.version 1 or 2"):
        Constants(version=3)
    with pytest.raises(FencepostError, match="at least one producer"):
        Constants(producers=0)


def test_the_first_state() -> None:
    """Rule: the first process has epoch 0; nothing is written."""
    (state,) = Transactions(Constants(producers=2, epochs=1)).initial()
    assert state.journal == Journal(0, Transaction(EMPTY, 0, 0, 0, 0), ())
    assert [producer.epoch for producer in state.producers] == [0, NONE]

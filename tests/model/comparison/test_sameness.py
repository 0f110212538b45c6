"""The explorer and TLC see the same replication protocol: as many states, as deep, the very same ones, and
the same variants fail."""

import time

import pytest
from attrs import evolve

from fencepost.cli import run as fencepost
from fencepost.model.comparison import sameness
from fencepost.model.comparison.sameness import by_tlc, compare
from fencepost.model.explore import explore
from fencepost.model.replication.replication_state import Constants
from fencepost.model.replication.replication_system import Replication
from fencepost.model.tla import files_of
from fencepost.model.tla.replication import constants_to_tla
from fencepost.model.tla.variants import RETENTION
from fencepost.traces.errors import FencepostError
from tests.model.comparison.whole_states import states_of_explorer, states_of_tlc
from tests.model.quick import QUICK

TINY = Constants(replicas=2, log_size=1, epochs=1, values=1, crashes=1)
SMALL = Constants(replicas=2, epochs=1)
DEEP = Constants(replicas=2, epochs=2, log_size=1, values=1)
DEEPER = Constants(replicas=2, epochs=2)


def test_fingerprints_lose_no_state():
    """Rule: exploration by fingerprints finds as many states as keeping them whole."""
    assert explore(Replication(DEEPER, ())).distinct == len(states_of_explorer(DEEPER))


@pytest.mark.java
@pytest.mark.parametrize(
    ("constants", "distinct"),
    [
        (TINY, 1_817),
        (Constants(replicas=2, log_size=1, values=1, lists=2, drop={"offset_not_available"}), 2_112),
        (evolve(TINY, crashes=2, drop={"truncate_by_epoch", "keep_checkpointed"}), 5_935),
        (Constants(replicas=2, log_size=1, old_format=1, drop={"undefined_has_no_end"}), 345),
        (evolve(TINY, losses=1, drop={"broker_epoch_fencing", "truncate_by_epoch", "fetch_fencing"}), 4_933),
    ],
    ids=[
        "nothing dropped",
        "answers unguarded",
        "truncation to a high watermark that was forgotten",
        "no epochs, and an end for the undefined one",
        "restarts and fetches unfenced, a record lost, truncation to the high watermark",
    ],
)
def test_the_very_same_states(constants, distinct):
    """Rule: TLC's dump of Replication.tla and the Python model's states are one set."""
    assert (states_of_tlc(constants, QUICK), distinct) == (
        states := states_of_explorer(constants),
        len(states),
    )


@pytest.mark.java
@pytest.mark.parametrize(
    ("constants", "result", "steps", "distinct", "depth"),
    [
        (
            evolve(SMALL, drop={"isr_expand_after_epoch_start", "assign_epoch_on_election"}),
            "holds",
            0,
            1_252,
            13,
        ),
        (evolve(DEEP, drop={"truncate_by_epoch"}), "violated", 9, 2_857, 16),
    ],
    ids=["KAFKA-7128 and KAFKA-7415", "KIP-101"],
)
def test_counts_depth_and_verdict(constants, result, steps, distinct, depth):
    """Rule: both find as many distinct states and as deep a graph, and a shortest counterexample of the same
    length exactly where a protection is missed."""
    comparison = compare(constants, time.monotonic, QUICK)
    assert comparison.same
    assert comparison.explorer.compared == (result, steps, distinct, depth)


@pytest.mark.java
@pytest.mark.parametrize(
    "constants",
    [evolve(TINY, drop={"broker_epoch_fencing"}), evolve(DEEPER, drop={"truncate_below_own_epoch"})],
    ids=["KIP-380", "KIP-279"],
)
def test_a_missed_protection_is_missed_by_both(constants):
    """Rule: a shortest counterexample is as long on both sides. (Where two invariants fall at the same depth,
    either may be named.)"""
    comparison = compare(constants, time.monotonic, QUICK, count=False)
    assert comparison.same
    assert (comparison.tlc.result, comparison.tlc.steps) == ("violated", 10)


@pytest.mark.java
def test_a_twin_that_differs_is_caught(monkeypatch):
    """Rule: the comparison has failed on purpose: TLC without a protection that the explorer has."""
    monkeypatch.setattr(
        sameness,
        "constants_to_tla",
        lambda constants: constants_to_tla(evolve(constants, drop={"broker_epoch_fencing"})),
    )
    assert not compare(TINY, time.monotonic, QUICK, count=False).same


def test_another_specification_is_refused():
    """Rule: only shipped specifications have files."""
    with pytest.raises(FencepostError, match="a shipped specification"):
        files_of("Nothing")


def test_the_command_line(capsys):
    """Rule: exploring a dropped protection ends with 1 and the way to the violation; a bound met first is
    undecided; a bug's id names its protection."""
    small = ["--constant", "replicas=2", "--constant", "epochs=2"]
    assert fencepost(["model", "explore", "replication", *small, "--drop", "KIP-279"]) == 1
    out = capsys.readouterr().out
    assert "LOG-MATCH is violated in 10 steps" in out
    assert "10. fetch(1)" in out
    assert fencepost(["model", "explore", "replication", *small, "--states", "100"]) == 3
    assert fencepost(["model", "explore", "replication", "--constant", "nothing=1"]) == 2
    assert fencepost(["model", "explore", "replication", "--drop", "nothing"]) == 2
    assert fencepost(["model", "list", "--json"]) == 0
    assert '"truncate_below_own_epoch"' in capsys.readouterr().out


# The explorer and TLC see the same answers to ListOffsets in the replication model.


UNGUARDED = Constants(replicas=2, log_size=1, values=1, lists=2, drop={"offset_not_available"})


@pytest.mark.java
def test_an_unguarded_answer_is_missed_by_both():
    """Rule (KIP-207): TLC's shortest counterexample is as long as the explorer's
    (tests/model/replication/test_replication_lists.py), and breaks HW-MONO."""
    seen = by_tlc(UNGUARDED, QUICK, count=False)
    assert (seen.result, seen.invariant, seen.steps) == ("violated", "HW-MONO", 8)


# The explorer and TLC see the same retention in the replication model.


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

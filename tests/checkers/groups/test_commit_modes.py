"""In which mode a commit was made: what it excuses, and beyond what it may not be."""

import pytest
from group_histories import append, commit, fetch, got, told, trace

from fencepost.checkers.groups import group_facts, judge_trace
from fencepost.traces.operations import Operation

FIVE = tuple(append(50 + offset, offset) for offset in range(5))


BEFORE = commit(0, "m9", 0, 2, at=(0, 1))
"""Whose offset is read back."""


def found(*operations: Operation, **more: object) -> set[str]:
    """The anomalies of a history."""
    return {finding.anomaly for finding in judge_trace(trace(*FIVE, *operations, **more)).findings}


@pytest.mark.parametrize(
    ("mode", "excused"), [(None, True), ("before", True), ("auto", False), ("sync", False)]
)
def test_only_a_commit_before_processing_excuses_a_gap(mode: str | None, excused: bool) -> None:
    """Rule (OFFSET-SAFE): a record that a commit has jumped, and nobody got, is a fact where commits come
    before processing, or may; else a finding."""
    jumped = (
        got(1, "m1", 1, 0),
        commit(2, "m1", 1, 3, argument=mode),
        *told("3:fetch 3 process=2; got m2 2 3 4"),
    )
    assert ("processing_gap" in found(*jumped)) is not excused
    gaps = [fact for fact in group_facts(trace(*FIVE, *jumped)) if fact.kind == "gap"]
    assert [(fact.cause, fact.count) for fact in gaps] == (
        [("commit_before_processing", 2)] if excused else []
    )


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_a_commit_beyond_what_was_polled_convicts_at_once(mode: str) -> None:
    """Rule (OFFSET-SAFE): whatever becomes of it; by what its own process and session got in that generation,
    or began from."""
    begins = BEFORE, fetch(1, 2, process=1)
    polled = got(2, "m1", 1, 2, 3)
    assert found(*begins, polled, commit(3, "m1", 1, 4, argument=mode)) == set()
    assert found(*begins, polled, commit(3, "m1", 1, 5, argument=mode)) == {"commit_beyond_position"}
    assert found(*begins, commit(3, "m1", 1, 2, argument=mode)) == set()
    assert found(*begins, polled, commit(3, "m1", 2, 4, argument=mode)) == {"commit_beyond_position"}
    assert found(*begins, got(2, "m2", 1, 2, 3), commit(3, "m1", 1, 4, argument=mode)) == {
        "commit_beyond_position"
    }


def test_what_is_not_asked() -> None:
    """Rule: commits before processing and those of unknown mode may be ahead; a member of which nobody knows
    where it began is not judged, nor one whose position retention may have moved."""
    begins, polled = (BEFORE, fetch(1, 2, process=1)), got(2, "m1", 1, 2, 3)
    for mode in ("before", None, "expired"):
        assert found(*begins, polled, commit(3, "m1", 1, 5, argument=mode)) == set()
    assert found(commit(3, "m1", 1, 5, argument="sync")) == set()
    assert found(*begins, polled, commit(3, "m1", 1, 5, argument="sync"), retention=True) == set()

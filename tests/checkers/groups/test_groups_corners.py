"""Corners of the groups check, each found by a fault that nothing else noticed: what convicts there, and what
does not."""

import pytest
from attrs import evolve
from group_histories import append, commit, fetch, got, join, told, trace

from fencepost.checkers.groups import group_facts, groups_judge, judge_trace
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Position
from fencepost.traces.trace import Trace
from tests.checkers import lab

FIVE = tuple(append(50 + n, n) for n in range(8))
JUMPED = (got(1, "m1", 1, 0, at=(10, 15)), got(2, "m1", 1, 2, at=(16, 22)))
"""The record at 1 was passed by the poll that ended at 22."""

# what it is about, (anomaly, offset, operations) found, the history
CASES: list[tuple[str, list[tuple[str, int, tuple[int, ...]]], Trace]] = [
    (
        "a member begins when it joins",
        [],
        trace(*told("join m1 1 0; got m1 1 0 1; join m2 2 0; commit m2 2 2 at=36-38; got m2 2 0")),
    ),
    (
        "what is committed is what comes next",
        [],
        trace(*told("join m1 1 0; got m1 1 0; commit m1 1 0; join m2 2 0; got m2 2 0")),
    ),
    (
        "the first of two that came again",
        [("reprocessed_after_commit", 0, (6, 4, 2))],
        trace(
            *told("join m1 1 0; got m1 1 0; got m1 1 1; commit m1 1 2; join m2 2 0; got m2 2 0; got m2 2 1")
        ),
    ),
    (
        "who read back 0 begins there",
        [("processing_gap", 0, (3, 50))],
        trace(*FIVE, commit(1, "m1", 1, 0), fetch(2, 0), got(3, "m1", 1, 1)),
    ),
    (
        "loss ends where it ends",
        [("processing_gap", 3, (2, 53))],
        trace(*FIVE, got(1, "m1", 1, 0, 1, 2), got(2, "m1", 1, 4), loss=(0, 1)),
    ),
    (
        "a commit beyond, too late",
        [("processing_gap", 1, (2, 51))],
        trace(*FIVE, *JUMPED, commit(3, "m1", 1, 3)),
    ),
    ("the first of two gaps", [("processing_gap", 1, (2, 51))], trace(*FIVE, *JUMPED, got(3, "m1", 1, 4))),
    (
        "the earliest of the commits beyond counts",
        [],
        trace(*FIVE, *JUMPED, commit(3, "m1", 1, 5, at=(20, 70)), commit(4, "m1", 1, 3, at=(50, 70))),
    ),
    (
        "the earliest of three, whatever their offsets",
        [],
        trace(
            *FIVE, *JUMPED, *told("3:commit m1 1 7 at=30-70; commit m1 1 5 at=20-70; commit m1 1 3 at=25-70")
        ),
    ),
    (
        "the earliest of three, the last one late",
        [],
        trace(
            *FIVE, *JUMPED, *told("3:commit m1 1 7 at=30-70; commit m1 1 5 at=20-70; commit m1 1 3 at=50-70")
        ),
    ),
    (
        "the highest of what is acknowledged is what must not be undone",
        [("commit_sent_again", 4, (3, 2))],
        trace(commit(1, "m1", 1, 3), commit(2, "m1", 1, 5), commit(3, "m1", 1, 4, attempts=2)),
    ),
    (
        "sent again after a higher one of which nothing was heard",
        [],
        trace(*told("commit m1 1 3; commit m1 1 5 outcome=unknown; commit m1 1 4 attempts=2")),
    ),
    (
        "sent again before the higher one was acknowledged",
        [],
        trace(*told("commit m1 1 3; commit m1 1 5 at=20-40; commit m1 1 4 at=30-35 attempts=2")),
    ),
    (
        "what commits no offset takes nothing back",
        [],
        trace(commit(1, "m1", 1, 5), commit(2, "m1", 1, None, attempts=2)),
    ),
    (
        "generation 0 sends nothing again either",
        [("commit_sent_again", 4, (2, 1))],
        trace(commit(1, "m1", 0, 5), commit(2, "m1", 0, 4, attempts=2)),
    ),
    (
        "of two that committed the same the first is named",
        [("commit_sent_again", 4, (3, 1))],
        trace(commit(1, "m1", 1, 5), commit(2, "m1", 1, 5), commit(3, "m1", 1, 4, attempts=2)),
    ),
    (
        "a join that tells no epoch is not of the past",
        [("generation_regressed", -1, (2, 1))],
        trace(join(1, "m1", 2, 0, leader_epoch=2), join(2, "m2", 1, 0)),
    ),
    (
        "fetches that tell no epoch are asked all the same",
        [("committed_offset_not_linearizable", -1, (2, 3, 4))],
        trace(
            *told(
                "commit m1 1 1 at=10-60 leader_epoch=1; commit m1 1 2 at=10-60 leader_epoch=1; "
                "fetch 1 at=61-62; fetch 2 at=63-64; fetch 1 at=65-66"
            )
        ),
    ),
    ("generation 0 is one", [("unassigned_poll", 0, (2, 1))], trace(join(1, "m1", 0, 1), got(2, "m1", 0, 0))),
    (
        "loss from the committed offset on leaves the position where it is",
        [("reprocessed_after_commit", 1, (4, 2, 1))],
        trace(*told("got m1 1 0 1; commit m1 1 2; join m2 2 0; got m2 2 1"), loss=(2, 3)),
    ),
    (
        "and one offset below it does not",
        [],
        trace(*told("got m1 1 0 1; commit m1 1 2; join m2 2 0; got m2 2 1"), loss=(1, 3)),
    ),
    (
        "a partition alone names none either",
        [("committed_offset_lost", 5, (2, 1))],
        trace(
            evolve(commit(1, "m1", 1, None), topic=None, positions=(Position(**lab.T0, offset=5),)),
            fetch(2, None),
        ),
    ),
    (
        "a topic alone names no partition, positions do",
        [("committed_offset_lost", 5, (2, 1))],
        trace(
            evolve(commit(1, "m1", 1, None), partition=None, positions=(Position(**lab.T0, offset=5),)),
            fetch(2, None),
        ),
    ),
    ("sent again, and higher", [], trace(*told("commit m1 1 3; commit m1 1 5; commit m1 1 6 attempts=2"))),
    (
        "what coordinators of one epoch answer is held against each other",
        [("committed_offset_not_linearizable", -1, (2, 3, 4))],
        trace(
            commit(1, "m1", 1, 1, at=(10, 60), leader_epoch=1),
            commit(2, "m1", 1, 2, at=(10, 60), leader_epoch=1),
            fetch(3, 1, at=(61, 62), leader_epoch=1),
            fetch(4, 2, at=(63, 64), leader_epoch=1),
            fetch(5, 1, at=(65, 66), leader_epoch=1),
        ),
    ),
    (
        "a whole group's finding has no offset",
        [("generation_regressed", -1, (2, 1))],
        trace(join(1, "m1", 2, 0), join(2, "m1", 1, 0)),
    ),
]


@pytest.mark.parametrize(("_", "found", "history"), CASES)
def test_corners(_: str, found: list[tuple[str, int, tuple[int, ...]]], history: Trace) -> None:
    """Rule: exactly this is found, at this offset, by these operations."""
    assert [(f.anomaly, f.offset, f.operations) for f in judge_trace(history).findings] == found


FACTS: list[tuple[str, tuple[str, str, tuple[int, ...]], Trace]] = [
    (
        "the second incarnation of three was over when the third began",
        ("reprocessed", "crash", (3, 2)),
        trace(*told("got m1 - 0 process=1; got m1 - 1 process=1 session=1; got m1 - 1 process=1 session=2")),
    ),
    (
        "of commits that began together the first by number is named",
        ("gap", "commit_before_processing", (3, 51)),
        trace(
            *FIVE,
            *JUMPED,
            *told("5:commit m1 1 7 at=20-70; 3:commit m1 1 5 at=20-70; commit m1 1 3 at=20-70"),
        ),
    ),
]


@pytest.mark.parametrize(("_", "fact", "history"), FACTS)
def test_facts(_: str, fact: tuple[str, str, tuple[int, ...]], history: Trace) -> None:
    """Rule: exactly this is told, by these operations."""
    assert [(f.kind, f.cause, f.operations) for f in group_facts(history)] == [fact]


@pytest.mark.parametrize(("uncertainty", "convicts"), [(0, True), (4, False)])
def test_a_lower_commit_may_have_come_later_by_the_clocks(uncertainty: int, convicts: bool) -> None:
    """Rule: what another clock stamped within the uncertainty may have replaced the newest commit."""
    operations = [
        *told(
            "join m1 1 0; got m1 1 0; commit m1 1 0 at=30-38; commit m1 1 1 at=40-42; "
            "6:join m2 2 0; got m2 2 0"
        )
    ]
    operations[2] = evolve(operations[2], clock_id=1)
    verdict = judge_trace(trace(*operations, clock_uncertainty_ns=uncertainty))
    assert [f.anomaly for f in verdict.findings] == ["reprocessed_after_commit"] * convicts
    assert convicts or [
        fact.kind for fact in group_facts(trace(*operations, clock_uncertainty_ns=uncertainty))
    ] == ["reprocessed"]


def test_what_is_not_decided_is_unknown_with_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a partition whose search met its limit leaves the verdict open, and is named; a finding elsewhere
    stands."""
    monkeypatch.setattr(groups_judge, "exact", lambda history, group, partition: (None, "too long"))
    verdict = judge_trace(trace(commit(1, "m1", 1, 5), fetch(2, 5)))
    assert (verdict.decision, verdict.reason) == (Decision.UNKNOWN, "t-0 of group g: too long")
    assert judge_trace(trace(commit(1, "m1", 1, 5), fetch(2, 4))).decision is Decision.ILLEGAL

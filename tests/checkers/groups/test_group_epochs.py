"""Coordinators of the past, commits that are sent again, offsets that expired: what recorded clusters add to
the histories of groups."""

from attrs import evolve
from group_histories import commit, fetch, join, told

from fencepost.checkers.groups import judge_trace
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Claims, LossRange
from tests.checkers import lab


def anomalies(*operations: Operation, **more: object) -> set[str]:
    """What the judge finds."""
    trace = lab.trace(operations, trace_id=1, **more)
    return {finding.anomaly for finding in judge_trace(trace).findings}


def test_a_coordinator_of_the_past_is_judged_by_its_own_epoch() -> None:
    """Rule: who has not heard of its successor may answer what was true before; from the same epoch on it
    must not."""
    history = [*told("join m1 1 0; commit m1 1 5 leader_epoch=1; commit m1 1 9 leader_epoch=2")]
    assert anomalies(*history, fetch(4, 5, leader_epoch=1)) == set()
    assert anomalies(*history, fetch(4, 5, leader_epoch=2)) == {"committed_offset_lost"}
    assert anomalies(*history, fetch(4, 5)) == {"committed_offset_lost"}


def test_a_join_at_a_coordinator_of_the_past_is_no_regression() -> None:
    """Rule: a generation goes back only within what its coordinator must know."""
    later = join(1, "m1", 2, 0, leader_epoch=2)
    assert anomalies(later, join(2, "m2", 1, 0, leader_epoch=1)) == set()
    assert anomalies(later, join(2, "m2", 1, 0, leader_epoch=2)) == {"generation_regressed"}


def test_nor_does_it_take_part_in_the_order_of_commits() -> None:
    """Rule: what is committed and read back is explained without the joins of a coordinator of the past."""
    past = join(2, "m2", 1, 0, leader_epoch=1)
    committed = [commit(3, "m1", 2, 5, leader_epoch=2), fetch(4, 5, leader_epoch=2)]
    for epoch, expected in ((2, set()), (None, {"generation_regressed"})):
        assert anomalies(join(1, "m1", 2, 0, leader_epoch=epoch), past, *committed) == expected
    together = evolve(past, invoke_time=15)  # it may have been answered before the successor began
    assert anomalies(join(1, "m1", 2, 0, leader_epoch=2), together, *committed) == set()


def test_a_commit_that_is_sent_again_is_found() -> None:
    """Rule (P5): a retry of an older commit after a later one was acknowledged; the same offset again, or a
    seek back, is none."""
    history = [join(1, "m1", 1, 0), commit(2, "m1", 1, 9)]
    assert anomalies(*history, commit(3, "m1", 1, 5, attempts=2)) == {"commit_sent_again"}
    assert anomalies(*history, commit(3, "m1", 1, 5)) == set()
    assert anomalies(*history, commit(3, "m1", 1, 9, attempts=2)) == set()
    assert anomalies(*history, commit(3, "m1", 1, 5, attempts=2, process=7)) == set(), "another process"


def test_an_offset_that_expired_may_be_gone() -> None:
    """Rule: a row of the coordinator that says so excuses a fetch that reads nothing, and nothing else."""
    kept = [join(1, "m1", 1, 0), commit(2, "m1", 1, 9)]
    gone = commit(3, "", None, None, outcome=Outcome.UNKNOWN, process=99)
    assert anomalies(*kept, fetch(4, None)) == {"committed_offset_lost"}
    assert anomalies(*kept, gone, fetch(4, None)) == set()
    assert anomalies(*kept, gone, fetch(4, 3)) >= {"committed_offset_unexplained"}


def test_nothing_is_asked_where_the_offsets_topic_may_have_lost_records() -> None:
    """Rule: after a loss that the claims allow, groups know what was left; of other topics a loss says
    nothing."""
    history = [join(1, "m1", 1, 0), commit(2, "m1", 1, 9), fetch(3, None)]
    for topic, expected in (("__consumer_offsets", set()), ("t", {"committed_offset_lost"})):
        loss = LossRange(topic=topic, partition=0, start=0, end=9, reason="a power loss")
        assert anomalies(*history, claims=Claims(loss=(loss,))) == expected


def test_who_answers_as_its_successor_begins_is_not_of_the_past() -> None:
    """Rule: an answer of a later epoch at the very moment at which a fetch began may have come after it."""
    both = [commit(n, "m1", 1, n, at=(10, end), leader_epoch=1) for n, end in ((1, 60), (2, 66))]
    seen = [
        fetch(n, offset, at=(57 + 2 * n + 2, 57 + 2 * n + 3), leader_epoch=1)
        for n, offset in ((3, 1), (4, 2), (5, 1))
    ]
    for begins, expected in (
        (seen[-1].invoke_time, {"committed_offset_not_linearizable"}),
        (seen[-1].invoke_time - 1, set()),
    ):
        successor = join(6, "m1", 1, 0, at=(50, begins), leader_epoch=2)
        assert anomalies(*both, *seen, successor) == expected

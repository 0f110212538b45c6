"""Commits that their coordinator did not wait for, and that the next one reads from the log
(offsets.commit.timeout.ms)."""

from itertools import combinations, permutations, product
from random import Random

import pytest
from group_histories import OK, UNKNOWN, commit, fetch, join, told, trace

from fencepost.checkers.groups import judge_trace
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace
from tests.selfcheck.amounts import amount

NOT_LINEARIZABLE = "committed_offset_not_linearizable"
TIMED_OUT = (
    join(1, "m1", 1, 0, leader_epoch=0),
    commit(2, "m1", 1, 5, outcome=UNKNOWN, at=(20, None)),
    *told("3:join m2 2 0 leader_epoch=0; fetch - leader_epoch=0"),
)
"""Seed 3433: the commit stands in the log before generation 2, whose member is told that nothing is
committed."""
LATER = commit(5, "m2", 2, 7, leader_epoch=0)

CASES: list[tuple[str, tuple[Operation, ...], list[str]]] = [
    ("the next coordinator loads it", (*TIMED_OUT, fetch(6, 5, leader_epoch=1)), []),
    ("and keeps it", (*TIMED_OUT, fetch(6, 5, leader_epoch=1), fetch(7, 5, leader_epoch=2)), []),
    ("the same coordinator never shows it", (*TIMED_OUT, fetch(6, 5, leader_epoch=0)), [NOT_LINEARIZABLE]),
    (
        "what was loaded stays",
        (*TIMED_OUT, fetch(6, 5, leader_epoch=1), fetch(7, None, leader_epoch=1)),
        [NOT_LINEARIZABLE],
    ),
    (
        "and is loaded by the one after it",
        (*TIMED_OUT, fetch(6, 5, leader_epoch=1), fetch(7, None, leader_epoch=2)),
        [NOT_LINEARIZABLE],
    ),
    ("epochs that joins tell alone", (*TIMED_OUT[:3], fetch(4, None), fetch(6, 5, leader_epoch=1)), []),
    (
        "an epoch that a commit tells alone",
        (
            commit(1, "m1", 1, 3, leader_epoch=0),
            TIMED_OUT[1],
            *told("3:join m2 2 0; fetch 3; 6:fetch 5 leader_epoch=1"),
        ),
        [],
    ),
    (
        "loaded before it was written, for a lower generation was joined there",
        (
            *told("join m2 2 0 at=10-15 leader_epoch=0; join m1 1 0 at=12-40 leader_epoch=1"),
            commit(3, "m2", 2, 5, outcome=UNKNOWN, at=(16, None)),
            join(4, "m3", 3, 0, at=(17, 18), leader_epoch=0),
            fetch(5, None, at=(19, 20), leader_epoch=0),
            fetch(6, 5, at=(41, 42), leader_epoch=1),
        ),
        [NOT_LINEARIZABLE],
    ),
    (
        "then a commit without a generation, which nothing fences",
        (*TIMED_OUT, *told("6:fetch 5 leader_epoch=1; commit - - 8 leader_epoch=1; fetch 8 leader_epoch=1")),
        [],
    ),
    (
        "then one whose answer is lost, seen at once",
        (
            *TIMED_OUT,
            fetch(6, 5, leader_epoch=1),
            commit(7, "m2", 2, 9, outcome=UNKNOWN, at=(70, None)),
            fetch(8, 9, leader_epoch=1),
        ),
        [],
    ),
    ("a later commit stands behind it", (*TIMED_OUT, LATER, fetch(6, 7, leader_epoch=1)), []),
    ("which it does not undo", (*TIMED_OUT, LATER, fetch(6, 5, leader_epoch=1)), ["committed_offset_lost"]),
    (
        "nor if it was concurrent in a higher generation",
        (
            *TIMED_OUT,
            commit(5, "m2", 2, 7, at=(50, 70), leader_epoch=0),
            fetch(6, 7, leader_epoch=0),
            fetch(8, 5, leader_epoch=1),
        ),
        ["committed_offset_lost"],
    ),
    (
        "shown by a later epoch, then not by the same",
        (*TIMED_OUT, fetch(6, None, leader_epoch=1), fetch(7, 5, leader_epoch=1)),
        [NOT_LINEARIZABLE],
    ),
    (
        "a fenced one is not written",
        (
            join(1, "m2", 2, 0, leader_epoch=0),
            commit(2, "m1", 1, 5, outcome=UNKNOWN, at=(20, None)),
            *told("3:fetch - leader_epoch=0; fetch 5 leader_epoch=1"),
        ),
        [NOT_LINEARIZABLE],
    ),
    (
        "where no epochs are told, it is one register",
        (*(join(n, f"m{n}", n, 0) for n in (1,)), TIMED_OUT[1], *told("3:join m2 2 0; fetch -; 6:fetch 5")),
        [NOT_LINEARIZABLE],
    ),
]


@pytest.mark.parametrize(("history", "found"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_commit_that_timed_out_may_be_loaded(history: tuple[Operation, ...], found: list[str]) -> None:
    """Rule: a commit of unknown outcome is seen at once or from a later coordinator epoch on, behind no later
    commit, and then stays."""
    assert [finding.anomaly for finding in judge_trace(trace(*history)).findings] == found


def explained(operations: tuple[Operation, ...]) -> bool:
    """By trying everything: each unknown commit left out, seen at once or only when loaded, in every order in
    real time, each load early or late."""
    unknown = [each for each in operations if each.outcome is UNKNOWN]
    for count in range(len(unknown) + 1):
        for left_out in combinations(unknown, count):
            chosen = [each for each in operations if each not in left_out]
            for order in permutations(chosen):
                if in_time(order) and any(
                    right(order, dict(zip((each.op_id for each in order), ways, strict=True)))
                    for ways in product(*(ways_of(each) for each in order))
                ):
                    return True
    return False


def ways_of(operation: Operation) -> tuple[bool, ...]:
    """Whether an unknown commit stays unseen; of anything else, whether its coordinator has read all that the
    log held."""
    return (False,) if operation.function is Function.COMMIT and operation.outcome is OK else (False, True)


def in_time(order: tuple[Operation, ...]) -> bool:
    ends = [float("inf") if each.completion_time is None else each.completion_time for each in order]
    return all(ends[b] >= order[a].invoke_time for a in range(len(order)) for b in range(a + 1, len(order)))


def right(order: tuple[Operation, ...], way: dict[int, bool]) -> bool:
    """A coordinator's cache and the last record of its log, step by step."""
    cache, in_log, highest, epoch = None, None, -1, -1
    for each in order:
        told, generation = (
            -1 if number is None else number for number in (each.leader_epoch, each.generation)
        )
        if -1 < generation < highest:
            return False
        highest = max(highest, generation)
        if each.function is Function.COMMIT:
            in_log = each.offset
            if not way[each.op_id]:
                cache = each.offset
        elif told > epoch and way[each.op_id]:
            cache = in_log
        if each.function is Function.FETCH_COMMITTED and cache != each.offset:
            return False
        epoch = max(epoch, told)
    return True


def random_history(seed: int) -> Trace:
    """A commit whose answer is lost, often a generation after it, then a few fetches and commits of
    coordinators whose epochs grow; most are impossible."""
    random = Random(seed)
    operations = [join(1, "m1", 1, 0, leader_epoch=0), commit(2, "m1", 1, 1, outcome=UNKNOWN, at=(20, None))]
    if random.random() < 0.7:
        operations.append(join(3, "m2", 2, 0, leader_epoch=0))
    epoch = 0
    for op_id in range(4, random.randint(6, 8)):
        epoch += random.random() < 0.4
        at = (10 * op_id, 10 * op_id + random.choice((5, 5, 15)))
        if random.random() < 0.25:
            lost = random.random() < 0.6
            told = {"leader_epoch": None if lost else epoch, "outcome": UNKNOWN if lost else OK}
            operations.append(commit(op_id, "m2", 2, 2, at=(at[0], None if lost else at[1]), **told))
        else:
            operations.append(fetch(op_id, random.choice((None, None, 1, 1, 2)), at=at, leader_epoch=epoch))
    return trace(*operations, trace_id=seed)


OF_OFFSETS = {
    *("stale_commit_accepted", "generation_regressed", "committed_offset_lost"),
    *("committed_offset_unexplained", NOT_LINEARIZABLE),
}


def test_reloaded_offsets_are_decided_exactly() -> None:
    """Rule: what the judge convicts is what no order explains, whichever commits were seen at once or loaded
    later."""
    wrong, found = [], 0
    for seed in range(amount(100, 250)):
        history = random_history(seed)
        illegal = bool({each.anomaly for each in judge_trace(history).findings} & OF_OFFSETS)
        found += illegal
        if illegal == explained(history.operations):
            wrong.append(seed)
    assert wrong == []
    assert 40 < found < 240

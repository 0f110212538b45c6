"""Corners of the log judge that broad comparisons do not reach often."""

import pytest
from log_histories import append, judge_trace, read, trace

from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function
from tests.checkers import lab


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("unique", [False, True])
def test_a_log_to_which_nobody_appended(unique: bool, duplicates: bool) -> None:
    """Rule: records of a log without any append are phantoms, a finding and not a crash."""
    verdict = judge_trace(trace(read(1, 0, [(0, 100), (1, 101)], 0, 1), unique=unique, duplicates=duplicates))
    assert verdict.decision is Decision.ILLEGAL
    assert verdict.anomaly == "phantom_record"


def test_an_append_of_nothing_says_nothing() -> None:
    """Rule: an append without records takes no place in the log, whatever offset it was told."""
    for told in (0, 5):
        history = trace(append(1, [], 0, 1, told), append(2, [100], 2, 3, 0), read(3, 0, [(0, 100)], 4, 5, 1))
        assert judge_trace(history).decision is Decision.OK


@pytest.mark.parametrize(("start", "found"), [(1, ["skipped_offset"]), (2, [])])
def test_who_asks_for_the_earliest_offset_is_told_the_log_start(start: int, found: list[str]) -> None:
    """Rule: below the log start that list_offsets answered retention may have removed records, at it not."""
    listed = lab.operation(
        4, Function.LIST_OFFSETS, 6, 7, **lab.T0, offset=start, argument="earliest", strong=True
    )
    sent = [append(n + 1, [100 * n], 2 * n, 2 * n + 1, n) for n in range(3)]
    history = trace(*sent, listed, read(5, 1, [(2, 200)], 8, 9), retention=True)
    assert [finding.anomaly for finding in judge_trace(history).findings] == found


def test_what_one_process_saw_is_compared_whoever_else_read() -> None:
    """Rule: a process's second read is held against its first, also where other processes have read."""
    reads = [
        read(op_id, position, [], 10 * op_id, 10 * op_id + 5, process=process, leader_epoch=0)
        for op_id, process, position in ((5, 5, 5), (6, 5, 4), (7, 7, 4), (8, 7, 4))
    ]
    history = trace(*reads, check="session")
    assert [(f.anomaly, f.operations) for f in judge_trace(history).findings] == [
        ("position_regressed", (6, 5))
    ]


@pytest.mark.parametrize(("clock", "uncertainty_ns"), [(0, -1), (1, 40)])
def test_a_read_before_its_append_says_what_would_clear_it(clock: int, uncertainty_ns: int) -> None:
    """Rule: half of the gap between two clocks clears it; on one clock nothing does."""
    made = trace(append(1, [10], 100, 101, 0), read(2, 0, [(0, 10)], 10, 20, clock_id=clock))
    found = [one for one in judge_trace(made).findings if one.anomaly == "read_before_sent"]
    assert [one.uncertainty_ns for one in found] == [uncertainty_ns]

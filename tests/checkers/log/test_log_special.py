"""Retention, compaction, last stable offsets: for each rule a tiny history that breaks it, with its
certificate, and the nearest legal one."""

from typing import Any

import pytest
from attrs import evolve
from log_exhaustive import legal
from log_histories import FAIL, OK, UNKNOWN, append, judge_trace, judge_traces, read, trace

from fencepost.checkers.log import content, skips
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function, Operation, Outcome, Position
from fencepost.traces.trace import Trace
from tests.checkers import lab

THREE = (append(1, [10], 0, 1, 0), append(2, [20], 0, 1, 1), append(3, [30], 0, 1, 2))
COMMITTED: dict[str, Any] = {"isolation": "read_committed"}
UNCOMMITTED: dict[str, Any] = {"isolation": "read_uncommitted"}


def kept(*operations: Operation, **claims: Any) -> Trace:
    """A trace whose log has retention."""
    return trace(*operations, retention=True, **claims)


def cleaned(*operations: Operation, **claims: Any) -> Trace:
    """A trace whose topic t is compacted."""
    return trace(*operations, compacted=("t",), **claims)


def keyed(
    op_id: int, value: int, offset: int | None, key: str | None = "a", at: int = 0, **more: Any
) -> Operation:
    """An append of one record under a key, invoked at `at`."""
    return append(op_id, [value], at, None if offset is None else at + 1, offset, key=key, **more)


def txn(op_id: int, process: int, invoke: int, complete: int | None, outcome: Outcome = OK) -> Operation:
    """A transaction of a process."""
    return lab.operation(op_id, Function.TXN, invoke, complete, process=process, outcome=outcome)


def from_two(op_id: int, invoke: int = 4, **more: Any) -> Operation:
    """A read that began at 0 and returned offset 2 only."""
    return read(op_id, 0, [(2, 30)], invoke, invoke + 1, **more)


CASES: list[tuple[str, tuple[int, ...], Trace, Trace]] = [
    lab.case(  # below a claimed log start records may be gone; above it they may not
        "skipped_offset 5 2",
        kept(*THREE, read(4, 0, [], 2, 3, strong=False, log_start_offset=1), from_two(5)),
        kept(*THREE, read(4, 0, [], 2, 3, strong=False, log_start_offset=2), from_two(5)),
    ),
    lab.case(  # without the claim nothing changes
        "skipped_offset 5 1",
        trace(*THREE, read(4, 0, [], 2, 3, strong=False, log_start_offset=2), from_two(5)),
        kept(*THREE, read(4, 0, [], 2, 3, strong=False, log_start_offset=2), from_two(5)),
    ),
    lab.case(  # a trusted reply's own log start is all that explains its gap
        "skipped_offset 5 2",
        lambda either: kept(
            *THREE,
            read(4, 0, [], 6, 7, strong=False, log_start_offset=2),
            from_two(5, strong=True, log_start_offset=either(1, 2)),
        ),
    ),
    lab.case(  # between two records of one read retention explains nothing
        "skipped_offset 5 2",
        lambda either: kept(
            *THREE,
            read(4, 0, [], 2, 3, strong=False, log_start_offset=3),
            read(5, 0, [(0, 10), either((2, 30), (1, 20))], 4, 5),
        ),
    ),
    lab.case(
        "skipped_offset 5",
        lambda either: kept(
            THREE[1],
            append(6, [11], 0, None),
            read(4, 0, [], 2, 3, strong=False, log_start_offset=either(0, 1)),
            read(5, 0, [(1, 20)], 4, 5),
            dense=True,
        ),
    ),
    lab.case(
        "log_start_regressed 5 4",
        lambda either: kept(
            *THREE,
            read(4, 2, [], 2, either(3, 4), strong=True, log_start_offset=2),
            read(5, 2, [], 4, 5, strong=True, log_start_offset=1),
        ),
    ),
    lab.case(  # a follower that took over lags: weak claims promise nothing
        "log_start_regressed 5 4",
        kept(
            *THREE,
            read(4, 2, [], 2, 3, log_start_offset=2),
            read(5, 2, [], 4, 5, log_start_offset=1),
            check="strong",
        ),
        kept(*THREE, read(4, 2, [], 2, 3, log_start_offset=2), read(5, 2, [], 4, 5, log_start_offset=1)),
    ),
    lab.case(
        "log_start_above_end 4",
        lambda either: kept(*THREE, read(4, 3, [], 2, 3, either(2, 3), strong=False, log_start_offset=3)),
    ),
    lab.case(
        "read_below_log_start 5 4",
        kept(*THREE, read(4, 2, [], 2, 3, log_start_offset=2), read(5, 1, [(1, 20)], 4, 5), check="strong"),
        kept(*THREE, read(4, 2, [], 2, 3, log_start_offset=2), read(5, 1, [(1, 20)], 4, 5)),
    ),
    lab.case(
        "read_outside_bounds 5",
        kept(*THREE, read(5, 0, [(0, 10)], 4, 5, strong=True, log_start_offset=1)),
        kept(*THREE, read(5, 0, [(1, 20)], 4, 5, strong=True, log_start_offset=1)),
    ),
    lab.case(  # a log start shows that the log reached it
        "append_below_shown_end 6 5",
        kept(append(6, [60], 5, 6, 1), read(5, 0, [], 2, 3, strong=True, log_start_offset=2)),
        kept(append(6, [60], 5, 6, 2), read(5, 0, [], 2, 3, strong=True, log_start_offset=2)),
    ),
    lab.case(
        "unaccounted_offset 5",
        kept(read(5, 0, [], 2, 3, strong=True, log_start_offset=2), append(6, [60], 0, None), dense=True),
        kept(read(5, 0, [], 2, 3, strong=True, log_start_offset=2), append(6, [60, 61], 0, None), dense=True),
    ),
    lab.case(  # the last record of a key stays
        "skipped_offset 5 2",
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1, "b"), keyed(3, 30, 2), from_two(5)),
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1, "a"), keyed(3, 30, 2), from_two(5)),
    ),
    lab.case(  # what is newer must have stood by then
        "skipped_offset 5 1",
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1, "b"), keyed(3, 30, 2, at=6), read(5, 0, [(1, 20)], 4, 5)),
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1, "b"), keyed(3, 30, 2, at=5), read(5, 0, [(1, 20)], 4, 5)),
    ),
    lab.case(  # and an append that nobody saw must have been sent
        "skipped_offset 5 1",
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1, "b"), keyed(3, 30, None, at=6), read(5, 0, [(1, 20)], 4, 5)),
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1, "b"), keyed(3, 30, None, at=5), read(5, 0, [(1, 20)], 4, 5)),
    ),
    lab.case(  # a record without a key is like no other; a tombstone goes at any time
        "skipped_offset 5 2",
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1, None), keyed(3, 30, 2), from_two(5)),
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1, "b", argument="tombstone"), keyed(3, 30, 2), from_two(5)),
    ),
    lab.case(  # only the topic that says so is compacted
        "skipped_offset 5 1",
        trace(keyed(1, 10, 0), keyed(2, 20, 1), keyed(3, 30, 2), from_two(5), compacted=("u",)),
        cleaned(keyed(1, 10, 0), keyed(2, 20, 1), keyed(3, 30, 2), from_two(5)),
    ),
    lab.case(
        "last_stable_offset_regressed 5 4",
        lambda either: trace(
            *THREE,
            read(4, 2, [], 2, 3, strong=either(True, False), last_stable_offset=2),
            read(5, 2, [], 4, 5, strong=True, last_stable_offset=1),
        ),
    ),
    lab.case(  # what a read_committed read returned was stable
        "last_stable_offset_regressed 5 4",
        lambda either: trace(
            *THREE,
            read(4, 1, [(1, 20)], 2, 3, **either(COMMITTED, UNCOMMITTED)),
            read(5, 2, [], 4, 5, strong=True, last_stable_offset=1),
        ),
    ),
    lab.case(
        "last_stable_above_end 4",
        lambda either: trace(*THREE, read(4, 3, [], 2, 3, either(2, 3), strong=False, last_stable_offset=3)),
    ),
    lab.case(
        "read_outside_bounds 4",
        trace(*THREE, read(4, 0, [(0, 10), (1, 20)], 2, 3, strong=True, last_stable_offset=1, **COMMITTED)),
        trace(*THREE, read(4, 0, [(0, 10), (1, 20)], 2, 3, strong=True, last_stable_offset=1, **UNCOMMITTED)),
    ),
    lab.case(  # the end that a read_committed list_offsets returns is the last stable offset
        "last_stable_offset_regressed 5 4",
        lambda either: trace(
            *THREE,
            read(4, either(1, 0), [either((1, 20), (0, 10))], 2, 3, **COMMITTED),
            read(5, 1, [], 4, 5, strong=True, function=Function.LIST_OFFSETS, **COMMITTED),
        ),
    ),
    lab.case(
        "open_transaction_read 4 1 9",
        trace(append(1, [10], 0, 6, 0), txn(9, 1, 0, 8), read(4, 0, [(0, 10)], 2, 5, **COMMITTED)),
        trace(append(1, [10], 0, 6, 0), txn(9, 1, 0, 8), read(4, 0, [(0, 10)], 2, 6, **COMMITTED)),
    ),
    lab.case(  # an abort is not shown to those who asked for committed records, and is passed over by them
        "failed_append_visible 4 1",
        lambda either: trace(
            append(1, [10], 0, 1, outcome=FAIL),
            txn(9, 1, 0, 2, FAIL),
            read(4, 0, [(0, 10)], 2, 5, **either(COMMITTED, UNCOMMITTED)),
        ),
    ),
    lab.case(
        "skipped_offset 5 1",
        trace(*THREE, txn(9, 1, 0, 2), read(5, 0, [(1, 20)], 4, 5, **COMMITTED)),
        trace(*THREE, txn(9, 1, 0, 2, FAIL), read(5, 0, [(1, 20)], 4, 5, **COMMITTED)),
    ),
    lab.case(  # a transaction of which one record was shown was committed
        "skipped_offset 5 1",
        trace(
            append(1, [10, 11], 0, 1, 0),
            txn(9, 1, 0, None, UNKNOWN),
            read(4, 0, [(0, 10)], 3, 4, **COMMITTED),
            read(5, 0, [(1, 11)], 4, 5, **COMMITTED),
        ),
        trace(
            append(1, [10, 11], 0, 1, 0),
            txn(9, 1, 0, None, UNKNOWN),
            read(4, 0, [(0, 10)], 3, 4, **UNCOMMITTED),
            append(2, [20], 0, 1, 2),
            read(5, 0, [(2, 20)], 4, 5, **COMMITTED),
        ),
    ),
    lab.case(  # so it had not asked for its end while it still sent, whatever became known of it
        "open_transaction_read 4 1 9",
        lambda either: trace(
            append(1, [10], 1, 2, 0, process=7),
            append(2, [20], 6, 8, 1, process=7),
            txn(9, 7, 0, 9, UNKNOWN),
            read(4, 0, [(0, 10)], 3, 4, **either(COMMITTED, UNCOMMITTED)),
        ),
    ),
    lab.case(  # and what it was told counts: another value at its offset,
        "inconsistent_offsets 1 2",
        lambda either: trace(
            append(1, [10], 0, 1, 0, process=7, outcome=UNKNOWN),
            append(3, [30], 0, 1, process=7),
            txn(9, 7, 0, 2, UNKNOWN),
            append(2, [20], 0, 1, 0),
            either(read(4, 1, [(1, 30)], 3, 4), read(4, 1, [(1, 30)], 3, 4, **UNCOMMITTED)),
        ),
    ),
    lab.case(  # its value at another offset,
        "duplicate 1 4",
        lambda either: trace(
            append(1, [10], 0, 1, 0, process=7, outcome=UNKNOWN),
            txn(9, 7, 0, 2, UNKNOWN),
            either(read(4, 1, [(1, 10)], 3, 4), read(4, 1, [(1, 10)], 3, 4, **UNCOMMITTED)),
        ),
    ),
    lab.case(  # or a read that passes over it; who is part of it proves nothing
        "skipped_offset 5 1",
        lambda either: trace(
            append(1, [10], 0, 1, 1, process=7, outcome=UNKNOWN),
            append(3, [30], 0, 1, process=7),
            txn(9, 7, 0, 2, UNKNOWN),
            append(2, [20], 0, 1, 2),
            either(read(5, 0, [(0, 30), (2, 20)], 3, 4), read(5, 0, [(0, 30), (2, 20)], 1, 2, process=7)),
        ),
    ),
]


@pytest.mark.parametrize(
    ("anomaly", "operations", "bad", "good"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)]
)
def test_rule_is_broken_by_its_operations(
    anomaly: str, operations: tuple[int, ...], bad: Trace, good: Trace
) -> None:
    """Each rule of special logs has a certificate of the operations that break it; the nearest legal history
    has none."""
    found = {finding.anomaly: finding for finding in judge_trace(bad).findings}
    assert anomaly in found
    assert found[anomaly].operations == operations
    assert judge_trace(good).decision is Decision.OK, judge_trace(good)


def test_a_write_below_the_log_start_is_not_lost() -> None:
    """An end that went back over a record that retention removed is a stale read, not a lost write; so is one
    that compaction may have removed."""
    stale = (
        append(1, [10], 0, 1, 0),
        read(2, 0, [], 2, 3, 0),
        read(3, 0, [], 4, 5, strong=False, log_start_offset=1),
    )
    assert judge_trace(trace(*stale)).anomaly == "lost_write"
    assert judge_trace(kept(*stale)).anomaly == "stale_read"
    replaced = (keyed(1, 10, 0), keyed(4, 40, None), read(2, 0, [], 2, 3, 0))
    assert judge_trace(trace(*replaced)).anomaly == "lost_write"
    assert judge_trace(cleaned(*replaced)).anomaly == "stale_read"


def test_clock_uncertainty_clears_an_excuse_that_came_late() -> None:
    """A newer record of the key on another clock excuses once that clock errs enough, and the finding says
    how much."""
    late = (
        keyed(1, 10, 0, clock_id=1), keyed(2, 20, 1, "b", clock_id=1), keyed(3, 30, 2, at=8, clock_id=2),
        read(5, 0, [(1, 20)], 4, 5, clock_id=1),
    )  # fmt: skip
    (finding,) = judge_trace(cleaned(*late)).findings
    assert (finding.anomaly, finding.uncertainty_ns) == ("skipped_offset", 2)
    assert judge_trace(cleaned(*late, clock_uncertainty_ns=2)).decision is Decision.OK


def one_transaction(first: int, others: int, read_clock: int) -> Trace:
    """Two appends of one transaction and a strong poll that claims last stable offset 1. The clocks err by 2;
    first: the clock of the append at offset 2, others: that of the append at offset 0."""
    return trace(
        append(1, [10], 9, 11, 2, process=7, clock_id=first),
        append(2, [20], 4, 6, 0, process=7, clock_id=others),
        txn(9, 7, 3, 12),
        read(4, 0, [], 6, 7, strong=True, clock_id=read_clock, last_stable_offset=1, **COMMITTED),
        clock_uncertainty_ns=2,
    )


def test_the_end_of_a_transaction_keeps_the_clock_of_each_part() -> None:
    """Its end came after every part by that part's own clock: 11 on another clock than 7 is within twice the
    uncertainty, on the same clock it is not."""
    assert judge_trace(one_transaction(1, 0, 0)).decision is Decision.OK
    (finding,) = judge_trace(one_transaction(0, 1, 0)).findings
    assert (finding.anomaly, finding.operations, finding.uncertainty_ns) == (
        "open_transaction_read",
        (4, 2, 9),
        -1,
    )


def test_a_part_that_failed_or_was_never_answered_bounds_by_its_invocation() -> None:
    """The definition: a client asks for the end once its parts were sent, and those that succeeded
    answered."""
    for outcome, asked, decided in (
        (FAIL, 3, "ok"),
        (UNKNOWN, 3, "ok"),
        (OK, 3, "illegal"),
        (FAIL, 6, "illegal"),
    ):
        part = append(2, [20], asked, 8, 1 if outcome is OK else None, process=7, outcome=outcome)
        history = trace(
            append(1, [10], 1, 2, 0, process=7),
            part,
            txn(9, 7, 0, 9),
            read(4, 0, [(0, 10)], 3, 4, **COMMITTED),
        )
        assert judge_trace(history).decision == decided, (outcome, asked)
        assert legal(history) is (decided == "ok")


def test_a_log_start_that_nobody_was_answered_excuses_nothing() -> None:
    """Rule: only an answer says where the log starts; an append without one does not."""
    unanswered = append(4, [40], 2, None, log_start_offset=2)
    assert judge_trace(kept(*THREE, unanswered, from_two(5))).anomaly == "skipped_offset"
    answered = append(4, [40], 2, 3, 3, log_start_offset=2)
    assert judge_trace(kept(*THREE, answered, from_two(5))).decision is Decision.OK


def test_a_log_start_of_one_partition_says_nothing_of_another() -> None:
    """What retention explains is kept apart by partition, also for claims of polls of several partitions."""
    poll = lab.operation(
        *(4, Function.POLL, 2, 3),
        positions=(
            Position(topic="t", partition=0, offset=0, log_start_offset=0),
            Position(topic="t", partition=1, offset=0, log_start_offset=2),
        ),
    )
    assert judge_trace(kept(*THREE, poll, from_two(5))).anomaly == "skipped_offset"
    swapped = evolve(poll, positions=tuple(evolve(p, partition=1 - p.partition) for p in poll.positions))
    assert judge_trace(kept(*THREE, swapped, from_two(5))).decision is Decision.OK


def test_session_forbids_log_starts_to_go_back_within_an_epoch() -> None:
    """In the session profile a process's log starts and last stable offsets do not go back within a leader
    epoch."""
    for column, anomaly in (
        ("log_start_offset", "log_start_regressed"),
        ("last_stable_offset", "last_stable_offset_regressed"),
    ):
        polls = [
            read(n, 3, [], n, n, strong=False, process=1, leader_epoch=1, **{column: 4 - n}) for n in (1, 2)
        ]
        assert judge_trace(kept(*polls, check="session")).anomaly == anomaly
        apart = (polls[0], evolve(polls[1], leader_epoch=2))
        assert judge_trace(kept(*apart, check="session")).decision is Decision.OK


def test_a_judge_that_excuses_everything_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: once retention and compaction excuse everything, the differential test finds
    histories that no log explains."""
    from test_log_differential import disagreements, special_histories

    made = special_histories(3)
    assert disagreements(made) == []
    monkeypatch.setattr(content, "_RULES", tuple(r for r in content._RULES if r is not skips.skipped_offsets))
    assert any(disagreements(special_histories(seed)) for seed in range(3, 13))


def test_stacking_does_not_change_what_special_logs_are() -> None:
    """Special and ordinary traces in one call have the verdicts of each alone."""
    made = [evolve(t, trace_id=n) for n, t in enumerate(t for case in CASES for t in case[2:])]
    alone = [(t.trace_id, judge_trace(t)) for t in made]
    assert judge_traces(made) == [pair for pair in alone if pair[1].decision is not Decision.OK]

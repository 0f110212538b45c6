"""What docs/explanation/exactness.md writes down about the edges of the rules: each definition as a history,
by the judge and by its naive twin."""

import pytest
from log_histories import append, judge_trace, loss, read, trace
from log_pairs import anomalies

from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

TWO = (append(1, [10], 0, 1, 0), append(2, [20], 0, 1, 1))


def polls(*positions: int) -> tuple[Operation, ...]:
    """Polls of one process in one leader epoch that begin at these positions and find nothing."""
    return tuple(
        read(10 + n, position, [], 10 * n, 10 * n + 1, process=7, leader_epoch=1)
        for n, position in enumerate(positions)
    )


DEFINITIONS: list[tuple[str, Trace, set[str]]] = [
    (
        "two reads that name different epochs for one offset and value agree",
        trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10, 1)], 2, 3), read(3, 0, [(0, 10, 2)], 4, 5)),
        set(),
    ),
    (
        "the records of one batch may name two epochs, as long as they do not decrease",
        trace(append(1, [10, 11], 0, 1, 0), read(2, 0, [(0, 10, 1), (1, 11, 2)], 2, 3)),
        set(),
    ),
    (
        "and not if they decrease",
        trace(append(1, [10, 11], 0, 1, 0), read(2, 0, [(0, 10, 2), (1, 11, 1)], 2, 3)),
        {"epoch_regressed_in_log"},
    ),
    (
        "the epoch of a poll is not compared with those of its records",
        trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10, 2)], 2, 3, leader_epoch=1)),
        set(),
    ),
    (
        "what is known inside a range shows that the log had grown to the range",
        trace(append(1, [10], 5, 6, 0), append(2, [20], 0, 1, 1), loss=loss(1, 2)),
        {"append_inversion"},
    ),
    (
        "an end inside a range asks nothing of what is known beyond it",
        trace(*TWO, append(3, [30], 0, 1, 2), read(4, 0, [], 5, 6, 1), loss=loss(1, 2)),
        set(),
    ),
    (
        "epochs inside a range are not ordered",
        trace(*TWO, read(4, 0, [(0, 10, 2), (1, 20, 1)], 5, 6), loss=loss(0, 2)),
        set(),
    ),
    (
        "one value at two offsets of a range is no duplicate",
        trace(
            append(1, [10], 0, 1, 0),
            read(4, 0, [(0, 10)], 2, 3),
            read(5, 1, [(1, 10)], 5, 6),
            loss=loss(0, 2),
        ),
        set(),
    ),
    (
        "but it is one within one epoch",
        trace(
            append(1, [10], 0, 1, 0, leader_epoch=1),
            read(4, 0, [(0, 10, 1)], 2, 3),
            read(5, 1, [(1, 10, 1)], 5, 6),
            loss=loss(0, 2),
        ),
        {"duplicate"},
    ),
    (
        "a batch whose last record lies in a range is no slot: an end may lie inside it",
        trace(append(1, [10, 11], 0, 1, 0), read(4, 0, [(0, 10)], 2, 3, 1), loss=loss(1, 2)),
        set(),
    ),
    (
        "one whose last record lies beyond the range is",
        trace(append(1, [10, 11], 0, 1, 0), read(4, 1, [], 2, 3, 1), loss=loss(0, 1)),
        {"torn_batch"},
    ),
]


@pytest.mark.parametrize(
    ("made", "wanted"), [case[1:] for case in DEFINITIONS], ids=[case[0] for case in DEFINITIONS]
)
def test_each_definition_is_the_twins_too(made: Trace, wanted: set[str]) -> None:
    """The judge and the definitions over pairs find the same, and what is written down."""
    found = {finding.anomaly for finding in judge_trace(made).findings} - {"stale_read", "lost_write"}
    assert found == wanted
    assert set(anomalies(made)) - {"stale_read", "lost_write"} == wanted


def test_strong_does_not_include_the_positions_of_session() -> None:
    """Positions of a process are compared in the profile session alone, also inside a range where loss
    is allowed."""
    for profile, wanted in (("session", "position_regressed"), ("strong", None), ("default", None)):
        for ranges in ((), loss(0, 9)):
            made = trace(*polls(3, 1), check=profile, loss=ranges)
            assert judge_trace(made).anomaly == wanted, (profile, ranges)

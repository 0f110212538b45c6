"""`mining/triage/answer_steps.py`: what clients were answered, related to what was known."""

from typing import Any

import numpy as np
from attrs import evolve

from fencepost.mining.triage.answer_steps import ABORTED, BELOW, OLDER, OPEN, SHARED, UNDONE
from fencepost.mining.triage.event_steps import steps_of
from fencepost.mining.triage.features import features_of
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.tables import tables_of
from tests.checkers import lab


def operation(number: int, function: Function, start: int, end: int, **more: Any) -> Operation:
    kept = {"outcome": Outcome.OK, "process": 1, **more}
    return Operation(op_id=number, function=function, invoke_time=start, completion_time=end, **kept)


def record(value: int) -> tuple[Record, ...]:
    return lab.records(value, begin=value, topic="out")


def marker(time: int, commit: bool, offset: int = 6) -> Event:
    return lab.event(
        time,
        Name.MARKER_WRITTEN,
        1,
        topic="out",
        partition=0,
        offset=offset,
        detail=f'{{"producer_id":7,"producer_epoch":1,"commit":{str(commit).lower()}}}',
    )


def offsets(number: int, function: Function, start: int, end: int, offset: int, **more: Any) -> Operation:
    place = Position(topic="t", partition=0, offset=offset)
    return operation(number, function, start, end, group="g", positions=(place,), **more)


def answers(*traces: tuple[list[Operation], list[Event]]) -> list[set[str]]:
    """The relations of each trace."""
    rows = [
        rows_of(lab.trace(operations, trace_id=9 - n, seed=1, events=tuple(events)))
        for n, (operations, events) in enumerate(traces)
    ]  # fmt: skip
    tables, ids = tables_of(rows), np.array([9 - n for n in range(len(rows))], np.int64)
    words = features_of(tables, steps_of(tables.events, ids)).of_each(len(rows))
    return [{one.removeprefix("answer: ") for one in each if one.startswith("answer: ")} for each in words]


TXN = operation(1, Function.TXN, 10, 40, key="x", producer_id=7, producer_epoch=1)
WRITE = operation(
    2, Function.APPEND, 10, 20, producer_id=7, producer_epoch=1, topic="out", partition=0, records=record(5)
)


def poll(end: int, isolation: str = "read_committed") -> Operation:
    return operation(
        3, Function.POLL, 15, end, process=2, topic="out", partition=0, isolation=isolation, records=record(5)
    )


def test_readers_of_committed_records_wait_for_the_marker() -> None:
    """Rule: a record shown before any marker is of an open transaction, one after an abort of an aborted
    one; one after a commit is neither, nor is what a reader of everything gets. Traces do not mix."""
    committed, aborted = [marker(30, True)], [marker(30, False)]
    assert answers(
        ([TXN, WRITE, poll(25)], committed),
        ([TXN, WRITE, poll(35)], committed),
        ([TXN, WRITE, poll(35)], aborted),
        ([TXN, WRITE, poll(25, "read_uncommitted")], committed),
        ([TXN, WRITE], committed),
    ) == [{OPEN}, set(), {ABORTED}, set(), set()]


def test_a_late_marker_of_the_transaction_before_does_not_end_the_next() -> None:
    """Rule: a transaction ends with the first marker after its records in the log."""
    late = [marker(12, False, offset=4), marker(30, True)]
    write = evolve(WRITE, offset=5)
    assert answers(([TXN, write, poll(35)], late), ([TXN, write, poll(25)], late)) == [set(), {OPEN}]


def test_without_markers_nothing_is_said_of_records() -> None:
    """Rule: a foreign history has no markers; its readers broke no rule that can be seen."""
    assert answers(([TXN, WRITE, poll(25)], [])) == [set()]


def test_offsets_of_transactions() -> None:
    """Rule: an offset that only an aborted transaction carried never was; one of a committed transaction
    counts until a later commit."""
    aborted = operation(1, Function.TXN, 10, 40, key="x", producer_id=7, outcome=Outcome.FAIL)
    commit = offsets(4, Function.COMMIT, 20, 40, 8, argument="txn")
    again = offsets(5, Function.COMMIT, 45, 46, 2, process=3)
    shown, nothing = (offsets(6, Function.FETCH_COMMITTED, 50, 60, n, process=2) for n in (8, -1))
    early = offsets(6, Function.FETCH_COMMITTED, 30, 60, -1, process=2)
    assert answers(
        ([aborted, commit, shown], []),
        ([TXN, commit, shown], []),
        ([TXN, commit, nothing], []),
        ([aborted, commit, nothing], []),
        ([TXN, commit, again, offsets(6, Function.FETCH_COMMITTED, 50, 60, 2)], []),
        ([TXN, commit, early], []),
    ) == [{UNDONE}, set(), {BELOW}, set(), set(), set()]


def test_producer_ids_and_epochs() -> None:
    """Rule: a producer id in one epoch has one user, and a transaction of an earlier epoch cannot commit any
    more when one of a later epoch has begun."""
    first, second = (operation(n, Function.APPEND, n, 9, process=n, producer_id=7, producer_epoch=0)
                     for n in (1, 2))  # fmt: skip
    bumped = operation(2, Function.APPEND, 2, 9, process=2, producer_id=7, producer_epoch=1)
    newer = operation(8, Function.TXN, 5, 60, key="x", producer_id=7, producer_epoch=2)
    other = operation(8, Function.TXN, 5, 60, key="y", producer_id=7, producer_epoch=2)
    assert answers(([first, second], []), ([first, bumped], []), ([TXN, newer], []), ([TXN, other], [])) == [
        {SHARED},
        set(),
        {OLDER},
        set(),
    ]

"""Answers by time of brokers that do not say what they append: what clients read proves them wrong."""

import json
from collections.abc import Sequence

import pytest
from attrs import evolve

from fencepost.traces.events import APPENDS_UNKNOWN, Event, Name
from fencepost.traces.operations import Function, Operation, Record
from tests.checkers.liveness.test_rows import appended, by_time, event, found, op

SILENT = event(0, Name.MARK, cause=APPENDS_UNKNOWN)
SKIPPED, OTHER = "record_skipped_by_time", "record_of_another_time"


def record(offset: int, value: int, epoch: int = -1) -> Record:
    """Of t-0."""
    return Record(topic="t", partition=0, offset=offset, value=value, leader_epoch=epoch)


def written(begin: float, offset: int, value: int) -> Operation:
    """One record of t-0, acknowledged without a leader epoch, as Kafka does."""
    return evolve(appended(begin, begin + 0.1, offset), records=(record(offset, value),), leader_epoch=None)


def polled(begin: float, offset: int, value: int, epoch: int = 0) -> Operation:
    """That record is read."""
    return op(Function.POLL, begin, begin + 0.1, records=(record(offset, value, epoch),))


def said(answer: Operation, **fields) -> Operation:
    """An answer by time with more in it."""
    return evolve(answer, result=json.dumps(json.loads(answer.result or "{}") | fields))


def says(story: Sequence[Event | Operation]) -> set[str]:
    """What is found of answers by time."""
    return found([SILENT, *story]) & {SKIPPED, OTHER}


@pytest.mark.parametrize(
    ("read", "skipped"),
    [
        (polled(60, 5, 50), True),
        (polled(45, 5, 50), False),  # the log may begin above it by now
        (polled(60, 5, 51), False),  # another record has its offset: it was lost
        (polled(60, 6, 50), False),
    ],
)
def test_a_record_that_is_read_afterwards_was_there(read: Operation, skipped: bool) -> None:
    """Rule: so the broker that had acknowledged it had to name it, or an earlier one."""
    story = [written(40, 5, 50), read, by_time(50, 39, -1)]
    assert says(story) == ({SKIPPED} if skipped else set())


@pytest.mark.parametrize(
    ("read", "wrong"), [(polled(60, 5, 50), True), (polled(60, 5, 50, 1), False), (polled(60, 5, 51), False)]
)
def test_who_reads_a_record_knows_its_epoch(read: Operation, wrong: bool) -> None:
    """Rule: one record has an offset in an epoch, so its append is known if nobody else says the epoch."""
    story = [written(40, 5, 50), read]
    assert says([*story, by_time(50, 39, 5, 45)]) == ({OTHER} if wrong else set())
    assert says([*story, by_time(50, 39, 5, 40.05)]) == set()


def test_times_of_another_clock_count_as_well_as_they_are_known() -> None:
    """Rule: within what the conversion left open; what nobody knows is compared with itself only."""
    story = [written(40, 5, 50), polled(60, 5, 50)]
    late, missed = by_time(50, 39, 5, 40.102), by_time(50, 39.999, -1)
    assert says([*story, late]) == {OTHER} and says([*story, said(late, within_ms=2)]) == set()
    assert says([*story, missed]) == {SKIPPED} and says([*story, said(missed, within_ms=2)]) == set()
    assert says([*story, said(by_time(50, 39, 5, 45), within_ms=-1)]) == set()
    assert says([*story, said(by_time(50, 39, -1), within_ms=-1)]) == set()
    assert says([*story, said(by_time(50, 39, 5, 38), within_ms=-1)]) == {OTHER}

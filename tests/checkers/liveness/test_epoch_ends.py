"""What proves that a leader named a wrong end of an epoch, and what does not."""

from collections.abc import Sequence

import pytest
from attrs import evolve

from fencepost.traces.events import APPENDS_UNKNOWN, REPLICA_DELETED, Event, Name
from fencepost.traces.operations import Function, Operation, Record
from tests.checkers.liveness import test_rows as rows

PLACE = {"node": 1, "topic": "t", "partition": 0}
LOG = (
    rows.event(40, Name.APPENDED, offset=0, values=(1, 2, 3, 4, 5), leader_epoch=0, **PLACE),
    rows.event(41, Name.APPENDED, offset=5, values=(6, 7), leader_epoch=1, **PLACE),
    rows.became_leader(42, 3, 7),
    rows.event(43, Name.APPENDED, offset=7, values=(8,), leader_epoch=3, cause="leader", **PLACE),
)
"""Epoch 0 ends at 5, epoch 1 at 7, and epoch 3 of broker 1 begins there."""


def is_wrong(story: Sequence[Event | Operation]) -> bool:
    """Whether an epoch end is."""
    return "wrong_epoch_end" in rows.found(story)


@pytest.mark.parametrize(
    ("ends", "wrong"),
    [
        ([(3, 3, 8), (2, 1, 7), (0, 0, 5)], False),
        ([(3, 3, 8), (2, 2, 7)], False),  # an epoch without records may be known
        ([(3, 3, 9)], True),
        ([(3, 3, 7)], True),
        ([(3, 1, 8)], True),
        ([(3, -1, -1)], True),
        ([(3, 3, 8), (2, 1, 8)], True),
        ([(3, 3, 8), (2, 1, 6)], True),
        ([(3, 3, 8), (2, 3, 7)], True),
        ([(3, 3, 8), (2, 0, 7)], True),
        ([(3, 3, 8), (2, 1, 7), (0, 0, 4)], True),
        ([(3, 3, 8), (2, 1, 7), (0, -1, -1)], True),
        ([(3, 3, 8), (4, -1, -1)], False),  # an epoch that is not there yet is not known
    ],
)
def test_the_end_divides_the_log(ends: list[tuple[int, int, int]], wrong: bool) -> None:
    """Rule: the epoch is the largest that is not above the one asked for, its end the first offset of the
    next, or the end of the log."""
    assert is_wrong([*LOG, rows.epoch_ends(50, *ends)]) == wrong


@pytest.mark.parametrize(
    "why",
    [
        rows.event(45, Name.LOG_START, log_start_offset=6, **PLACE),
        rows.event(45, Name.COMPACTED, offset=5, **PLACE),
        rows.event(45, Name.MARK, cause=REPLICA_DELETED, **PLACE),
        rows.event(45, Name.BECAME_FOLLOWER, leader=2, leader_epoch=4, offset=8, **PLACE),
        rows.fault(45, "bit_rot", 1),
    ],
)
def test_what_may_be_gone_is_no_witness(why: Event) -> None:
    """Rule: epochs below the log start, in a cleaned log or in another log of the same broker may be
    forgotten; a rotten file may say anything."""
    answer = rows.epoch_ends(50, (3, 3, 8), (0, 0, 6))
    assert is_wrong([*LOG, answer])
    assert not is_wrong([*LOG, why, answer])


def test_an_append_while_the_question_is_under_way_may_count() -> None:
    """Rule: the log end is one between the question and the answer."""
    late = rows.event(49.995, Name.APPENDED, offset=8, values=(9,), leader_epoch=3, cause="leader", **PLACE)
    for end, wrong in ((8, False), (9, False), (10, True)):
        assert is_wrong([*LOG, late, rows.epoch_ends(50, (3, 3, end))]) == wrong


def test_a_broker_that_does_not_say_what_it_appends_has_no_known_log_end() -> None:
    """Rule: Apache Kafka says when it became leader, and not what it appended since."""
    silent = rows.event(0, Name.MARK, cause=APPENDS_UNKNOWN)
    for story in ([rows.became_leader(42, 3, 7)], [silent, *LOG]):
        assert not is_wrong([*story, rows.epoch_ends(50, (3, 3, 20))])


@pytest.mark.parametrize(("epoch", "error"), [(4, "UNKNOWN_LEADER_EPOCH"), (2, "FENCED_LEADER_EPOCH")])
def test_a_leader_refuses_who_takes_it_for_that_of_another_epoch(epoch: int, error: str) -> None:
    """Rule (KIP-320): of the next and of the last one, between which it serves its own; not if the topic was
    made again meanwhile."""
    for said, wrong in ((error, False), ("", True)):
        answer = rows.epoch_ends(50, (3, 3, 8), refused=[[epoch, said]])
        assert ("other_epoch_served" in rows.found([*LOG, answer])) == wrong
    gone = [rows.deletion(49.991, "requested"), rows.assigned(49.992, ()), rows.deletion(49.993, "done")]
    again = [rows.assigned(49.995, (1, 2, 3)), rows.state(49.996, 1, 0, (1, 2, 3))]
    assert "other_epoch_served" not in rows.found([rows.assigned(30, (1, 2, 3)), *LOG, *gone, *again, answer])


def polled(begin: float, *records: tuple[int, int], node: int = 1, epoch: int = 3) -> Operation:
    """Broker 1, in epoch 3 of t-0, answers with records: offset, epoch."""
    read = tuple(
        Record(topic="t", partition=0, offset=offset, value=offset, leader_epoch=of) for offset, of in records
    )
    return rows.op(Function.POLL, begin, begin + 0.1, node=node, leader_epoch=epoch, records=read)


def written(offset: int, **fields) -> Operation:
    """One record of t-0."""
    value = Record(topic="t", partition=0, offset=offset, value=offset)
    return evolve(rows.appended(40, 40.1, offset, **fields), records=(value,))


@pytest.mark.parametrize(
    ("poll", "end", "wrong"),
    [
        (polled(60, (4, 0), (5, 1)), (0, 0, 5), False),
        (polled(60, (4, 0), (5, 1)), (0, 0, 6), True),
        (polled(60, (4, 0), (5, 1)), (0, 0, 4), True),
        (polled(60, (4, 0), (5, 1)), (2, 0, 6), True),  # epoch 1 has a record
        (polled(45, (4, 0), (5, 1)), (0, 0, 6), False),  # the log may begin above it by now
        (polled(60, (4, 3)), (3, 3, 4), False),  # it came after the answer
        (polled(45, (4, 3)), (3, 3, 4), True),
        (polled(60, (5, 1), node=2), (0, 0, 6), False),
        (polled(60, (5, 1), epoch=4), (0, 0, 6), False),
        (polled(60, (5, -1)), (0, 0, 6), False),
    ],
)
def test_what_clients_read_of_the_same_leader_is_a_witness(
    poll: Operation, end: tuple[int, int, int], wrong: bool
) -> None:
    """Rule: of brokers that do not say what they append. In one reign the log only grows."""
    ends = (end,) if end[0] == 3 else ((3, 3, 9), end)
    assert is_wrong([written(4), written(5), poll, rows.epoch_ends(50, *ends)]) == wrong


@pytest.mark.parametrize(
    ("key", "loss"),
    [
        ("k", ()),
        (None, (rows.event(55, Name.BROKER_STARTED, node=1),)),
        (None, (rows.deletion(55, "requested"),)),
    ],
)
def test_a_read_record_that_may_be_gone_is_no_witness(key: str | None, loss: tuple[Event, ...]) -> None:
    """Rule: its key may be cleaned, its broker may have begun anew, its topic may be another one."""
    story = [written(5, key=key), polled(60, (5, 1)), rows.epoch_ends(50, (3, 3, 9), (0, 0, 6))]
    assert not is_wrong([*story, *loss])
    assert is_wrong([written(5), *story[1:]])

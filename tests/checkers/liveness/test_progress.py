"""Progress in histories of clients alone: each finding, and healthy twins that differ in one fact."""

from typing import Any

import pytest
from attrs import evolve

from fencepost.checkers import liveness
from fencepost.checkers.events import EventTables, judge_liveness
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Claims, LossRange, Trace

MINUTE = 60 * 10**9
LOST = LossRange(topic="t", partition=0, start=0, end=100, reason="an unclean election")


def operation(function: str, minute: float, **more: Any) -> Operation:
    begin = int(minute * MINUTE)
    own = {
        "op_id": begin, "process": 1, "invoke_time": begin, "outcome": Outcome.OK,
        "completion_time": begin + 1, "topic": "t", "partition": 0,
    }  # fmt: skip
    return Operation(**{**own, "function": Function(function), **more})


def append(minute: float, place: int, **more: Any) -> Operation:
    record = Record(topic="t", partition=0, offset=place, value=int(minute * 1000))
    return operation("append", minute, **{"acks": -1, "offset": place, "records": (record,), **more})


def poll(minute: float, **more: Any) -> Operation:
    return operation("poll", minute, **{"process": 2, **more})


def found(operations: list[Operation], **claims: Any) -> list[str]:
    """The anomalies, by the objects and by the tables."""
    trace = Trace(
        trace_id=1,
        plan="",
        seed=0,
        software_version="",
        operations=tuple(operations),
        claims=Claims(**claims),
    )
    verdict = liveness.judge(trace)
    bare = evolve(trace, operations=())
    tables = judge_liveness(EventTables(tables=tables_of([rows_of(trace)]), headers=(bare,)))
    assert tables.get(1, verdict) == verdict and (1 in tables) == bool(verdict.findings)
    return [finding.anomaly for finding in verdict.findings]


def held(*minutes: float, stable: int = 3, end: int = 5, **more: Any) -> list[Operation]:
    return [
        poll(m, **{"isolation": "read_committed", "last_stable_offset": stable, "end_offset": end, **more})
        for m in minutes
    ]


def test_a_last_stable_offset_that_stands() -> None:
    """It stays below the end for longer than any transaction may be open; two bare answers are enough, for
    it never goes back."""
    assert found(held(0, 30)) == ["last_stable_offset_stands"]
    assert found(held(0, 30, topic=None, partition=None, positions=(
        Position(topic="t", partition=0, offset=3, end_offset=5, last_stable_offset=3),
    ))) == ["last_stable_offset_stands"]  # fmt: skip


@pytest.mark.parametrize(
    ("operations", "claims"),
    [
        (held(0, 20), {}),
        (held(0, 30), {"transaction_timeout_ms": 60 * 60_000}),
        (held(0, 30), {"stall_ms": 60 * 60_000}),
        (held(0, 30), {"loss": (LOST,)}),
        (held(0, 30, end=3), {}),
        (held(0, 14, 31, 60, stable=5) + held(15, stable=4), {}),
        (held(0, 14) + held(15, 30, stable=4), {}),
        (held(0) + held(15, stable=5) + held(30, end=9), {}),
    ],
)
def test_a_last_stable_offset_that_moves_in_time(operations, claims) -> None:
    """Within the bound, with a longer time-out of transactions, at the end, moving: nothing is found."""
    assert found(sorted(operations, key=lambda one: one.op_id), **claims) == []


def ends(*minutes: float, end: int = 1, **more: Any) -> list[Operation]:
    return [poll(minute, end_offset=end, **more) for minute in minutes]


def test_a_high_watermark_that_stands() -> None:
    """An append with acks=all was acknowledged above the end that polls go on to show."""
    assert found([append(0, 0), append(1, 1), *ends(2, 13)]) == ["high_watermark_stands"]
    asked = [operation("list_offsets", minute, process=2, offset=1) for minute in (2, 13)]
    assert found([append(0, 0), append(1, 1), *asked]) == ["high_watermark_stands"]
    assert found([append(0, 0), append(1, 1), *(evolve(one, argument="earliest") for one in asked)]) == []


@pytest.mark.parametrize(
    ("operations", "claims"),
    [
        ([append(0, 0), append(1, 1), *ends(2, 11)], {}),
        ([append(0, 0), append(1, 1), *ends(2, 13)], {"stall_ms": 12 * 60_000}),
        ([append(0, 0), append(1, 1, acks=1), *ends(2, 13)], {}),
        ([append(0, 0), append(1, 1), *ends(2, 13, end=2)], {}),
        ([append(0, 0), append(7, 1), *ends(2, 13)], {}),
        ([append(0, 0), append(1, 1), *ends(2, 13)], {"loss": (LOST,)}),
        ([append(0, 0), append(1, 1), *ends(2, 13, isolation="read_committed")], {}),
        ([append(0, 0), append(1, 1), *ends(2), *ends(8, end=2), *ends(13, end=2)], {}),
    ],
)
def test_a_high_watermark_that_moves_in_time(operations, claims) -> None:
    """Stale for a while, not committed, at the end, or an end that may be the last stable offset."""
    assert found(operations, **claims) == []


def empty(*minutes: float, offset: int = 0, **more: Any) -> list[Operation]:
    return [poll(minute, **{"offset": offset, "end_offset": 1, **more}) for minute in minutes]


def test_a_consumer_that_gets_nothing() -> None:
    """The record at its position was acknowledged, the broker says that the log goes on, and polls get
    nothing."""
    assert found([append(0, 0), *empty(1, 6, 12)]) == ["consumer_starved"]
    assert found([append(0, 0), *empty(1, 6, 12, isolation="read_committed", last_stable_offset=1)]) == [
        "consumer_starved"
    ]


READ = (Record(topic="t", partition=0, offset=0, value=0),)


@pytest.mark.parametrize(
    ("operations", "claims"),
    [
        ([append(0, 0), *empty(1, 12)], {}),
        ([append(0, 0), *empty(1, 6, 10)], {}),
        ([append(0, 0), *empty(1, 6, 12)], {"stall_ms": 11 * 60_000}),
        ([append(0, 0), *empty(1, 6, 12)], {"retention": True}),
        ([append(0, 0), *empty(1, 6, 12)], {"compacted": ("t",)}),
        ([append(0, 0), *empty(1, 6, 12)], {"loss": (LOST,)}),
        ([append(0, 1), *empty(1, 6, 12, end_offset=2)], {}),
        ([append(0, 0, acks=1), *empty(1, 6, 12)], {}),
        ([append(5, 0), *empty(1, 6, 12)], {}),
        ([append(0, 0), *empty(1, 6, 12, isolation="read_committed")], {}),
        ([append(0, 0), *empty(1), *empty(6, records=READ), *empty(12)], {}),
        ([append(0, 0), *empty(1, 6), *empty(12, process=3)], {}),
        ([append(0, 0), *empty(1, 6), *empty(12, offset=1)], {}),
        ([append(0, 0), *empty(1, 6, 12, outcome=Outcome.FAIL, error="NOT_LEADER_OR_FOLLOWER")], {}),
        ([operation("txn", 0, completion_time=9), append(0, 0, op_id=3), *empty(1, 6, 12)], {}),
    ],
)
def test_a_consumer_that_has_a_reason(operations, claims) -> None:
    """Few polls, a short time, what claims allow, nothing at its position, or a record that it got."""
    assert found(operations, **claims) == []


def sent(minute: float, number: int, **more: Any) -> Operation:
    return append(minute, number, **{"producer_id": 7, "producer_epoch": 0, "sequence": number, **more})


def refused(minute: float, number: int, **more: Any) -> Operation:
    return sent(
        minute, number, outcome=Outcome.FAIL, offset=None, error="OUT_OF_ORDER_SEQUENCE_NUMBER", **more
    )


OPEN = {"outcome": Outcome.UNKNOWN, "completion_time": None}


def test_a_next_sequence_that_is_refused() -> None:
    """Its predecessor was acknowledged by all, and it comes next."""
    assert found([sent(0, 0), sent(1, 1), refused(2, 2)]) == ["next_sequence_refused"]


@pytest.mark.parametrize(
    ("operations", "claims"),
    [
        ([sent(0, 0), sent(1, 1), refused(2, 3)], {}),
        ([sent(0, 0), sent(1, 1, acks=1), refused(2, 2)], {}),
        ([sent(0, 0), sent(1, 1, **OPEN), refused(2, 2)], {}),
        ([sent(0, 0), sent(1, 1, completion_time=3 * MINUTE), refused(2, 2)], {}),
        ([sent(0, 0), sent(1, 1), refused(2, 2, producer_epoch=1)], {}),
        ([sent(0, 0), sent(1, 1), sent(1.5, 2, **OPEN), refused(2, 2)], {}),
        ([sent(0, 0), sent(1, 1), sent(1.5, 0, producer_epoch=1), refused(2, 2)], {}),
        ([sent(0, 0), sent(1, 1), refused(2 * 24 * 60, 2)], {}),
        ([sent(0, 0), sent(1, 1), refused(2, 2)], {"producer_expiry_ms": 60_000}),
        ([sent(0, 0), sent(1, 1), refused(2, 2)], {"retention": True}),
        ([sent(0, 0), sent(1, 1), refused(2, 2)], {"loss": (LOST,)}),
        ([sent(0, 0), sent(1, 1), operation("delete_records", 1.5), refused(2, 2)], {}),
    ],
)  # fmt: skip
def test_a_sequence_that_may_be_refused(operations, claims) -> None:
    """A gap, a predecessor in doubt, another append of the number, an epoch, or a producer that was
    forgotten."""
    assert found(operations, **claims) == []


def unstable(*minutes: float, **more: Any) -> list[Operation]:
    refusal = {"outcome": Outcome.FAIL, "error": "UNSTABLE_OFFSET_COMMIT", "group": "g", **more}
    return [operation("fetch_committed", minute, **refusal) for minute in minutes]


def test_offsets_that_stay_unstable() -> None:
    """No transaction began since the first refusal, and every one before is out of time."""
    assert found(unstable(0, 30)) == ["offsets_stay_unstable"]


@pytest.mark.parametrize(
    ("operations", "claims"),
    [
        (unstable(0, 20), {}),
        (unstable(0, 30), {"transaction_timeout_ms": 60 * 60_000}),
        ([*unstable(0), operation("fetch_committed", 5, group="g", offset=1), *unstable(30)], {}),
        ([*unstable(0), operation("txn", 15, topic=None, partition=None, process=4), *unstable(30)], {}),
        (unstable(0) + unstable(30, group="h"), {}),
        (unstable(0, 30, error="COORDINATOR_NOT_AVAILABLE"), {}),
    ],
)
def test_offsets_that_may_be_unstable(operations, claims) -> None:
    """In time, with a longer time-out, of another transaction, or of another group."""
    assert found(operations, **claims) == []

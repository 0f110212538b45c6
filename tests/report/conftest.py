"""A small trace with a story: broker 1 leads, broker 2 cuts its log by its high watermark and is then
elected; op 2's record is gone."""

import pytest

from fencepost.checkers.verdict import Finding
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace
from tests.checkers import lab

MS = 1_000_000
T0 = {"topic": "t", "partition": 0}


def _append(op_id: int, at: int, offset: int) -> Operation:
    return lab.operation(
        *(op_id, Function.APPEND, at * MS, (at + 3) * MS),
        process=4,
        acks=-1,
        offset=offset,
        records=lab.records(op_id * 1000, begin=offset),
        **T0,
    )


def _events() -> list[Event]:
    events = [
        Event(time=0, name=Name.PHASE, cause="safety"),
        Event(time=5 * MS, name=Name.CONTROLLER_ELECTED, node=1, controller_epoch=1),
        lab.event(
            6 * MS, Name.PARTITION_STATE, 1, leader=1, leader_epoch=0, controller_epoch=1, isr=(1, 2), **T0
        ),
        Event(time=7 * MS, name=Name.BECAME_LEADER, node=1, leader_epoch=0, offset=0, high_watermark=0, **T0),
        lab.event(
            8 * MS, Name.BECAME_FOLLOWER, 2, leader=1, leader_epoch=0, offset=0, high_watermark=0, **T0
        ),
    ]
    for index in range(8):
        at = (100 + 10 * index) * MS
        events.append(
            Event(time=at, name=Name.HIGH_WATERMARK, node=1, high_watermark=index, cause="leader", **T0)
        )
    detail = '{"fault":1,"target":"follower 1 of t-0","nodes":[2]}'
    return [
        *events,
        Event(time=9_000 * MS, name=Name.FAULT_BEGAN, node=2, cause="crash", detail=detail),
        Event(time=9_500 * MS, name=Name.FAULT_ENDED, node=2, cause="crash", detail=detail),
        Event(time=9_501 * MS, name=Name.BROKER_STARTED, node=2),
        lab.event(
            9_600 * MS,
            Name.TRUNCATED,
            2,
            offset=1,
            end_offset=2,
            high_watermark=1,
            leader_epoch=0,
            leader=1,
            cause="high_watermark",
            **T0,
        ),
        lab.event(
            9_700 * MS, Name.PARTITION_STATE, 2, leader=2, leader_epoch=1, controller_epoch=2, isr=(2,), **T0
        ),
        lab.event(
            9_701 * MS, Name.BECAME_LEADER, 2, leader_epoch=1, offset=1, high_watermark=1, isr=(2,), **T0
        ),
    ]


@pytest.fixture
def trace() -> Trace:
    operations = [_append(1, 200, 0), _append(2, 300, 1)]
    operations.append(
        lab.operation(
            *(3, Function.POLL, 12_000 * MS, 12_002 * MS),
            process=5,
            offset=0,
            end_offset=1,
            strong=True,
            records=lab.records(1000),
            **T0,
        )
    )
    return lab.trace(operations, trace_id=7, plan="{}", events=tuple(_events()))


@pytest.fixture
def finding(trace: Trace) -> Finding:
    elected = len(trace.events) - 1
    return Finding(
        anomaly="lost_write",
        check="log",
        expected="the read of op 3 to show v2000 at offset 1",
        seen="an end of 1 and no v2000",
        topic="t",
        partition=0,
        offset=1,
        operations=(2, 3),
        events=(elected,),
    )

"""Handmade traces for the storage tests."""

from collections.abc import Callable

import pytest

from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab


def _append(op_id: int, offset: int | None, *, time: int) -> Operation:
    return lab.operation(
        *(op_id, Function.APPEND, time, None if offset is None else time + 7),
        process=op_id % 3,
        outcome=Outcome.UNKNOWN if offset is None else Outcome.OK,
        **lab.T0,
        acks=-1,
        offset=offset,
        error="REQUEST_TIMED_OUT" if offset is None else None,
        records=lab.records(op_id * 1000, begin=-1 if offset is None else offset),
    )


def _make_trace(trace_id: int, *, appends: int = 3, seed: int | None = None) -> Trace:
    operations = [_append(op, op, time=op * 10) for op in range(appends)]
    operations.append(_append(appends, None, time=appends * 10))
    records = tuple(Record(**lab.T0, offset=op, value=op * 1000, leader_epoch=1) for op in range(appends))
    operations.append(
        lab.operation(
            *(appends + 1, Function.POLL, 1000, 1010),
            process=9,
            **lab.T0,
            offset=0,
            end_offset=appends,
            strong=True,
            records=records,
            positions=(Position(**lab.T0, offset=0, end_offset=appends, leader_epoch=1),),
        )
    )
    return lab.trace(
        operations,
        trace_id=trace_id,
        plan=f'{{"seed":{trace_id if seed is None else seed}}}',
        seed=trace_id if seed is None else seed,
        claims=Claims(
            loss=(LossRange(**lab.T0, start=7, end=9, reason="disk of broker 2 lost"),),
            reasons=("power loss of an ISR member",),
        ),
        events=(
            Event(time=0, name=Name.PHASE, cause="safety"),
            lab.event(5, Name.BECAME_LEADER, 1, leader_epoch=1, offset=0, isr=(1, 2), **lab.T0),
            lab.event(11, Name.APPENDED, 1, offset=0, values=(0, 1000), cause="leader", **lab.T0),
            Event(time=1000, name=Name.PHASE, cause="end"),
        ),
    )


@pytest.fixture(scope="session")
def make_trace() -> Callable[..., Trace]:
    """make_trace(trace_id, *, appends=3, seed=trace_id): a small legal trace with every kind of column
    filled."""
    return _make_trace

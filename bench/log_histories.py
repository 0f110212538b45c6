"""Legal histories of one partition by the million, made with NumPy: half appends, half strong reads of a few
records near the end.

Operation k takes effect at moment 10 k. Clients take turns, so each has one operation in flight at a time,
and the more clients, the more operations overlap. They are numbered as they begin. Some appends are unknown
though they were written; reads show most of them.
"""

import numpy as np

from fencepost.checkers.operation_columns import (
    FUNCTIONS,
    NEVER,
    NONE,
    OUTCOMES,
    Array,
    OperationColumns,
    PositionColumns,
    RecordColumns,
)
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Claims, Trace


def history(
    operations: int, clients: int, *, records: int = 5, unknown: float = 0.02, shuffled_values: bool = False
) -> OperationColumns:
    """`operations` operations of `clients` clients. shuffled_values: value ids in no order, as in a foreign
    history."""
    random = np.random.default_rng(1)
    moment = 10 * np.arange(operations, dtype=np.int64)
    appending = random.random(operations) < 0.5
    offset = np.cumsum(appending) - appending  # appends before this operation
    slack = 4 * clients
    invoke = moment - random.integers(0, slack + 1, operations)
    completion = moment + random.integers(0, slack + 1, operations)
    lost_reply = appending & (random.random(operations) < unknown)
    completion[lost_reply] = NEVER
    order = np.argsort(invoke, kind="stable")
    op_id = np.empty(operations, np.int64)
    op_id[order] = np.arange(operations)
    values = (op_id * 1000)[appending]
    if shuffled_values:
        values = random.permutation(values)
    position = np.where(appending, 0, np.maximum(0, offset - records - random.integers(0, 50, operations)))
    count = np.where(appending, 1, np.minimum(records, offset - position))
    start = np.zeros(operations + 1, np.int64)
    np.cumsum(count, out=start[1:])
    at = np.repeat(np.where(appending, offset, position) - start[:-1], count) + np.arange(start[-1])
    ok, lost = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.UNKNOWN)
    outcome = np.where(lost_reply, lost, ok).astype(np.int8)
    told = np.repeat(appending, count)
    none = np.full(operations, NONE, np.int64)
    columns = OperationColumns(
        traces=(Trace(trace_id=1, plan="", seed=1, software_version="bench", claims=Claims(dense=True)),),
        topics=("t",),
        trace=np.zeros(operations, np.int64),
        op_id=op_id,
        process=np.arange(operations, dtype=np.int64) % clients,
        session=np.zeros(operations, np.int64),
        clock_id=np.zeros(operations, np.int64),
        function=np.where(appending, FUNCTIONS.index(Function.APPEND), FUNCTIONS.index(Function.POLL)).astype(
            np.int8
        ),
        outcome=outcome,
        invoke_time=invoke,
        completion_time=completion,
        topic=np.zeros(operations, np.int64),
        partition=np.zeros(operations, np.int64),
        acks=none,
        offset=np.where(appending, np.where(lost_reply, NONE, offset), position),
        end_offset=np.where(appending, NONE, offset),
        leader_epoch=none,
        strong=~appending,
        records=RecordColumns(
            start=start,
            topic=np.zeros(len(at), np.int64),
            partition=np.zeros(len(at), np.int64),
            offset=np.where(told, NONE, at),
            value=values[at],
            leader_epoch=np.zeros(len(at), np.int64),
        ),
        positions=PositionColumns(
            start=np.zeros(operations + 1, np.int64), **dict.fromkeys(_POSITION, np.empty(0, np.int64))
        ),
    )
    return in_order(columns, order)


_POSITION = ("topic", "partition", "offset", "end_offset", "leader_epoch")


def in_order(columns: OperationColumns, order: Array) -> OperationColumns:
    """The operations in another order (their records with them)."""
    records = columns.records
    count = np.diff(records.start)[order]
    start = np.zeros(len(order) + 1, np.int64)
    np.cumsum(count, out=start[1:])
    flat = np.repeat(records.start[:-1][order] - start[:-1], count) + np.arange(start[-1])
    moved = {
        name: getattr(columns, name)[order]
        for name in (
            "trace",
            "op_id",
            "process",
            "session",
            "clock_id",
            "function",
            "outcome",
            "invoke_time",
            "completion_time",
            "topic",
            "partition",
            "acks",
            "offset",
            "end_offset",
            "leader_epoch",
            "strong",
        )
    }
    return OperationColumns(
        traces=columns.traces,
        topics=columns.topics,
        positions=columns.positions,
        records=RecordColumns(
            start=start,
            **{
                name: getattr(records, name)[flat]
                for name in ("topic", "partition", "offset", "value", "leader_epoch")
            },
        ),
        **moved,
    )

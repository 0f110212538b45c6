"""Builders of small histories: sends, polls, assignments and transactions of consumers and producers on the
topic t."""

from typing import Any

from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


def op(op_id: int, function: Function, process: int, times: tuple[int, int | None], **more: Any) -> Operation:
    """An operation, ok unless told otherwise."""
    return lab.operation(op_id, function, *times, process=process, **more)


def send(
    op_id: int, values: Any, offset: int | None, *, process: int = 9, at: Any = None, **more: Any
) -> Operation:
    """An append to partition 0 (or `partition`) at its own moment; ok with acks=all if it is told an offset,
    else unknown."""
    values = values if isinstance(values, list) else [values]
    partition = more.pop("partition", 0)
    more.setdefault("outcome", OK if offset is not None else UNKNOWN)
    more.setdefault("acks", -1)
    return op(
        op_id,
        Function.APPEND,
        process,
        at or (10 * op_id, 10 * op_id + 5),
        topic="t",
        partition=partition,
        offset=offset,
        records=lab.records(*values, begin=-1, partition=partition),
        **more,
    )


def poll(op_id: int, records: Any, *, process: int = 1, at: Any = None, **more: Any) -> Operation:
    """A poll at its own moment; records are (offset, value) of partition 0, or (partition, offset, value)."""
    rows = [row if len(row) == 3 else (0, *row) for row in records]
    return op(
        op_id,
        Function.POLL,
        process,
        at or (10 * op_id, 10 * op_id + 5),
        records=tuple(Record(topic="t", partition=p, offset=o, value=v) for p, o, v in rows),
        **more,
    )


def moved(
    op_id: int, function: Function, *partitions: int, process: int = 1, at: Any = None, **more: Any
) -> Operation:
    """An assign, subscribe or join."""
    positions = tuple(Position(topic="t", partition=p, offset=-1) for p in partitions)
    return op(op_id, function, process, at or (10 * op_id, 10 * op_id + 5), positions=positions, **more)


def assign(op_id: int, *partitions: int, **more: Any) -> Operation:
    """An assign."""
    return moved(op_id, Function.ASSIGN, *partitions, **more)


def subscribe(op_id: int, *partitions: int, **more: Any) -> Operation:
    """A subscribe."""
    return moved(op_id, Function.SUBSCRIBE, *partitions, **more)


def txn(op_id: int, outcome: Outcome, *parts: Operation, process: int = 1) -> tuple[Operation, ...]:
    """A transaction around parts; all last as long as it does."""
    times = (10 * op_id, 10 * op_id + 5)
    head = op(op_id, Function.TXN, process, times, outcome=outcome)
    from attrs import evolve

    return (
        head,
        *(evolve(part, process=process, invoke_time=times[0], completion_time=times[1]) for part in parts),
    )


def trace(
    *operations: Any,
    trace_id: int = 1,
    unique: bool = True,
    loss: tuple[int, int] | None = None,
    **claims: Any,
) -> Trace:
    """A trace of these operations (tuples of them are spread) with these claims."""
    flat = [o for item in operations for o in (item if isinstance(item, tuple) else (item,))]
    if loss:
        claims["loss"] = (LossRange(topic="t", partition=0, start=loss[0], end=loss[1], reason="a test"),)
    return lab.trace(
        flat,
        trace_id=trace_id,
        unique_values=unique,
        concurrent_processes=any(o.function in (Function.TXN, Function.JOIN) for o in flat),
        claims=Claims(**claims),
    )

"""Operations and traces of tests: what most of them say alike is said here."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from attrs import evolve

from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.sealing import Sizes, seal
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace


def operation(op_id: int, function: Function, begin: int, end: int | None, **columns: Any) -> Operation:
    """An operation that succeeded, of a process of its own, unless its columns say otherwise; times in ns."""
    said = {"process": op_id, "outcome": Outcome.OK} | columns
    return Operation(op_id=op_id, function=function, invoke_time=begin, completion_time=end, **said)


def trace(operations: Iterable[Operation] = (), *, trace_id: int = 0, **columns: Any) -> Trace:
    """A trace of these operations, without a plan unless its columns have one."""
    said = {"plan": "", "seed": trace_id, "software_version": "test"} | columns
    return Trace(trace_id=trace_id, operations=tuple(operations), **said)


def event(time: int, name: Name, node: int = -1, **columns: Any) -> Event:
    """An event of a node at a time in ns."""
    return Event(time=time, name=name, node=node, **columns)


T0 = {"topic": "t", "partition": 0}
"""The partition of most tests."""


def records(*values: int, begin: int = 0, topic: str = "t", partition: int = 0) -> tuple[Record, ...]:
    """Records of these values at consecutive offsets. begin: the offset of the first; -1: none is known."""
    return tuple(
        Record(topic=topic, partition=partition, offset=-1 if begin < 0 else begin + number, value=value)
        for number, value in enumerate(values)
    )


def pair(history: Callable[[Callable[[Any, Any], Any]], Any]) -> tuple[Any, Any]:
    """A history that convicts, and the nearest legal one. It is written once; `either(wrong, right)` stands
    where the two differ."""
    return history(lambda wrong, right: wrong), history(lambda wrong, right: right)


def case(named: str, *histories: Any) -> tuple[Any, ...]:
    """A row of a table of anomalies. named: its names, then the ids of the operations that prove it;
    histories: one that convicts, and the nearest legal one, or what `pair` makes both of."""
    words = named.split()
    names = [word for word in words if not word.isdecimal()]
    both = histories if len(histories) > 1 else pair(*histories)
    return (*names, tuple(map(int, words[len(names) :])), *both)


def judged_from_columns(name: str, histories: Iterable[Trace]) -> dict[int, Any]:
    """What a check says of the columns of many traces but Ok: the same as of one trace at a time."""
    from fencepost.checkers import judges
    from fencepost.traces.canonical_rows import rows_of
    from fencepost.traces.tables import tables_of

    judge = judges.CHECKS[name]
    traces = [evolve(history, trace_id=number) for number, history in enumerate(histories)]
    table = tables_of([rows_of(trace) for trace in traces]).operations
    columns = sorted(set(judge.operation_columns), key=table.column_names.index)
    found = judge.judge_table(table.select(columns), [evolve(trace, operations=()) for trace in traces])
    alone = {trace.trace_id: judge.judge(trace) for trace in traces}
    assert found == {trace_id: verdict for trace_id, verdict in alone.items() if verdict.decision != "ok"}
    return dict(found)


def stored(
    where: Path | TraceStore, traces: Iterable[Trace], *, sealed: bool = True, sizes: Sizes | None = None
) -> TraceStore:
    """Traces in a store, made where there is a path only; sealed into parts, or left in a journal."""
    store = where if isinstance(where, TraceStore) else TraceStore.create(where)
    with store.writer() as writer:
        for one in traces:
            writer.append(one)
    if sealed:
        seal(store, sizes=sizes)
    return store

"""Builders of small histories of the group g on partition t-0."""

from typing import Any

from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


def op(
    op_id: int, function: Function, member: str, generation: int | None, at: Any = None, **more: Any
) -> Operation:
    """An operation of a member at its own moment, ok unless told otherwise; the process is the member's
    number."""
    begin, end = at or (10 * op_id, 10 * op_id + 5)
    more.setdefault("process", int(member[1:] or 0) if member else 0)
    of = {"group": "g", "member": member, "generation": generation}
    return lab.operation(op_id, function, begin, end, **of, **more)


def join(op_id: int, member: str, generation: int, *partitions: int, **more: Any) -> Operation:
    """A join; partitions of t, begun where nobody says."""
    positions = tuple(Position(topic="t", partition=p, offset=-1) for p in partitions)
    return op(op_id, Function.JOIN, member, generation, positions=positions, **more)


def commit(op_id: int, member: str, generation: int | None, offset: int, **more: Any) -> Operation:
    """A commit of t-0."""
    return op(op_id, Function.COMMIT, member, generation, topic="t", partition=0, offset=offset, **more)


def fetch(op_id: int, offset: int | None, **more: Any) -> Operation:
    """What was read back of t-0."""
    return op(op_id, Function.FETCH_COMMITTED, "", None, topic="t", partition=0, offset=offset, **more)


def got(
    op_id: int, member: str, generation: int | None, *offsets: int, partition: int = 0, **more: Any
) -> Operation:
    """A poll of a member: offsets of t, each with its own value."""
    records = tuple(Record(topic="t", partition=partition, offset=o, value=100 + o) for o in offsets)
    return op(op_id, Function.POLL, member, generation, records=records, **more)


def append(op_id: int, offset: int, **more: Any) -> Operation:
    """An acknowledged append of one record to t-0."""
    return lab.operation(
        *(op_id, Function.APPEND, 0, 1),
        process=99,
        acks=-1,
        **lab.T0,
        offset=offset,
        records=lab.records(100 + offset, begin=offset),
        **more,
    )


def crash(op_id: int, member: str) -> Operation:
    """The member's client was torn down."""
    return lab.operation(
        op_id, Function.CRASH, 10 * op_id, 10 * op_id + 1, process=int(member[1:]), outcome=UNKNOWN
    )


def trace(
    *operations: Operation, trace_id: int = 1, loss: tuple[int, int] | None = None, **claims: Any
) -> Trace:
    """A trace of these operations with these claims."""
    if loss:
        claims["loss"] = (LossRange(topic="t", partition=0, start=loss[0], end=loss[1], reason="a test"),)
    return lab.trace(operations, trace_id=trace_id, claims=Claims(**claims))


MAKERS = {"join": join, "got": got, "commit": commit, "fetch": fetch, "crash": crash}


def told(words: str) -> list[Operation]:
    """Operations in words, numbered from 1: `function [member generation] numbers [column=value]`, with `; `
    between them. `7:` before one gives it that number, and `-` stands for none."""
    made, number = [], 0
    for one in words.split("; "):
        given, colon, rest = one.rpartition(":")
        number = int(given) if colon else number + 1
        function, *values = rest.split()
        columns = dict(value.split("=") for value in values if "=" in value)
        more: dict[str, Any] = {name: int(value) for name, value in columns.items() if value.isdigit()}
        if "at" in columns:
            more["at"] = tuple(map(int, columns["at"].split("-")))
        if "outcome" in columns:
            more["outcome"] = Outcome(columns["outcome"])
        plain = [value for value in values if "=" not in value]
        member = [] if function == "fetch" else [plain.pop(0).removeprefix("-")]
        numbers = [None if value == "-" else int(value) for value in plain]
        made.append(MAKERS[function](number, *member, *numbers, **more))
    return made

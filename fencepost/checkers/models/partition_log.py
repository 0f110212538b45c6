"""A partition log with offsets and an end.

checkers/log decides this model in linear time, without a search. This model is for small histories, and for
comparing the two.
"""

from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import IMPOSSIBLE, UNHEARD, VALUES, Call, Starting, integer, value_of
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation, Outcome

OTHER_ENDS = ("earliest", "by_time")
"""Arguments of a list_offsets that asks for no end."""


@define(unsafe_hash=True)
class Log(Starting):
    """append(values) returns the base offset, poll(from) returns records, list_offsets returns the end.

    A strong poll returns the end, too; a list_offsets counts only if it is strong. The state is the tuple of
    values; an offset is an index into it. As calls, append has the values as argument and the base offset as
    result. poll has the start offset as argument, and as result (end or None, (offset, value)...).
    list_offsets has the end as result.
    """

    name: ClassVar[str] = "log"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"append", "poll", "list_offsets"})
    reads: ClassVar[frozenset[str]] = frozenset({"poll", "list_offsets"})

    def init(self) -> Any:
        return tuple(self.initial or ())

    def step(self, state: Any, call: Call) -> Any:
        """The log after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "append":
            fits = call.result is UNHEARD or call.result == len(state)
            return state + call.argument if fits else IMPOSSIBLE
        if call.function == "list_offsets":
            return state if call.result == len(state) else IMPOSSIBLE
        end, *records = call.result
        if end is not None and end != len(state):
            return IMPOSSIBLE
        there = all(0 <= offset < len(state) and state[offset] == value for offset, value in records)
        return state if there and _contiguous(call.argument, records) else IMPOSSIBLE

    def observes(self, call: Call) -> bool:
        return call.function != "append"

    def resets(self, call: Call) -> bool:
        return False

    def reaches(self, state: Any, call: Call) -> bool:
        """Whether appends can extend `state` to a log that agrees with the observer `call`."""
        if call.function == "list_offsets":
            return bool(len(state) <= call.result)
        end, *records = call.result
        if end is not None and len(state) > end:
            return False
        return all(offset >= len(state) or state[offset] == value for offset, value in records)

    def partition(self, call: Call) -> str | None:
        return call.key

    def call(self, operation: Operation) -> Call | None:
        unheard = operation.outcome is Outcome.UNKNOWN
        if unheard and operation.function in self.reads:
            return None
        if operation.argument in OTHER_ENDS and operation.function == "list_offsets":
            return None
        if operation.positions or len({(record.topic, record.partition) for record in operation.records}) > 1:
            raise TraceError(
                expected="operations on one partition for the model log",
                seen="several",
                where=f"operation {operation.op_id}",
            )
        where = f"{operation.topic or ''}-{operation.partition or 0}"
        argument: Any = None
        result: Any = UNHEARD
        if operation.function == "append":
            argument = tuple(record.value for record in operation.records) or (
                value_of(operation, "argument"),
            )
            answer = operation.offset if operation.offset is not None else value_of(operation, "result")
            if not unheard and answer is not None:
                result = integer(answer, "base offset", operation)
        elif operation.function == "poll":
            argument = operation.offset
            end = operation.end_offset if operation.strong else None
            result = (end, *((record.offset, record.value) for record in operation.records))
        else:
            if not operation.strong:
                return None
            result = integer(
                operation.end_offset if operation.offset is None else operation.offset, "end", operation
            )
        return Call(function=operation.function.value, key=where, argument=argument, result=result)


def _contiguous(start: int | None, records: list[tuple[int, Any]]) -> bool:
    """Whether the offsets are contiguous, and begin at `start` if it is known."""
    if not records:
        return True
    first = records[0][0] if start is None else start
    return [offset for offset, _ in records] == list(range(first, first + len(records)))

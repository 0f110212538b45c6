"""Containers: a set, a first-in-first-out queue, a counter."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from attrs import define, evolve, field

from fencepost.checkers.models.base import (
    IMPOSSIBLE,
    INTEGER,
    UNHEARD,
    VALUES,
    Call,
    Starting,
    check_initial,
    frozen_value,
    integer,
)
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation


@define(unsafe_hash=True)
class Set(Starting):
    """add(e), remove(e), contains(e), and read, which returns all elements.

    add and remove may return true or false: whether they changed anything. In a history without read, each
    element is an independent part.
    """

    name: ClassVar[str] = "set"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"add", "remove", "contains", "read"})
    reads: ClassVar[frozenset[str]] = frozenset({"contains", "read"})

    def init(self) -> Any:
        return frozenset(self.initial or ())

    def step(self, state: Any, call: Call) -> Any:
        """The set after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "read":
            return state if call.result == state else IMPOSSIBLE
        holds = call.argument in state
        if call.function == "contains":
            return state if call.result == holds else IMPOSSIBLE
        adds = call.function == "add"
        if call.result in (True, False) and call.result != (holds != adds):
            return IMPOSSIBLE
        return state | {call.argument} if adds else state - {call.argument}

    def resets(self, call: Call) -> bool:
        return call.function == "remove"

    def reaches(self, state: Any, call: Call) -> bool:
        """Whether adding elements to `state` can make the result of the read or contains `call` correct."""
        if call.function == "read":
            return isinstance(call.result, frozenset) and state <= call.result
        return bool(call.result) or call.argument not in state

    def partition(self, call: Call) -> str | None:
        if call.function == "read":
            return None
        return f"{call.key or ''} {call.argument!r}".strip()

    def call(self, operation: Operation) -> Call | None:
        call = super().call(operation)
        if call is None:
            return None
        where = f"operation {operation.op_id}"
        if call.function == "read":
            if not isinstance(call.result, tuple):
                raise TraceError(expected="a list as result of read", seen=str(operation.result), where=where)
            elements = frozenset(call.result)
            # a list that names an element twice is not a set: keep it as it is, so that it equals no state
            return evolve(call, result=elements) if len(elements) == len(call.result) else call
        if call.function == "contains" and not isinstance(call.result, bool):
            raise TraceError(
                expected="true or false as result of contains", seen=str(operation.result), where=where
            )
        if call.function != "contains" and not isinstance(call.result, bool):
            return evolve(call, result=None)  # no result is known: the effect follows from the state alone
        return call


@define(unsafe_hash=True)
class Queue(Starting):
    """enqueue(v) adds at the back, dequeue removes from the front. A dequeue with result null found the queue
    empty."""

    name: ClassVar[str] = "queue"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"enqueue", "dequeue"})
    effects: ClassVar[frozenset[str]] = frozenset({"enqueue"})

    def init(self) -> Any:
        return tuple(self.initial or ())

    def step(self, state: Any, call: Call) -> Any:
        """The queue after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "enqueue":
            return (*state, call.argument)
        if not state:
            return state if call.result is None else IMPOSSIBLE
        return state[1:] if call.result is UNHEARD or call.result == state[0] else IMPOSSIBLE

    def observes(self, call: Call) -> bool:
        return call.function == "dequeue" and call.result is None

    def lens(self, calls: Iterable[Call]) -> Callable[[Any], Any] | None:
        dequeued = [call.result for call in calls if call.function == "dequeue"]
        if UNHEARD in dequeued:
            return None

        def seen(state: Any) -> Any:
            """The queue up to the last value that some call dequeues. Values after it cannot be observed."""
            stuck = (index for index, value in enumerate(state) if value not in dequeued)
            return state[: next(stuck, len(state)) + 1]

        return seen

    def call(self, operation: Operation) -> Call | None:
        call = super().call(operation)
        if call is not None and call.function == "enqueue" and call.argument is None:
            raise TraceError(
                expected="a value other than null to enqueue",
                seen="null",
                where=f"operation {operation.op_id}",
            )
        return call


@define(unsafe_hash=True)
class Counter(Starting):
    """add(n) adds an integer, read returns the sum. The initial sum is `initial` (0)."""

    name: ClassVar[str] = "counter"
    starts = INTEGER
    functions: ClassVar[frozenset[str]] = frozenset({"add", "read"})
    reads: ClassVar[frozenset[str]] = frozenset({"read"})
    effects: ClassVar[frozenset[str]] = frozenset({"add"})

    initial: Any = field(default=0, converter=frozen_value, validator=check_initial, kw_only=True)

    def step(self, state: Any, call: Call) -> Any:
        """The sum after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "add":
            return state + call.argument
        return state if call.result == state else IMPOSSIBLE

    def resets(self, call: Call) -> bool:
        return bool(call.argument < 0)

    def reaches(self, state: Any, call: Call) -> bool:
        """Whether further adds can lead from `state` to the sum that `call` read."""
        return bool(state <= call.result)

    def call(self, operation: Operation) -> Call | None:
        call = super().call(operation)
        if call is not None:
            adds = call.function == "add"
            integer(
                call.argument if adds else call.result,
                "argument of add" if adds else "result of read",
                operation,
            )
        return call

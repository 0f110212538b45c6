"""Registers: a value with read, write and compare-and-set, and texts under keys."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, ClassVar, Final

from attrs import define, evolve, field

from fencepost.checkers.models.base import (
    IMPOSSIBLE,
    TEXT,
    UNHEARD,
    Call,
    Starting,
    check_initial,
    frozen_value,
)
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation, Outcome


@define(unsafe_hash=True)
class Register(Starting):
    """write(v) stores v; read returns the stored value. The initial value is `initial` (null)."""

    name: ClassVar[str] = "register"
    functions: ClassVar[frozenset[str]] = frozenset({"read", "write"})
    reads: ClassVar[frozenset[str]] = frozenset({"read"})
    effects: ClassVar[frozenset[str]] = frozenset({"write"})

    def step(self, state: Any, call: Call) -> Any:
        """The value after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "write":
            return call.argument
        return state if call.result == state else IMPOSSIBLE


@define(unsafe_hash=True)
class CasRegister(Register):
    """A register with cas([old new]), which answers true if the value was `old` and is now `new`, and false
    if it was not `old`."""

    name: ClassVar[str] = "cas-register"
    functions: ClassVar[frozenset[str]] = frozenset({"read", "write", "cas"})

    def step(self, state: Any, call: Call) -> Any:
        """The value after `call` in `state`, or IMPOSSIBLE."""
        if call.function != "cas":
            return super().step(state, call)
        old, new = call.argument
        if call.result is False:
            return state if state != old else IMPOSSIBLE
        return new if state == old else IMPOSSIBLE

    def observes(self, call: Call) -> bool:
        return super().observes(call) or (call.function == "cas" and call.result is False)

    def call(self, operation: Operation) -> Call | None:
        call = super().call(operation)
        if call is None or call.function != "cas":
            return call
        if not isinstance(call.argument, tuple) or len(call.argument) != 2:
            raise TraceError(
                expected="[old, new] as argument of cas",
                seen=str(operation.argument),
                where=f"operation {operation.op_id}",
            )
        if operation.outcome is Outcome.OK and call.result not in (False, True):
            if call.result not in (None, call.argument):
                raise TraceError(
                    expected="true or false as result of cas",
                    seen=str(operation.result),
                    where=f"operation {operation.op_id}",
                )
            call = evolve(call, result=True)
        return call


class _Text(Enum):
    UNSEEN = "unseen"


UNSEEN: Final = _Text.UNSEEN
"""Represents every text that is not a prefix of any result of a get. Until the next put, these texts cannot
be distinguished."""


@define(unsafe_hash=True)
class KeyValue(Starting):
    """Independent texts under keys: put(v) replaces the text, append(v) extends it, get returns it. A key
    without a put or append has the text `initial` ("")."""

    name: ClassVar[str] = "key-value"
    needs_key: ClassVar[bool] = True
    starts = TEXT
    functions: ClassVar[frozenset[str]] = frozenset({"get", "put", "append"})
    reads: ClassVar[frozenset[str]] = frozenset({"get"})
    effects: ClassVar[frozenset[str]] = frozenset({"put", "append"})

    initial: Any = field(default="", converter=frozen_value, validator=check_initial, kw_only=True)

    def step(self, state: Any, call: Call) -> Any:
        """The text after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "put":
            return call.argument
        if state is UNSEEN:
            return UNSEEN if call.function == "append" else IMPOSSIBLE
        if call.function == "append":
            return call.argument if state is None else state + call.argument
        return state if call.result == state else IMPOSSIBLE

    def resets(self, call: Call) -> bool:
        return call.function == "put"

    def reaches(self, state: Any, call: Call) -> bool:
        """Whether appends can extend `state` to the text that the get `call` returned."""
        return state is None or (
            state is not UNSEEN and call.result is not None and call.result.startswith(state)
        )

    def overwrites(self, call: Call) -> bool:
        return call.function == "put"

    def lens(self, calls: Iterable[Call]) -> Callable[[Any], Any] | None:
        texts = sorted({call.result for call in calls if isinstance(call.result, str)})

        def seen(state: Any) -> Any:
            if not isinstance(state, str):
                return state
            first = bisect_left(texts, state)
            return state if first < len(texts) and texts[first].startswith(state) else UNSEEN

        return seen

    def describe_state(self, state: Any) -> str:
        return "a text that no get shows" if state is UNSEEN else super().describe_state(state)

    def call(self, operation: Operation) -> Call | None:
        call = super().call(operation)
        if call is None:
            return None
        writes, answer = call.function in self.effects, call.result
        if call.key is None:
            expected, seen = "a key", "none"
        elif writes and not isinstance(call.argument, str):
            expected, seen = "a text as argument", str(operation.argument)
        elif answer is not None and answer is not UNHEARD and not isinstance(answer, str):
            expected, seen = "a text as result", str(operation.result)
        else:
            return call
        raise TraceError(
            expected=f"{expected} of {call.function}", seen=seen, where=f"operation {operation.op_id}"
        )

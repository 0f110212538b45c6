"""Locks: a mutex, and one whose acquisitions carry fencing tokens.

The client is the argument where there is one, the process otherwise.
"""

from typing import Any, ClassVar

from attrs import evolve, field, frozen

from fencepost.checkers.models.base import IMPOSSIBLE, UNHEARD, Call, Model, frozen_value, integer
from fencepost.traces.operations import Operation, Outcome


@frozen
class Mutex(Model):
    """acquire takes the free lock, release gives it back; only its holder can. The state is the holder, null when free."""

    name: ClassVar[str] = "mutex"
    functions: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})
    effects: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})

    def step(self, state: Any, call: Call) -> Any:
        if call.function == "acquire":
            return call.argument if state is None else IMPOSSIBLE
        return None if state == call.argument else IMPOSSIBLE

    def call(self, operation: Operation) -> Call | None:
        return _by_client(super().call(operation), operation)


@frozen
class FencedLock(Model):
    """A mutex whose acquire answers a token, an integer above all tokens before it (at first above `initial`, 0).

    The state is the holder and the highest token. An acquisition of which nothing was heard took some higher token; the lowest possible one
    stands for all, because it leaves the most room for those after it.
    """

    name: ClassVar[str] = "fenced-lock"
    functions: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})
    effects: ClassVar[frozenset[str]] = frozenset({"release"})

    initial: Any = field(default=0, converter=frozen_value)

    def init(self) -> Any:
        return (None, self.initial)

    def step(self, state: Any, call: Call) -> Any:
        holder, highest = state
        if call.function == "release":
            return (None, highest) if holder == call.argument else IMPOSSIBLE
        if holder is not None:
            return IMPOSSIBLE
        token = highest + 1 if call.result is UNHEARD else call.result
        return (call.argument, token) if token > highest else IMPOSSIBLE

    def call(self, operation: Operation) -> Call | None:
        call = _by_client(super().call(operation), operation)
        if call is not None and call.function == "acquire" and operation.outcome is Outcome.OK:
            integer(call.result, "token, the result of acquire", operation)
        return call


def _by_client(call: Call | None, operation: Operation) -> Call | None:
    if call is None or call.argument is not None:
        return call
    return evolve(call, argument=operation.process)

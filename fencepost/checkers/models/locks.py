"""Locks: a mutex, a mutex with fencing tokens, and a semaphore with several permits.

The client is the argument of a call, or the process if there is no argument.
"""

from typing import Any, ClassVar

from attrs import define, evolve, field

from fencepost.checkers.models.base import (
    IMPOSSIBLE,
    INTEGER,
    UNHEARD,
    Call,
    Model,
    Starting,
    check_initial,
    frozen_value,
    integer,
    shown,
)
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Operation, Outcome


@define(unsafe_hash=True)
class Mutex(Starting):
    """acquire takes the free lock, release gives it back; only the holder can release. The state is the
    holder, null if the lock is free."""

    name: ClassVar[str] = "mutex"
    functions: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})
    effects: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})

    def step(self, state: Any, call: Call) -> Any:
        """The holder after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "acquire":
            return call.argument if state is None else IMPOSSIBLE
        return None if state == call.argument else IMPOSSIBLE

    def call(self, operation: Operation) -> Call | None:
        return by_client(super().call(operation), operation)


@define(unsafe_hash=True)
class FencedLock(Starting):
    """A mutex with fencing tokens. Each acquire returns an integer larger than all tokens before it.

    The first token is larger than `initial` (0). The state is the holder and the highest token. An acquire
    with an unknown outcome took some higher token. The model assumes the lowest possible one, because it
    leaves the most room for later tokens.
    """

    name: ClassVar[str] = "fenced-lock"
    starts = INTEGER
    functions: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})
    effects: ClassVar[frozenset[str]] = frozenset({"release"})

    initial: Any = field(default=0, converter=frozen_value, validator=check_initial, kw_only=True)

    def init(self) -> Any:
        return (None, self.initial)

    def step(self, state: Any, call: Call) -> Any:
        """Holder and highest token after `call` in `state`, or IMPOSSIBLE."""
        holder, highest = state
        if call.function == "release":
            return (None, highest) if holder == call.argument else IMPOSSIBLE
        if holder is not None:
            return IMPOSSIBLE
        token = highest + 1 if call.result is UNHEARD else call.result
        return (call.argument, token) if token > highest else IMPOSSIBLE

    def call(self, operation: Operation) -> Call | None:
        call = by_client(super().call(operation), operation)
        if call is not None and call.function == "acquire" and operation.outcome is Outcome.OK:
            integer(call.result, "token, the result of acquire", operation)
        return call


@define(unsafe_hash=True)
class Semaphore(Model):
    """acquire takes one of `permits` permits, release returns one; only a client with a permit can release.

    permits: the number of permits. The state is the number of permits of each holder.
    """

    name: ClassVar[str] = "semaphore"
    functions: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})
    effects: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})

    permits: int = field()

    @permits.validator
    def _check(self, _: Any, permits: Any) -> None:
        if not isinstance(permits, int) or isinstance(permits, bool) or permits < 1:
            raise FencepostError(
                expected="a number of permits from 1", seen=f"{permits!r:.80}", where="the model semaphore"
            )

    def init(self) -> Any:
        """No client has a permit."""
        return frozenset()

    def step(self, state: Any, call: Call) -> Any:
        """The permits of each client after `call` in `state`, or IMPOSSIBLE."""
        held = dict(state).get(call.argument, 0)
        if call.function == "release":
            after = held - 1
            if not held:
                return IMPOSSIBLE
        else:
            after = held + 1
            if sum(count for _, count in state) >= self.permits:
                return IMPOSSIBLE
        return (state - {(call.argument, held)}) | ({(call.argument, after)} if after else set())

    def describe_state(self, state: Any) -> str:
        """The holders."""
        return shown([holder for holder, count in sorted(state, key=str) for _ in range(count)])

    def call(self, operation: Operation) -> Call | None:
        """The call of a client. The client is the argument, or the process if there is no argument."""
        return by_client(super().call(operation), operation)


def by_client(call: Call | None, operation: Operation) -> Call | None:
    """The `call` with its client as argument: the argument of `operation`, or its process."""
    if call is None or call.argument is not None:
        return call
    return evolve(call, argument=operation.process)

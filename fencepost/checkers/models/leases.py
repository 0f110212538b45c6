"""A lease: a lock that its holder loses after a while.

Owns the model, the only one of ours that looks at times. Must not know how a history is put in order.

Two clients must not hold a lease at the same time. The holder counts from when it was granted, at some moment
between invocation and completion of the acquire. So another client gets it when it was released, or when its
duration has passed since the last acquire or renew. In an order of calls each one happens as early as it can:
that ends every lease as early as possible, and forbids nothing that some choice of moments allows.
"""

from math import inf
from typing import Any, ClassVar

from attrs import define, evolve, field

from fencepost.checkers.models.base import IMPOSSIBLE, Call, Model
from fencepost.checkers.models.locks import by_client
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Operation, Outcome

LONG_AGO = -(1 << 62)
"""A moment before every invocation."""
NS_IN_MS = 1_000_000


@define(unsafe_hash=True)
class Lease(Model):
    """acquire takes a lease that is free or has run out, renew by its holder begins it anew, release gives it
    back.

    duration_ms: how long it lasts. Its holder may acquire it again, which renews it. A holder that comes late
    may renew what nobody has taken meanwhile; a release by anybody else changes nothing. The state: the
    holder (null: nobody), when the lease runs out, the moment of the last call.
    """

    name: ClassVar[str] = "lease"
    functions: ClassVar[frozenset[str]] = frozenset({"acquire", "renew", "release"})
    effects: ClassVar[frozenset[str]] = frozenset({"acquire", "renew", "release"})
    timed: ClassVar[bool] = True

    duration_ms: float = field()

    @duration_ms.validator
    def _check(self, _: Any, duration_ms: Any) -> None:
        if (
            not isinstance(duration_ms, int | float)
            or isinstance(duration_ms, bool)
            or not 0 < duration_ms < inf
        ):
            raise FencepostError(
                expected="a duration above 0 as duration_ms",
                seen=f"{duration_ms!r:.80}",
                where="the model lease",
            )

    def init(self) -> Any:
        """Nobody holds it."""
        return (None, LONG_AGO, LONG_AGO)

    def step(self, state: Any, call: Call) -> Any:
        """The state when the call happened as early as it can."""
        holder, end, now = state
        client, invoked, completed = call.argument
        moment = max(now, invoked)
        if call.function == "acquire" and holder not in (None, client):
            moment = max(moment, end)
        if completed is not None and moment > completed:
            return IMPOSSIBLE
        if call.function == "release":
            return (None, LONG_AGO, moment) if holder == client else (holder, end, moment)
        if call.function == "renew" and holder != client:
            return IMPOSSIBLE
        return (client, moment + round(self.duration_ms * NS_IN_MS), moment)

    def describe(self, call: Call) -> str:
        """Without the times, which the drawing shows."""
        return super().describe(evolve(call, argument=call.argument[0]))

    def describe_state(self, state: Any) -> str:
        """Who holds it."""
        return "nobody holds it" if state[0] is None else f"held by {state[0]}"

    def call(self, operation: Operation) -> Call | None:
        """The call of a client (the argument, or else the process), with its times."""
        call = by_client(super().call(operation), operation)
        completed = operation.completion_time if operation.outcome is Outcome.OK else None
        return (
            None if call is None else evolve(call, argument=(call.argument, operation.invoke_time, completed))
        )

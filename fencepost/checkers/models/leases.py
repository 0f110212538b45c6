"""A lease: a lock that expires after a fixed time.

Owns the model. It is the only built-in model that uses times. Must not know how a history is put in order.

Two clients must not hold a lease at the same time. The holder's time starts when the lease is granted: at
some moment between invocation and completion of the acquire. Another client can get the lease after a
release, or after the duration has passed since the last acquire or renew. For a given order of calls, each
call happens as early as possible. Then every lease ends as early as possible, so this choice of moments
allows everything that another choice allows.
"""

from math import inf
from typing import Any, ClassVar

from attrs import define, evolve, field

from fencepost.checkers.models.base import IMPOSSIBLE, Call, Model
from fencepost.checkers.models.locks import by_client
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Operation, Outcome

LONG_AGO = -(1 << 62)
"""A moment before every invocation, in nanoseconds."""
NS_IN_MS = 1_000_000


@define(unsafe_hash=True)
class Lease(Model):
    """acquire takes a lease that is free or expired, renew by the holder restarts it, release gives it back.

    duration_ms: how long a lease lasts. The holder may acquire the lease again, which renews it. A late
    holder may renew an expired lease if no other client has taken it. A release by another client changes
    nothing. The state has three values: the holder (null if the lease is free), the expiry time, and the
    moment of the last call.
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
        """No client holds the lease."""
        return (None, LONG_AGO, LONG_AGO)

    def step(self, state: Any, call: Call) -> Any:
        """The state after `call`, which happens as early as it can, or IMPOSSIBLE in `state`."""
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
        """The call without its times, which the drawing shows."""
        return super().describe(evolve(call, argument=call.argument[0]))

    def describe_state(self, state: Any) -> str:
        """The holder of the lease."""
        return "free" if state[0] is None else f"held by {state[0]}"

    def call(self, operation: Operation) -> Call | None:
        """The call of a client, with its times. The client is the argument, or the process if there is no
        argument."""
        call = by_client(super().call(operation), operation)
        completed = operation.completion_time if operation.outcome is Outcome.OK else None
        return (
            None if call is None else evolve(call, argument=(call.argument, operation.invoke_time, completed))
        )

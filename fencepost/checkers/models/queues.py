"""Queues that keep no order: one that delivers each value once, and one that may deliver it again.

Owns: which contents of a queue are possible. Must not know queues with an order (containers).

A dequeue of unknown outcome may have taken any value. So a state is the set of all contents that are
possible; a known answer leaves those that agree with it. Contents are counts by value, because a queue
without an order cannot tell equal values apart.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import IMPOSSIBLE, UNHEARD, VALUES, Call, Starting, shown
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation

Contents = frozenset[tuple[Any, Any]]
"""(value, what is known of it) for each value that is there."""
MOST_SHOWN = 3
"""Possible contents that are spelled out in a message."""


@define(unsafe_hash=True)
class UnorderedQueue(Starting):
    """enqueue(v) puts a value in, dequeue takes any one out; a dequeue that answers null found nothing. Also
    called a bag or a pool."""

    name: ClassVar[str] = "unordered-queue"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"enqueue", "dequeue"})
    effects: ClassVar[frozenset[str]] = frozenset({"enqueue"})

    def init(self) -> Any:
        """One content: the values that it starts from."""
        state = frozenset({frozenset[Any]()})
        for value in self.initial or ():
            state = self.step(state, Call(function="enqueue", argument=value))
        return state

    def step(self, state: Any, call: Call) -> Any:
        """The contents that are possible after the call."""
        change = self._enqueued if call.function == "enqueue" else self._dequeued
        return frozenset(after for contents in state for after in change(contents, call)) or IMPOSSIBLE

    def _enqueued(self, contents: Contents, call: Call) -> Iterable[Contents]:
        count = dict(contents).get(call.argument, 0)
        yield _with(contents, call.argument, count + 1)

    def _dequeued(self, contents: Contents, call: Call) -> Iterable[Contents]:
        if call.result is None:
            return () if contents else (contents,)
        return (
            _with(contents, value, count - 1)
            for value, count in contents
            if call.result is UNHEARD or value == call.result
        )

    def describe_state(self, state: Any) -> str:
        """The values, of each content that is possible."""
        each = [self._listed(contents) for contents in state]
        more = f" or {len(each) - MOST_SHOWN} others" if len(each) > MOST_SHOWN else ""
        return " or ".join(sorted(each)[:MOST_SHOWN]) + more

    def _listed(self, contents: Contents) -> str:
        return shown([value for value, count in sorted(contents, key=str) for _ in range(count)])

    def call(self, operation: Operation) -> Call | None:
        """As every model; a null cannot be enqueued. Raises TraceError."""
        call = super().call(operation)
        if call is not None and call.function != "dequeue" and call.argument is None:
            raise TraceError(
                expected=f"a value other than null to {call.function}",
                seen="null",
                where=f"operation {operation.op_id}",
            )
        return call


@define(unsafe_hash=True)
class AtLeastOnceQueue(UnorderedQueue):
    """enqueue(v) puts a value in; dequeue answers any value that is there, which stays until remove(v)
    acknowledges it.

    So a value may be delivered again. A dequeue that answers null found nothing that was never delivered:
    what was delivered and not yet acknowledged may be hidden for a while. After remove(v) the value is not
    delivered again. Of values that are there several times nobody knows which one remove(v) means: they stay.
    Contents: value -> (copies, how many of them were never delivered).
    """

    name: ClassVar[str] = "at-least-once-queue"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"enqueue", "dequeue", "remove"})
    effects: ClassVar[frozenset[str]] = frozenset({"enqueue", "remove"})

    def step(self, state: Any, call: Call) -> Any:
        """The contents that are possible after the call."""
        if call.function != "remove":
            return super().step(state, call)
        return frozenset(after for contents in state for after in self._removed(contents, call)) or IMPOSSIBLE

    def _enqueued(self, contents: Contents, call: Call) -> Iterable[Contents]:
        copies, waiting = dict(contents).get(call.argument, (0, 0))
        yield _with(contents, call.argument, (copies + 1, waiting + 1))

    def _dequeued(self, contents: Contents, call: Call) -> Iterable[Contents]:
        if call.result is None:
            return () if any(waiting for _, (_, waiting) in contents) else (contents,)
        taken = [
            _with(contents, value, (copies, max(0, waiting - 1)))
            for value, (copies, waiting) in contents
            if call.result is UNHEARD or value == call.result
        ]
        return [*taken, contents] if call.result is UNHEARD else taken

    def _removed(self, contents: Contents, call: Call) -> Iterable[Contents]:
        copies, waiting = dict(contents).get(call.argument, (0, 0))
        if copies and copies == waiting:
            return ()  # nobody can acknowledge what was never delivered
        return (_with(contents, call.argument, 0) if copies == 1 else contents,)

    def _listed(self, contents: Contents) -> str:
        return shown([value for value, (copies, _) in sorted(contents, key=str) for _ in range(copies)])


def _with(contents: Contents, value: Any, known: Any) -> Contents:
    """The contents with something else known of one value; nothing (0): it is gone."""
    others = ((other, what) for other, what in contents if other != value)
    return frozenset((*others, *(((value, known),) if known else ())))

"""Unordered queues: one delivers each value once, one may redeliver values.

Owns the set of possible contents of such a queue. Ordered queues are in `containers`.

A dequeue with an unknown outcome may have taken any value. Therefore a state is the set of all possible
contents. A known result keeps the contents that agree with it. Contents are counts by value, because an
unordered queue cannot distinguish equal values.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import IMPOSSIBLE, UNHEARD, VALUES, Call, Starting, shown
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation

Contents = frozenset[tuple[Any, Any]]
"""One (value, what is known about it) for each value in the queue."""
MOST_SHOWN = 3
"""A message shows this many possible contents: more do not fit on a line."""


@define(unsafe_hash=True)
class UnorderedQueue(Starting):
    """enqueue(v) adds a value, dequeue removes any value; a dequeue with result null found the queue empty.
    Also called a bag or a pool."""

    name: ClassVar[str] = "unordered-queue"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"enqueue", "dequeue"})
    effects: ClassVar[frozenset[str]] = frozenset({"enqueue"})

    def init(self) -> Any:
        """One possible content: the initial values."""
        state = frozenset({frozenset[Any]()})
        for value in self.initial or ():
            state = self.step(state, Call(function="enqueue", argument=value))
        return state

    def step(self, state: Any, call: Call) -> Any:
        """The possible contents after `call` in `state`, or IMPOSSIBLE."""
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
        """The values of each possible content."""
        each = [self._listed(contents) for contents in state]
        more = f" or {len(each) - MOST_SHOWN} others" if len(each) > MOST_SHOWN else ""
        return " or ".join(sorted(each)[:MOST_SHOWN]) + more

    def _listed(self, contents: Contents) -> str:
        return shown([value for value, count in sorted(contents, key=str) for _ in range(count)])

    def call(self, operation: Operation) -> Call | None:
        """As every model; null cannot be enqueued. Raises TraceError."""
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
    """enqueue(v) adds a value; dequeue returns any value, which stays until remove(v) acknowledges it.

    A value may be delivered several times before its remove(v), and never after it. A dequeue with result
    null found no value that was never delivered. Values that were delivered but not acknowledged may be
    invisible for a while. If a value is in the queue several times, remove(v) does not say which copy it
    means, so all copies stay. Contents: value -> (copies, number of copies that were never delivered).
    """

    name: ClassVar[str] = "at-least-once-queue"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"enqueue", "dequeue", "remove"})
    effects: ClassVar[frozenset[str]] = frozenset({"enqueue", "remove"})

    def step(self, state: Any, call: Call) -> Any:
        """The possible contents after `call` in `state`, or IMPOSSIBLE."""
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
            return ()  # a value that was never delivered cannot be acknowledged
        return (_with(contents, call.argument, 0) if copies == 1 else contents,)

    def _listed(self, contents: Contents) -> str:
        return shown([value for value, (copies, _) in sorted(contents, key=str) for _ in range(copies)])


def _with(contents: Contents, value: Any, known: Any) -> Contents:
    """The contents with another state of one value; 0 removes the value."""
    others = ((other, what) for other, what in contents if other != value)
    return frozenset((*others, *(((value, known),) if known else ())))

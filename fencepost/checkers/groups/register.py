"""The committed offset of one partition as a sequential model: a register with generations that fence
writers.

Owns two models for the general linearizability check. One is the plain register. In the other, a coordinator
may give up waiting for a write that the next coordinator reads from the log. Must not know histories.
"""

from typing import Any, ClassVar

from attrs import frozen

from fencepost.checkers.groups.history import NO_EPOCH, NO_GENERATION, NOTHING
from fencepost.checkers.models.base import IMPOSSIBLE, Call, Model
from fencepost.traces.operations import Function


@frozen
class CommittedOffset(Model):
    """State: (committed offset, highest generation). The argument of a commit is [generation, offset], that
    of a join its generation.

    A higher generation fences lower ones. A commit without a generation is not fenced.
    """

    name: ClassVar[str] = "committed-offset"
    functions: ClassVar[frozenset[str]] = frozenset(
        {Function.COMMIT, Function.JOIN, Function.FETCH_COMMITTED}
    )
    reads: ClassVar[frozenset[str]] = frozenset({Function.FETCH_COMMITTED})
    effects: ClassVar[frozenset[str]] = frozenset({Function.COMMIT, Function.JOIN})

    def init(self) -> Any:
        """Nothing is committed, and no generation is known."""
        return (NOTHING, NO_GENERATION)

    def step(self, state: Any, call: Call) -> Any:
        """The state after `call`, or IMPOSSIBLE in `state`."""
        offset, highest = state
        if call.function == Function.FETCH_COMMITTED:
            return state if call.result == offset else IMPOSSIBLE
        generation = call.argument if call.function == Function.JOIN else call.argument[0]
        if NO_GENERATION < generation < highest:
            return IMPOSSIBLE
        highest = max(highest, generation)
        return (offset, highest) if call.function == Function.JOIN else (call.argument[1], highest)


_NONE_HIDDEN = -2
"""The log has no commit that its coordinator does not show."""
_States = tuple[tuple[int, int], ...]
"""Every possible (committed offset, later offset in the log that the coordinator does not show), sorted."""


@frozen
class ReloadedOffset(Model):
    """A `CommittedOffset` with coordinators that time out.

    If a commit takes longer than offsets.commit.timeout.ms to replicate, it is in the log, but its
    coordinator has answered REQUEST_TIMED_OUT and never shows it. The next coordinator shows what it loads,
    unless a later commit follows in the log. So a commit with an unknown outcome is written once, within its
    generation. It is visible at once, or from a later coordinator epoch on.

    State: (coordinator epoch, highest generation, possible offsets). The argument of a commit is [generation,
    offset, epoch, whether its outcome is unknown], that of a join [generation, epoch], that of a fetch its
    epoch.
    """

    name: ClassVar[str] = "committed-offset-reloaded"
    functions: ClassVar[frozenset[str]] = CommittedOffset.functions
    effects: ClassVar[frozenset[str]] = CommittedOffset.effects

    def init(self) -> Any:
        """Nothing is committed, and neither generation nor coordinator is known."""
        return (NO_EPOCH, NO_GENERATION, ((NOTHING, _NONE_HIDDEN),))

    def step(self, state: Any, call: Call) -> Any:
        """The state after `call`, or IMPOSSIBLE in `state`."""
        epoch, highest, possible = state
        if call.function == Function.COMMIT:
            generation, offset, given_epoch, unknown = call.argument
            if NO_GENERATION < generation < highest:
                return IMPOSSIBLE
            written: _States = ((offset, _NONE_HIDDEN),)
            if unknown:
                written = tuple(sorted({*written, *((visible, offset) for visible, _ in possible)}))
            return max(epoch, given_epoch), max(highest, generation), written
        generation, given_epoch = (
            call.argument if call.function == Function.JOIN else (NO_GENERATION, call.argument)
        )
        if NO_GENERATION < generation < highest:
            return IMPOSSIBLE
        if given_epoch > epoch:
            possible = _loaded(possible)
        if call.function == Function.FETCH_COMMITTED:
            possible = tuple(each for each in possible if each[0] == call.result)
        return (max(epoch, given_epoch), max(highest, generation), possible) if possible else IMPOSSIBLE

    def describe(self, call: Call) -> str:
        """A call as the plain register shows it."""
        if call.function == Function.FETCH_COMMITTED:
            return f"{call.function}() -> {call.result}"
        generation = call.argument[0]
        commits = call.function == Function.COMMIT
        return f"{call.function}({f'[{generation} {call.argument[1]}]' if commits else generation})"


def _loaded(possible: _States) -> _States:
    """The possible offsets after another coordinator has read the log. It may have read the log before the
    write that is not visible."""
    seen = {(hidden, _NONE_HIDDEN) for _, hidden in possible if hidden != _NONE_HIDDEN}
    return tuple(sorted({*possible, *seen}))

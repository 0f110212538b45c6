"""The committed offset of one partition as a sequential model: a register that a stale generation cannot write.

Owns the model for the general linearizability engine. Must not know histories.
"""

from typing import Any, ClassVar

from attrs import frozen

from fencepost.checkers.groups.history import NO_GENERATION, NOTHING
from fencepost.checkers.models.base import IMPOSSIBLE, Call, Model
from fencepost.traces.operations import Function


@frozen
class CommittedOffset(Model):
    """State: (committed offset, highest generation). A commit's argument is [generation, offset], a join's its generation.

    A generation is fenced by a higher one; a commit without a generation is not fenced.
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
        """The state after a call, or IMPOSSIBLE."""
        offset, highest = state
        if call.function == Function.FETCH_COMMITTED:
            return state if call.result == offset else IMPOSSIBLE
        generation = call.argument if call.function == Function.JOIN else call.argument[0]
        if NO_GENERATION < generation < highest:
            return IMPOSSIBLE
        highest = max(highest, generation)
        return (offset, highest) if call.function == Function.JOIN else (call.argument[1], highest)

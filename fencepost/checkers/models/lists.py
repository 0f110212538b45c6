"""An append-only list: appended values keep their position, and a read returns the whole list.

Owns the model. The module `log` has the model of a log with offsets.
"""

from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import IMPOSSIBLE, VALUES, Call, Starting
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation


@define(unsafe_hash=True)
class AppendOnlyList(Starting):
    """append(v) adds a value at the end, read returns all values in order. Each key has its own list."""

    name: ClassVar[str] = "append-only-list"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"append", "read"})
    reads: ClassVar[frozenset[str]] = frozenset({"read"})
    effects: ClassVar[frozenset[str]] = frozenset({"append"})

    def init(self) -> Any:
        """The initial values."""
        return tuple(self.initial or ())

    def step(self, state: Any, call: Call) -> Any:
        """All values after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "append":
            return (*state, call.argument)
        return state if call.result == state else IMPOSSIBLE

    def resets(self, call: Call) -> bool:
        """False: no call removes a value."""
        return False

    def reaches(self, state: Any, call: Call) -> bool:
        """Whether appends can extend the list `state` to the list that `call` read."""
        return bool(call.result[: len(state)] == state)

    def call(self, operation: Operation) -> Call | None:
        """As every model; the result of a read must be a list. Raises TraceError."""
        call = super().call(operation)
        if (
            call is not None
            and call.function == "read"
            and not (operation.result or "").lstrip().startswith("[")
        ):
            raise TraceError(
                expected="a list as result of read",
                seen=str(operation.result),
                where=f"operation {operation.op_id}",
            )
        return call

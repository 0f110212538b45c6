"""An append-only list: what was appended stays where it is, and a read shows all of it.

Owns the model. Must not know logs with offsets (log).
"""

from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import IMPOSSIBLE, VALUES, Call, Starting
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation


@define(unsafe_hash=True)
class AppendOnlyList(Starting):
    """append(v) adds a value at the end, read answers all values in order. Keys are lists of their own."""

    name: ClassVar[str] = "append-only-list"
    starts = VALUES
    functions: ClassVar[frozenset[str]] = frozenset({"append", "read"})
    reads: ClassVar[frozenset[str]] = frozenset({"read"})
    effects: ClassVar[frozenset[str]] = frozenset({"append"})

    def init(self) -> Any:
        """The values that it starts from."""
        return tuple(self.initial or ())

    def step(self, state: Any, call: Call) -> Any:
        """All values after the call."""
        if call.function == "append":
            return (*state, call.argument)
        return state if call.result == state else IMPOSSIBLE

    def resets(self, call: Call) -> bool:
        """Nothing is taken away."""
        return False

    def reaches(self, state: Any, call: Call) -> bool:
        """A list grows into those that it is the beginning of."""
        return bool(call.result[: len(state)] == state)

    def call(self, operation: Operation) -> Call | None:
        """As every model; a read answers a list. Raises TraceError."""
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

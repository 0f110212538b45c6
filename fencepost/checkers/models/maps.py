"""A map: JSON values under keys, which can be deleted.

Owns the model and the comparison of its JSON values. Texts with append are the model key-value (registers).
"""

from typing import Any, ClassVar

import msgspec
from attrs import define, evolve, field

from fencepost.checkers.models.base import IMPOSSIBLE, UNHEARD, Call, JsonText, Starting, decoded
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation, Outcome


def json_text_of(value: Any) -> JsonText | None:
    """A JSON value as text that is equal for equal values. 1 equals 1.0 but not true; the order of an
    object's members does not matter. None for null."""
    return None if value is None else JsonText(msgspec.json.encode(_whole(value), order="sorted").decode())


def _whole(value: Any) -> Any:
    """Replace floats that are whole numbers by integers."""
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


@define(unsafe_hash=True)
class Map(Starting):
    """put(v) stores any JSON value under a key, get returns it, delete removes it, cas([old new]) replaces
    it. A key without a value returns null.

    delete may return true or false: whether there was a value. cas with old null creates the key, with new
    null deletes it.
    """

    name: ClassVar[str] = "map"
    needs_key: ClassVar[bool] = True
    functions: ClassVar[frozenset[str]] = frozenset({"get", "put", "delete", "cas"})
    reads: ClassVar[frozenset[str]] = frozenset({"get"})
    effects: ClassVar[frozenset[str]] = frozenset({"put"})

    initial: Any = field(default=None, converter=json_text_of, kw_only=True)

    def step(self, state: Any, call: Call) -> Any:
        """The value under the key after `call` in `state`, or IMPOSSIBLE."""
        if call.function == "put":
            return call.argument
        if call.function == "get":
            return state if call.result == state else IMPOSSIBLE
        if call.function == "delete":
            said = call.result in (True, False)
            return IMPOSSIBLE if said and call.result != (state is not None) else None
        old, new = call.argument
        if call.result is False:
            return state if state != old else IMPOSSIBLE
        return new if state == old else IMPOSSIBLE

    def observes(self, call: Call) -> bool:
        """Whether `call` is a get, or a delete or cas that reported no change."""
        return super().observes(call) or (call.function in ("cas", "delete") and call.result is False)

    def call(self, operation: Operation) -> Call | None:
        """As every model, with values as texts. Raises TraceError."""
        known = operation.outcome is Outcome.OK
        function = operation.function.value
        if not known and function in self.reads:
            return None
        argument, result = decoded(operation, "argument"), decoded(operation, "result")
        where = f"operation {operation.op_id}"
        if operation.key is None:
            raise TraceError(expected=f"a key of {function}", seen="none", where=where)
        call = Call(function=function, key=operation.key)
        if function == "put":
            return evolve(call, argument=json_text_of(argument))
        if function == "get":
            return evolve(call, result=json_text_of(result))
        if function == "delete":
            return evolve(call, result=result if known and isinstance(result, bool) else UNHEARD)
        if not isinstance(argument, list) or len(argument) != 2:
            raise TraceError(
                expected="[old, new] as argument of cas", seen=str(operation.argument), where=where
            )
        if known and result is not None and result != argument and not isinstance(result, bool):
            raise TraceError(
                expected="true or false as result of cas", seen=str(operation.result), where=where
            )
        old, new = map(json_text_of, argument)
        return evolve(call, argument=(old, new), result=result is not False if known else UNHEARD)

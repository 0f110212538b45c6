"""The interface of a sequential model.

Owns `Model`, `Call` and the conversion of an operation's columns into a call. Must not know histories, times
or how a search works.

A model describes a system that one client at a time uses: an initial state, and the effect of each call on a
state. Linearizability asks whether the model allows some order of the recorded calls in which each call
happens between its invocation and its completion.
"""

import inspect
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from typing import Any, ClassVar, Final, Self

import msgspec
from attrs import define, field, frozen

from fencepost.checkers.models.definition import check_definition
from fencepost.traces.decoding import from_json
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.operations import Operation, Outcome


class _Sentinel(Enum):
    IMPOSSIBLE = "impossible"
    UNHEARD = "unheard"


IMPOSSIBLE: Final = _Sentinel.IMPOSSIBLE
"""`step` returns it if the call cannot happen in the state, or cannot have had its result there."""
UNHEARD: Final = _Sentinel.UNHEARD
"""The result of a call with an unknown outcome: every result that the state allows."""


@frozen(kw_only=True)
class Call:
    """One operation as a model sees it: hashable, without times.

    argument, result: JSON values, with lists as tuples and objects as sorted tuples of pairs. The result is
    UNHEARD if the outcome is unknown.
    """

    function: str
    key: str | None = None
    argument: Any = None
    result: Any = None


def frozen_value(value: Any) -> Any:
    """Turn a JSON value into a hashable one.

    Args:
        value: any JSON value.

    Returns:
        the same value, with lists as tuples and objects as sorted tuples of pairs.
    """
    if isinstance(value, list):
        return tuple(frozen_value(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((name, frozen_value(item)) for name, item in value.items()))
    return value


class JsonText(str):
    """A JSON value as text. Messages show it as it is."""

    __slots__ = ()


def decoded(operation: Operation, column: str) -> Any:
    """Decode one JSON column of an operation.

    Args:
        operation: the operation.
        column: `argument` or `result`.

    Returns:
        the JSON value; None if the column is null.

    Raises:
        TraceError: if the text is not JSON.
    """
    text = operation.argument if column == "argument" else operation.result
    if text is None:
        return None
    try:
        return from_json(text)
    except msgspec.DecodeError as error:
        raise TraceError(
            expected="JSON text", seen=str(error), where=f"{column} of operation {operation.op_id}"
        ) from None


def value_of(operation: Operation, column: str) -> Any:
    """Decode one JSON column of an operation into a hashable value.

    Args:
        operation: the operation.
        column: `argument` or `result`.

    Returns:
        as `decoded`, with lists and objects as `frozen_value` makes them.

    Raises:
        TraceError: if the text is not JSON.
    """
    value = decoded(operation, column)
    return frozen_value(value) if isinstance(value, list | dict) else value


class Model:
    """A sequential model: pure functions of states and calls. States must be hashable unless `equal` is
    overridden.

    To write a model, derive a class from this one: a plain class, a dataclass or an attrs class, with or
    without parameters. The class need not call `__init__` of this class. A class that cannot work is refused
    when it is defined.
    """

    name: ClassVar[str] = ""
    """The name in messages. Default: the name of the class."""
    functions: ClassVar[Collection[str]] = frozenset()
    """The functions that the model supports."""
    reads: ClassVar[Collection[str]] = frozenset()
    """The subset of `functions` that never changes the state. Such a call is ignored if its outcome is
    unknown, and is an error if it succeeded without a result."""
    effects: ClassVar[Collection[str]] = frozenset()
    """The subset of `functions` without a result: success is all that they report."""
    timed: ClassVar[bool] = False
    """Whether calls carry the times of their operations. If so, clock uncertainty widens these times too."""

    needs_key: ClassVar[bool] = False
    """Whether every operation must have a key."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        check_definition(cls)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Remember the arguments, so that a printed command can make the same model.

        Raises:
            FencepostError: if the class has no `step`.
        """
        if cls.step is Model.step:
            raise FencepostError(
                expected="a method step(self, state, call)",
                seen="none",
                where=f"the model {cls.__qualname__}",
            )
        made = object.__new__(cls)
        vars(made)["_arguments"] = (args, named)
        return made

    def __init__(self) -> None:
        """Takes no parameters. Without this method `object` would accept any arguments for a class without
        `__init__`, and ignore them."""

    def parameters(self) -> dict[str, Any] | None:
        """The constructor arguments by parameter name; None if some arguments have no name."""
        args, named = vars(self).get("_arguments", ((), {}))
        bound = inspect.signature(type(self).__init__).bind(self, *args, **named)
        found: dict[str, Any] = {}
        for parameter in list(bound.signature.parameters.values())[1:]:
            value = bound.arguments.get(parameter.name, parameter.empty)
            if parameter.kind is parameter.VAR_KEYWORD:
                found |= {} if value is parameter.empty else value
            elif value is not parameter.empty:
                if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                    return None
                found[parameter.name] = value
        return found

    def init(self) -> Any:
        """The initial state. Default: None."""
        return None

    def step(self, state: Any, call: Call) -> Any:
        """Apply one call.

        Args:
            state: a state that `init` or an earlier `step` returned. Do not modify it.
            call: the call. Its result is UNHEARD if the outcome is unknown.

        Returns:
            the state after the call, or IMPOSSIBLE if the call cannot happen in `state` with this result. For
            an UNHEARD call that would change nothing, both answers are allowed.
        """
        raise NotImplementedError

    def partition(self, call: Call) -> str | None:
        """The independent part of the system that `call` uses, as a name. If this returns None for any call,
        the history is not split."""
        return call.key or ""

    def equal(self, one: Any, other: Any) -> bool:
        """Whether the states `one` and `other` behave alike. Override it if equal states are not ==, or if
        states cannot be hashed."""
        return bool(one == other)

    def observes(self, call: Call) -> bool:
        """Whether `call`, with a known result, leaves every state as it is. The search then need not choose
        when it happens."""
        return call.function in self.reads

    def resets(self, call: Call) -> bool:
        """Whether `call` may undo the effect of other calls. Return False only if `reaches` takes the call
        into account."""
        return True

    def reaches(self, state: Any, call: Call) -> bool:
        """Whether some calls with `resets` False can lead from a state to one in which an observer is
        possible.

        Args:
            state: the state to start from.
            call: the observer, a call for which `observes` is true.

        Returns:
            True if such calls exist. True is always safe.
        """
        return True

    def overwrites(self, call: Call) -> bool:
        """Whether `call` is possible in every state and always leads to the same state, as a put does. False
        is always safe."""
        return False

    def lens(self, calls: Iterable[Call]) -> Callable[[Any], Any] | None:
        """Merge states that the remaining calls cannot distinguish.

        Args:
            calls: all calls that may still be made.

        Returns:
            a function from a state to a representative of the states that these calls cannot distinguish, now
            or later. None means that all states stay different, which is always safe.
        """
        return None

    def describe(self, call: Call) -> str:
        """`call` in a few words."""
        words = [] if call.key is None else [call.key]
        if call.argument is not None:
            words.append(shown(call.argument))
        answered = call.result is not None or call.function not in self.effects
        answer = f" -> {shown(call.result)}" if answered else ""
        return f"{call.function}({', '.join(words)}){answer}"

    def describe_state(self, state: Any) -> str:
        """`state` in a few words."""
        return shown(state)

    def call(self, operation: Operation) -> Call | None:
        """Convert an operation that did not fail into a call.

        Args:
            operation: the operation; its outcome is ok or unknown.

        Returns:
            the call, or None if the operation gives the model no information.

        Raises:
            TraceError: if argument or result make no sense for this model.
        """
        function = str(operation.function)
        unknown = operation.outcome is Outcome.UNKNOWN
        if unknown and function in self.reads:
            return None
        argument = None if operation.argument is None else value_of(operation, "argument")
        result = None if operation.result is None else value_of(operation, "result")
        if function in self.effects:
            if result not in (None, argument):
                raise TraceError(
                    expected=f"no result of {operation.function} for the model {self.name}",
                    seen=shown(result),
                    where=f"operation {operation.op_id}",
                )
            result = None
        elif unknown:
            result = UNHEARD
        return Call(function=function, key=operation.key, argument=argument, result=result)


def check_initial(model: "Starting", _: Any, initial: Any) -> None:
    """Raises FencepostError for a value that the model cannot start from."""
    kinds, words = model.starts
    if not isinstance(initial, kinds) or (
        isinstance(initial, bool) and bool not in kinds and object not in kinds
    ):
        raise FencepostError(
            expected=f"{words} as initial", seen=shown(initial)[:80], where=f"the model {model.name}"
        )


ANY_VALUE: tuple[tuple[type, ...], str] = ((object,), "any value")
VALUES: tuple[tuple[type, ...], str] = ((tuple, list, frozenset, set, type(None)), "a list of values")
INTEGER: tuple[tuple[type, ...], str] = ((int,), "an integer")
TEXT: tuple[tuple[type, ...], str] = ((str, type(None)), "a text")


@define(unsafe_hash=True)
class Starting(Model):
    """A built-in model with a configurable initial value.

    initial: the JSON value that `init` returns. It is keyword-only, so that the first positional parameter of
    a derived class is free.

    Instances are not modified after construction. The class is still not frozen, because a class derived from
    a frozen one could not set its own parameters in `__init__`.
    """

    starts: ClassVar[tuple[tuple[type, ...], str]] = ANY_VALUE
    """Kinds of values that it can start from, and their name in an error."""

    initial: Any = field(default=None, converter=frozen_value, validator=check_initial, kw_only=True)

    def __getattr__(self, name: str) -> Any:
        """The default of `initial` for a derived class that does not call `__init__` of this class."""
        if name == "initial":
            return None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def init(self) -> Any:
        """The initial state."""
        return self.initial


def shown(value: Any) -> str:
    """`value` as text for people."""
    if value is UNHEARD:
        return "?"
    if isinstance(value, JsonText):
        return str(value)
    if isinstance(value, tuple | list):
        return f"[{' '.join(shown(item) for item in value)}]"
    if isinstance(value, frozenset | set):
        return f"{{{' '.join(sorted(shown(item) for item in value))}}}"
    try:
        return msgspec.json.encode(value).decode()
    except TypeError:
        return str(value)


def integer(value: Any, what: str, operation: Operation) -> int:
    """Return `value` if it is an integer.

    Args:
        value: the value.
        what: its name, for the error.
        operation: its operation, for the error.

    Returns:
        the value.

    Raises:
        TraceError: if it is not an integer.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TraceError(
            expected=f"an integer as {what}", seen=shown(value), where=f"operation {operation.op_id}"
        )
    return value

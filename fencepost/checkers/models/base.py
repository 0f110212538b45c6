"""What a sequential model is, and what it is asked.

Owns `Model`, `Call` and how an operation's columns become a call. Must not know histories, times or how a
search goes.

A model says what a system does when nobody else is there: a first state, and what each call does to a state.
Linearizability asks whether the recorded calls, each somewhere between its invocation and its completion, can
be put in one order that the model allows.
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
from fencepost.traces.operations import Function, Operation, Outcome


class _Sentinel(Enum):
    IMPOSSIBLE = "impossible"
    UNHEARD = "unheard"


IMPOSSIBLE: Final = _Sentinel.IMPOSSIBLE
"""What `step` answers where a call cannot happen in a state, or cannot have had its result there."""
UNHEARD: Final = _Sentinel.UNHEARD
"""The result of a call whose outcome is unknown: whatever the state makes of it."""


@frozen(kw_only=True)
class Call:
    """One operation as a model sees it: hashable, without times.

    argument, result: JSON values with lists as tuples and objects as sorted tuples of pairs; result is
    UNHEARD where the outcome is unknown.
    """

    function: str
    key: str | None = None
    argument: Any = None
    result: Any = None


def frozen_value(value: Any) -> Any:
    """A JSON value that can be hashed: lists become tuples, objects sorted tuples of pairs."""
    if isinstance(value, list):
        return tuple(frozen_value(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((name, frozen_value(item)) for name, item in value.items()))
    return value


_NAMES = {function: function.value for function in Function}
"""Looking a name up is cheaper than asking a member for it; every operation of a history needs one."""


class JsonText(str):
    """A JSON value as text, shown as it is."""

    __slots__ = ()


def decoded(operation: Operation, column: str) -> Any:
    """The JSON value in `argument` or `result` (None where the column is null). Raises TraceError if it is no
    JSON."""
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
    """As `decoded`, in a form that can be hashed."""
    value = decoded(operation, column)
    return frozen_value(value) if isinstance(value, list | dict) else value


class Model:
    """A sequential model: pure functions of states and calls. States are hashable (or `equal` is overridden).

    A model of yours is a class derived from this one, with or without parameters: a plain class, a dataclass
    or an attrs class. Nothing needs to be called of this class's `__init__`. What cannot work is refused when
    the class is defined.
    """

    name: ClassVar[str] = ""
    """What it is called in messages; the class's own name, if it says nothing."""
    functions: ClassVar[Collection[str]] = frozenset()
    """The functions that it understands."""
    reads: ClassVar[Collection[str]] = frozenset()
    """Those of them that never change the state: one with an unknown outcome says nothing, one without a
    result is a mistake."""
    effects: ClassVar[Collection[str]] = frozenset()
    """Those whose only result is that they happened."""
    timed: ClassVar[bool] = False
    """Whether its calls carry the times of their operations. Then uncertain clocks widen these, too."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        check_definition(cls)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Remember the arguments, so that a printed command can make the same model. Raises FencepostError
        for a class without `step`."""
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
        """No parameters. Without this `object` would take any arguments of a class that has no `__init__`,
        and forget them."""

    def parameters(self) -> dict[str, Any] | None:
        """The arguments that it was made with, by the names of its parameters; None where some have no
        name."""
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
        """The first state; None, unless this is overridden."""
        return None

    def step(self, state: Any, call: Call) -> Any:
        """The state after `call`, or IMPOSSIBLE. An unheard call that would change nothing may answer
        either."""
        raise NotImplementedError

    def partition(self, call: Call) -> str | None:
        """The independent part of the system that a call belongs to; if one call answers None, the history is
        not split."""
        return call.key or ""

    def equal(self, one: Any, other: Any) -> bool:
        """Whether two states behave alike. Override it for states that are equal without being ==, or that
        cannot be hashed."""
        return bool(one == other)

    def observes(self, call: Call) -> bool:
        """Whether a call with a known result changes no state at all: then the search need not choose when it
        happens."""
        return call.function in self.reads

    def resets(self, call: Call) -> bool:
        """Whether a call may undo what others built up: False only for calls that `reaches` takes into
        account."""
        return True

    def reaches(self, state: Any, call: Call) -> bool:
        """Whether calls that do not reset may lead from `state` to one where the observer `call` is possible.
        True is always safe."""
        return True

    def overwrites(self, call: Call) -> bool:
        """Whether a call that may happen in every state leads to the same state from all of them (a put).
        False is always safe."""
        return False

    def lens(self, calls: Iterable[Call]) -> Callable[[Any], Any] | None:
        """If no more than these calls will ever be made: a function from each state to one that stands for
        all which they cannot tell from it, now or later. None, which is always safe: every difference
        counts."""
        return None

    def describe(self, call: Call) -> str:
        """A call in a few words."""
        words = [] if call.key is None else [call.key]
        if call.argument is not None:
            words.append(shown(call.argument))
        told = call.result is not None or call.function not in self.effects
        answer = f" -> {shown(call.result)}" if told else ""
        return f"{call.function}({', '.join(words)}){answer}"

    def describe_state(self, state: Any) -> str:
        """A state in a few words."""
        return shown(state)

    def call(self, operation: Operation) -> Call | None:
        """An operation (not a failed one) as a call; None if it says nothing. Raises TraceError for what
        makes no sense here."""
        function = _NAMES[operation.function]
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


@define(unsafe_hash=True)
class Starting(Model):
    """A model of ours that starts from a value. initial: what `init` starts from, as JSON; by name only, so
    that a derived class has its first parameter for itself.

    Nothing writes to a model once it is made. It is not frozen all the same: a class derived from a frozen
    one could not set its own parameters in `__init__`.
    """

    initial: Any = field(default=None, converter=frozen_value, kw_only=True)

    def __getattr__(self, name: str) -> Any:
        """The default of `initial` for a derived class that does not call this one's `__init__`."""
        if name == "initial":
            return None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def init(self) -> Any:
        """The first state."""
        return self.initial


def shown(value: Any) -> str:
    """A value as a person reads it."""
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
    """The value, which must be an integer. Raises TraceError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TraceError(
            expected=f"an integer as {what}", seen=shown(value), where=f"operation {operation.op_id}"
        )
    return value

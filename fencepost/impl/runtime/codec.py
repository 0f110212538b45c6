"""Messages as bytes: MessagePack arrays of a message's fields, decoded strictly by the declared types.

Owns the translation, which is derived from the messages' classes. Must not know sockets, or the meaning of a
message. A value of a wrong type, a missing or extra field, and an unknown kind raise `MalformedError`.
Integers have 64 bits, or 32 bits where Kafka's have; a bool is not an integer.
"""

from collections.abc import Callable
from enum import Enum
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from fencepost.impl.messages.broker_api import Message
from fencepost.impl.messages.names import NAMES

INT64 = range(-(2**63), 2**63)
INT32 = range(-(2**31), 2**31)
INT32_FIELDS = frozenset(
    {
        "acks",
        "asked_epoch",
        "broker_id",
        "controller_epoch",
        "controller_id",
        "coordinator_epoch",
        "current_leader_epoch",
        "epoch",
        "generation_id",
        "leader",
        "leader_epoch",
        "max_bytes",
        "node",
        "partition",
        "rebalance_timeout_ms",
        "replica_id",
        "session_timeout_ms",
        "zk_version",
    }
)
"""Fields with 32 bits or fewer in Kafka's protocol; they have the same name in every message. Logs and
records store them so."""
Reader = Callable[[Any], Any]
Writer = Callable[[Any], Any]


class MalformedError(Exception):
    """Bytes that are not a message. The text has expected and seen."""


KINDS: dict[str, Any] = {name: kind for kind, name in NAMES.items()}


def encode(message: Message) -> bytes:
    """A message as bytes."""
    kind: Any = type(message)
    plain = _writer(kind)
    assert plain is not None, f"{kind} has no fields"
    return msgspec.msgpack.encode([NAMES[kind], plain(message)])


def decode(data: bytes | bytearray) -> Message:
    """Decode a message. Raises MalformedError."""
    try:
        kind, fields = msgspec.msgpack.decode(data)
        reader = _reader(KINDS[kind])
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise MalformedError(
            f"expected a message of a known kind, saw {type(error).__name__}: {error}"
        ) from None
    message: Message = reader(fields)
    return message


@cache
def _writer(kind: Any) -> Writer | None:
    """A function that converts values of a declared type into plain ones; None if they are plain. MessagePack
    encodes numbers, texts, bytes, enumerations, tuples of them, and structs of them that are arrays."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple and arguments[1:] == (...,):
        item = _writer(arguments[0])
        return None if item is None else _sequence_writer(item)
    if origin is tuple:
        items = tuple(_writer(argument) for argument in arguments)
        return _array(tuple, items)
    if origin in (Union, UnionType):
        (item,) = {_writer(argument) for argument in arguments if argument is not type(None)}
        return item and (lambda value: None if value is None else item(value))
    if not _is_value(kind) or kind.__struct_config__.array_like:
        return None
    names = tuple(name for name, _ in _fields(kind))
    fields = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    return _array(fields, tuple(_writer(hint) for _, hint in _fields(kind))) or fields


def _sequence_writer(item: Writer) -> Writer:
    return lambda value: [item(one) for one in value]


def _array(fields: Callable[[Any], tuple[Any, ...]], items: tuple[Writer | None, ...]) -> Writer | None:
    """A writer for an array of fields of which some must be converted; None if none must."""
    made = tuple((place, item) for place, item in enumerate(items) if item is not None)
    if not made:
        return None

    def write(value: Any) -> list[Any]:
        array = list(fields(value))
        for place, item in made:
            array[place] = item(array[place])
        return array

    return write


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names and types of the fields of a value."""
    hints = get_type_hints(kind)
    return tuple((name, hints[name]) for name in kind.__struct_fields__)


def _is_value(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@cache
def _reader(kind: Any) -> Reader:
    """A function that decodes values of this declared type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is int:
        return _integer
    if kind in (str, bytes, bool, type(None)):
        return lambda value: value if type(value) is kind else _refuse(kind.__name__, value)
    if origin is tuple and arguments[1:] == (...,):
        return _sequence(_reader(arguments[0]))
    if origin is tuple:
        return _row("a tuple", tuple, tuple(_reader(argument) for argument in arguments))
    if origin in (Union, UnionType):
        return _optional(kind, arguments)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(kind)
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        return _row(kind.__name__, kind._make, tuple(_field(name, hints[name]) for name in kind._fields))
    assert _is_value(kind), f"no rule to read {kind}"
    names = tuple(name for name, _ in _fields(kind))
    return _row(
        kind.__name__,
        lambda values: kind(**dict(zip(names, values, strict=True))),
        tuple(_field(name, hint) for name, hint in _fields(kind)),
    )


def _field(name: str, hint: Any) -> Reader:
    return _small_integer if hint is int and name in INT32_FIELDS else _reader(hint)


def _small_integer(value: Any) -> int:
    return value if type(value) is int and value in INT32 else _refuse("a 32-bit integer", value)


def _integer(value: Any) -> int:
    return value if type(value) is int and value in INT64 else _refuse("a 64-bit integer", value)


def _sequence(item: Reader) -> Reader:
    def read(value: Any) -> tuple[Any, ...]:
        return tuple(item(one) for one in value) if type(value) is list else _refuse("an array", value)

    return read


def _row(what: str, make: Callable[[list[Any]], Any], readers: tuple[Reader, ...]) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != len(readers):
            _refuse(f"{len(readers)} fields of {what}", value)
        return make([reader(one) for reader, one in zip(readers, value, strict=True)])

    return read


def _optional(kind: Any, arguments: tuple[Any, ...]) -> Reader:
    others = [argument for argument in arguments if argument is not type(None)]
    assert len(others) == 1 and len(arguments) == 2, f"no rule to read {kind}"
    reader = _reader(others[0])
    return lambda value: None if value is None else reader(value)


def _member(kind: type[Enum]) -> Reader:
    members = {member.value: member for member in kind}

    def read(value: Any) -> Any:
        known = type(value) in (int, str) and value in members
        return members[value] if known else _refuse(f"a {kind.__name__}", value)

    return read


def _refuse(expected: str, value: Any) -> Any:
    raise MalformedError(f"expected {expected}, saw {str(value)[:80]!r}")

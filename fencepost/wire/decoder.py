"""Reads a message into kio's class, bounded by the bytes that are there.

Owns the walk over kio's classes. Must not know what a message means. kio writes well, but its reader is for
trusted peers. It allocates as many elements as an array announces, so four bytes can ask for 34 GB and abort
the process. And it refuses unknown tagged fields, which must be skipped according to KIP-482
(librdkafka 2 sends one in its Metadata for all topics). A test compares both readers for every message of the
table.

Wire types: https://kafka.apache.org/protocol#protocol_types; compact forms and tagged fields: KIP-482; null
structs: KIP-893.
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

from attrs import define, field, frozen
from kio.schema.errors import ErrorCode

from fencepost.wire.frames import ProtocolError
from fencepost.wire.names import wire_error

_VARINT_BYTES = 5
"""Most bytes of a varint: a 32-bit number in groups of seven bits."""
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class AddressPlace:
    """The place of a node's host and port in a frame: [start, port_end), the host with its length
    first."""

    start: int
    port_end: int
    node: int
    host: str
    port: int


@frozen
class TagPlace:
    """The place of the size of a tagged field that holds addresses: [start, end), and where the field
    ends."""

    start: int
    end: int
    after: int


@define
class Places:
    """What a rewriting of addresses has to know of a frame."""

    addresses: list[AddressPlace] = field(factory=list)
    tags: list[TagPlace] = field(factory=list)


Read = Callable[["Message", int], tuple[Any, int]]
"""read(message, position) -> the value there, and the position after it."""


def _time(value: int) -> datetime | None:
    return None if value == -1 else _EPOCH + timedelta(milliseconds=value)


def _error(value: int) -> ErrorCode:
    try:
        return wire_error(value)
    except ValueError:
        return ErrorCode.unknown_server_error  # of a later Kafka; Kafka's own clients do the same


def _uuid(value: bytes) -> UUID | None:
    return UUID(bytes=value) if any(value) else None


FIXED: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "int8": ("b", None), "int16": ("h", None), "int32": ("i", None), "int64": ("q", None),
    "uint8": ("B", None), "uint16": ("H", None), "uint32": ("I", None), "uint64": ("Q", None),
    "float64": ("d", None), "bool": ("b", bool), "uuid": ("16s", _uuid), "error_code": ("h", _error),
    "timedelta_i32": ("i", lambda value: timedelta(milliseconds=value)),
    "timedelta_i64": ("q", lambda value: timedelta(milliseconds=value)),
    "datetime_i64": ("q", _time),
}  # fmt: skip
"""kio's types that are as long for every value: as struct names them, and what makes kio's value."""


class Message:
    """The bytes of one message. room: how many elements of arrays it may still have. places: collects the
    places of its addresses; None: they are not needed."""

    __slots__ = ("data", "end", "places", "room")

    def __init__(self, data: bytes, elements: int, places: "Places | None" = None) -> None:
        self.data, self.end, self.room, self.places = data, len(data), elements, places

    def after(self, position: int, size: int) -> int:
        """The position `size` bytes on."""
        after = position + size
        if size < 0 or after > self.end:
            raise _refusal(position, f"at most {self.end - position} more bytes", str(size))
        return after

    def varint(self, position: int) -> tuple[int, int]:
        """An unsigned varint, and the position after it."""
        if position < self.end and (byte := self.data[position]) < 0x80:  # as most are
            return byte, position + 1
        value = shift = 0
        for place in range(position, min(position + _VARINT_BYTES, self.end)):
            byte = self.data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, place + 1
            shift += 7
        raise _refusal(position, f"a varint of at most {_VARINT_BYTES} bytes", "none")

    def take(self, position: int, count: int) -> None:
        """An array of `count` elements begins; each has at least a byte."""
        most = min(self.room, self.end - position)
        if count > most:
            raise _refusal(position, f"an array of at most {most} elements", str(count))
        self.room -= count

    def skip_tags(self, position: int) -> int:
        """The position after tagged fields, which are ignored."""
        if position < self.end and not self.data[position]:
            return position + 1
        return _read_tags(self, position, {}, {})


def _refusal(position: int, expected: str, seen: str) -> ProtocolError:
    return ProtocolError(expected=expected, seen=seen, where=f"byte {position} of a message")


def read(kind: Any, message: Message, position: int) -> Any:
    """The message of this kio class that begins at `position`; what comes after it is ignored, as Kafka does.
    Raises ProtocolError."""
    try:
        value, _ = _entity(kind)(message, position)
    except (ValueError, OverflowError) as error:
        if isinstance(error, ProtocolError):
            raise
        raise ProtocolError(
            expected=f"a {kind.__name__} of version {kind.__version__}", seen=str(error), where="a frame"
        ) from None
    return value


# ---- structures


@frozen
class _Run:
    """Neighbouring fields of a fixed size, read in one call."""

    names: tuple[str, ...]
    packed: struct.Struct
    conversions: tuple[tuple[str, Callable[[Any], Any]], ...]


@cache
def _entity(kind: Any) -> Read:
    flexible: bool = kind.__flexible__
    plain = [each for each in fields(kind) if "tag" not in each.metadata]
    tagged = [each for each in fields(kind) if "tag" in each.metadata]
    steps = _steps(plain, flexible)
    tags = {each.metadata["tag"]: (each.name, _value(each, flexible)) for each in tagged}
    absent = {each.name: _implicit(each) for each in tagged if each.default is MISSING}
    node = _node_field(plain)

    def read_entity(message: Message, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = dict(absent)
        for step in steps:
            if isinstance(step, _Run):
                start, position = position, message.after(position, step.packed.size)
                values.update(zip(step.names, step.packed.unpack_from(message.data, start), strict=True))
                for name, convert in step.conversions:
                    values[name] = convert(values[name])
            else:
                name, read_value = step
                start = position
                values[name], position = read_value(message, position)
                if message.places is not None and node and name == "host":
                    end = message.after(position, _INT32.size)
                    (port,) = _INT32.unpack_from(message.data, position)
                    message.places.addresses.append(
                        AddressPlace(start, end, values[node], values["host"], port)
                    )
        if flexible:
            if position < message.end and not message.data[position]:
                position += 1  # none, as in most structures
            else:
                position = _read_tags(message, position, tags, values)
        return kind(**values), position

    return read_entity


def _node_field(plain: list[Any]) -> str:
    """The field before `host` and `port` (one after the other in every message) that says which broker they
    are of; "" for what is no address of a broker."""
    names = [each.name for each in plain]
    if "host" not in names or names[names.index("host") + 1 :][:1] != ["port"]:
        return ""
    before = names[names.index("host") - 1] if names[0] != "host" else ""
    return before if before in ("node_id", "broker_id") else ""


def _steps(plain: list[Any], flexible: bool) -> list[_Run | tuple[str, Read]]:
    """How to read the fields that always come, in their order."""
    steps: list[_Run | tuple[str, Read]] = []
    run: list[Any] = []
    for each in [*plain, None]:
        if each is not None and _is_fixed(each):
            run.append(each)
            continue
        if run:
            steps.append(_run(run))
            run = []
        if each is not None:
            steps.append(
                (
                    each.name,
                    _nullable(_value(each, flexible)) if _is_null_struct(each) else _value(each, flexible),
                )
            )
    return steps


def _run(run: list[Any]) -> _Run:
    kinds = [FIXED[each.metadata["kafka_type"]] for each in run]
    return _Run(
        tuple(each.name for each in run),
        struct.Struct(">" + "".join(letters for letters, _ in kinds)),
        tuple(
            (each.name, convert) for each, (_, convert) in zip(run, kinds, strict=True) if convert is not None
        ),
    )


def _read_tags(
    message: Message, position: int, tags: dict[int, tuple[str, Read]], values: dict[str, Any]
) -> int:
    """Put the tagged fields that are known into `values`; returns the position after all of them."""
    count, position = message.varint(position)
    message.take(position, count)
    for _ in range(count):
        tag, size_at = message.varint(position)
        size, position = message.varint(size_at)
        after = message.after(position, size)
        if tag in tags:
            name, read_value = tags[tag]
            known = 0 if message.places is None else len(message.places.addresses)
            values[name], end = read_value(message, position)
            if message.places is not None and len(message.places.addresses) > known:
                message.places.tags.append(TagPlace(size_at, position, after))
            if end != after:
                raise _refusal(position, f"{size} bytes of tag {tag}", str(end - position))
        position = after
    return position


def _implicit(each: Any) -> Any:
    """A tagged field without a default that does not come: an empty array, or a structure of defaults."""
    bare = _bare(each.type)
    return () if get_origin(bare) is tuple else bare()


# ---- fields


def _is_fixed(each: Any) -> bool:
    return each.metadata.get("kafka_type") in FIXED and get_origin(_bare(each.type)) is not tuple


def _is_null_struct(each: Any) -> bool:
    return NoneType in get_args(each.type) and is_dataclass(_bare(each.type))


def _bare(kind: Any) -> Any:
    """A type without `| None`."""
    if get_origin(kind) is tuple:
        return kind
    others = [argument for argument in get_args(kind) if argument is not NoneType]
    return others[0] if len(others) == 1 else kind


def _value(each: Any, flexible: bool) -> Read:
    kafka_type, bare = each.metadata.get("kafka_type"), _bare(each.type)
    is_array, optional = get_origin(bare) is tuple, NoneType in get_args(each.type)
    if kafka_type is None:
        item = _entity(get_args(bare)[0] if is_array else bare)
    elif kafka_type in FIXED:
        item = _fixed(*FIXED[kafka_type])
    else:
        item = _sized(kafka_type, flexible, optional and not is_array)
    return _array(item, flexible, optional) if is_array else item


def _fixed(letters: str, convert: Callable[[Any], Any] | None) -> Read:
    packed = struct.Struct(f">{letters}")

    def read_fixed(message: Message, position: int) -> tuple[Any, int]:
        after = message.after(position, packed.size)
        (value,) = packed.unpack_from(message.data, position)
        return value if convert is None else convert(value), after

    return read_fixed


def _nullable(read_value: Read) -> Read:
    """A structure after a byte that is negative if there is none (KIP-893)."""

    def read_nullable(message: Message, position: int) -> tuple[Any, int]:
        after = message.after(position, 1)
        return (None, after) if message.data[position] >= 0x80 else read_value(message, after)

    return read_nullable


def _sized(kafka_type: str, flexible: bool, optional: bool) -> Read:
    """A text or bytes after their length; None for null, where that may be."""
    assert kafka_type in ("string", "bytes", "records"), f"no rule for {kafka_type}"
    is_text = kafka_type == "string"

    def read_sized(message: Message, position: int) -> tuple[Any, int]:
        if flexible:
            length, start = message.varint(position)
            length -= 1
        elif is_text:
            start = message.after(position, _INT16.size)
            (length,) = _INT16.unpack_from(message.data, position)
        else:
            start = message.after(position, _INT32.size)
            (length,) = _INT32.unpack_from(message.data, position)
        if length == -1 and optional:
            return None, start
        after = message.after(start, length)
        data = message.data[start:after]
        return data.decode() if is_text else data, after

    return read_sized


def _array(item: Read, flexible: bool, optional: bool) -> Read:
    def read_array(message: Message, position: int) -> tuple[Any, int]:
        if flexible:
            count, position = message.varint(position)
            count -= 1
        else:
            start, position = position, message.after(position, _INT32.size)
            (count,) = _INT32.unpack_from(message.data, start)
        if count == -1 and optional:
            return None, position
        if count < 0:
            raise _refusal(position, f"a count of at least {-1 if optional else 0}", str(count))
        message.take(position, count)
        items = []
        for _ in range(count):
            value, position = item(message, position)
            items.append(value)
        return tuple(items), position

    return read_array

"""Messages as plain data: kio's classes from dictionaries, and dictionaries from them.

Owns the walk over kio's classes by their fields. Must not know what a message means. Both sides of the wire
make their messages here: a broker's answers (apis/, admin/), our clients' requests (outward.py).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.schemas import request_schema

_EMPTY: dict[Any, Any] = {str: "", bytes: b"", bool: False, int: 0, float: 0.0, timedelta: timedelta(0)}
_WIRE_ERRORS: dict[ErrorCode, WireError] = {
    code: WireError[code.value.lower()] for code in ErrorCode if code is not ErrorCode.NETWORK_EXCEPTION
}
"""The wire's errors by name. Only clients use NETWORK_EXCEPTION."""
MILLISECOND = timedelta(milliseconds=1)


def error_code(error: ErrorCode) -> WireError:
    """kio's name of an error of the core."""
    return _WIRE_ERRORS[error]


def request(key: int, version: int, values: Mapping[str, Any]) -> Any:
    """A request of this API and version. values: as of `filled`."""
    return filled(request_schema(key, version), values)


def filled(kind: Any, values: Mapping[str, Any]) -> Any:
    """One of kio's classes.

    Args:
        kind: the class.
        values: by kio's names of fields, nested as dictionaries and lists; times in milliseconds and errors
            of the core are converted. Fields that this class lacks are left out; those without a value take
            the schema's default, or nothing, zero or empty.

    Returns:
        an instance.
    """
    conversions, empty = _form(kind)
    made = empty.copy()
    for name, value in values.items():
        convert = conversions.get(name, _ABSENT)
        if convert is None or (value is None and convert is not _ABSENT):
            made[name] = value
        elif convert is not _ABSENT:
            made[name] = convert(value)
    return kind(**made)


_ABSENT = object()


@cache
def _form(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The conversion of each field, None where a value stays as it is, and what fields without a default have
    if no value is given."""
    conversions, empty = {}, {}
    for each in fields(kind):
        item, optional, several = _shape(each.type)
        conversions[each.name] = _conversion(item, several)
        if each.default is MISSING:
            empty[each.name] = () if several else None if optional else _nothing(item)
    return conversions, empty


def _shape(hint: Any) -> tuple[Any, bool, bool]:
    """The bare type of a field, whether it may be None, whether it is an array."""
    optional = NoneType in get_args(hint)
    bare = hint
    if optional:
        bare = next(it for it in get_args(hint) if it is not NoneType)
    several = get_origin(bare) is tuple
    return (get_args(bare)[0] if several else bare), optional, several


def _conversion(item: Any, several: bool) -> Any:
    if is_dataclass(item):
        return _rows(item) if several else _row(item)
    if several:
        return tuple
    if item is WireError:
        return _error
    return _time if _is(item, timedelta) else None


def _row(item: Any) -> Callable[[Any], Any]:
    return lambda value: filled(item, value) if isinstance(value, dict) else value


def _rows(item: Any) -> Callable[[Any], Any]:
    def rows(values: Iterable[Any]) -> Any:
        return tuple([filled(item, one) if isinstance(one, dict) else one for one in values])

    return rows


def _error(value: Any) -> Any:
    return _WIRE_ERRORS[value] if isinstance(value, ErrorCode) else value


def _time(value: Any) -> Any:
    return value * MILLISECOND if isinstance(value, int) else value


def _nothing(item: Any) -> Any:
    if item is WireError:
        return WireError.none
    return next((empty for kind, empty in _EMPTY.items() if _is(item, kind)), None)


def _is(item: Any, kind: type) -> bool:
    """kio's number types are classes made with a metaclass: only their bases identify them."""
    return isinstance(item, type) and (issubclass(item, kind) or kind in item.__mro__)


# ---- what most messages have: topics with their partitions


def by_topic(
    rows: Iterable[tuple[str, Any]], partitions: str = "partitions", topic: str = "name"
) -> list[dict[str, Any]]:
    """(topic, what is said of one partition) as one dictionary for each topic, in their order.

    Args:
        rows: the pairs.
        partitions: kio's name of the array of a topic.
        topic: kio's name of a topic's name.
    """
    return [{topic: name, partitions: each} for name, each in grouped(rows).items()]


def grouped(rows: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """(topic, of one partition) as topic -> its partitions, in the order in which they come."""
    topics: dict[str, list[Any]] = {}
    for topic, value in rows:
        topics.setdefault(topic, []).append(value)
    return topics


def keyed(
    topics: Iterable[Any],
    partitions: str = "partitions",
    topic: str = "name",
    number: str = "partition_index",
) -> list[tuple[TopicPartition, Any]]:
    """The opposite of `by_topic`: what a message of kio's says of each partition.

    Args:
        topics: of the message.
        partitions: as in `by_topic`.
        topic: as in `by_topic`.
        number: kio's name of a partition's number; not looked at where the array has nothing but numbers.
    """
    return [
        (TopicPartition(getattr(each, topic), row if isinstance(row, int) else getattr(row, number)), row)
        for each in topics
        for row in getattr(each, partitions)
    ]


def keys_of(topics: Iterable[Any] | None, partitions: str, topic: str = "name") -> Any:
    """The partitions that a message names by their numbers; None, which means all, stays None."""
    return None if topics is None else tuple(key for key, _ in keyed(topics, partitions, topic))


def plain(entity: Any) -> Any:
    """A response as dictionaries, lists and numbers: errors by name, times in milliseconds, bytes in hex."""
    if isinstance(entity, Enum):  # before int: kio's errors are both
        return entity.name.upper()
    if entity is None or isinstance(entity, bool | int | float | str):
        return entity
    if isinstance(entity, bytes | bytearray):
        return entity.hex()
    if isinstance(entity, tuple | list):
        return [plain(each) for each in entity]
    if isinstance(entity, timedelta):
        return entity // timedelta(milliseconds=1)
    if isinstance(entity, UUID | datetime):
        return str(entity)
    assert is_dataclass(entity), f"no plain form of {type(entity).__name__}"
    return {each.name: plain(getattr(entity, each.name)) for each in fields(entity)}

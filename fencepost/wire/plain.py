"""Messages as plain data: requests from dictionaries, answers to dictionaries.

Owns the walk over kio's classes by their fields. Must not know what a message means. It is for callers that
choose the fields of a request (fencepost/conformance); our clients translate by outward.py.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

from fencepost.wire.schemas import request_schema

_EMPTY: dict[Any, Any] = {str: "", bytes: b"", bool: False, int: 0, float: 0.0, timedelta: timedelta(0)}


def request(key: int, version: int, values: Mapping[str, Any]) -> Any:
    """A request of this API and version. values: by kio's names of fields, nested as dictionaries and lists,
    times in milliseconds. Fields that this version lacks are left out; those without a value take the
    schema's default, or nothing, zero or empty.
    """
    return _filled(request_schema(key, version), values)


def _filled(kind: Any, values: Mapping[str, Any]) -> Any:
    made: dict[str, Any] = {}
    for each in fields(kind):
        item, optional, several = _shape(each.type)
        if each.name in values:
            value = values[each.name]
            if value is None:
                made[each.name] = None
            elif several:
                made[each.name] = tuple(_one(item, one) for one in value)
            else:
                made[each.name] = _one(item, value)
        elif each.default is MISSING:
            made[each.name] = () if several else None if optional else _nothing(item)
    return kind(**made)


def _shape(hint: Any) -> tuple[Any, bool, bool]:
    """The bare type of a field, whether it may be None, whether it is an array."""
    optional = NoneType in get_args(hint)
    bare = hint
    if optional:
        bare = next(it for it in get_args(hint) if it is not NoneType)
    several = get_origin(bare) is tuple
    return (get_args(bare)[0] if several else bare), optional, several


def _one(item: Any, value: Any) -> Any:
    if is_dataclass(item) and isinstance(value, Mapping):
        return _filled(item, value)
    if _is(item, timedelta) and isinstance(value, int):
        return timedelta(milliseconds=value)
    return value


def _nothing(item: Any) -> Any:
    return next((empty for kind, empty in _EMPTY.items() if _is(item, kind)), None)


def _is(item: Any, kind: type) -> bool:
    """kio's number types are classes made with a metaclass: only their bases identify them."""
    return isinstance(item, type) and (issubclass(item, kind) or kind in item.__mro__)


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

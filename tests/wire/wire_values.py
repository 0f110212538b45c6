"""Random messages of kio's classes, and the bytes that its writer makes of them."""

import io
import random
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

LIMITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def encoded(entity: Any) -> bytes:
    """As kio writes it."""
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def random_entity(kind: Any, rng: random.Random) -> Any:
    """A message of this class; arrays have up to two elements."""
    return kind(**{each.name: _value(each, rng) for each in fields(kind)})


def _value(each: Any, rng: random.Random) -> Any:
    optional = NoneType in get_args(each.type)
    if optional and "tag" not in each.metadata and rng.random() < 0.3:
        return None
    bare = each.type
    if get_origin(bare) is not tuple:
        bare = next((it for it in get_args(bare) if it is not NoneType), bare)
    count = rng.randrange(3) if get_origin(bare) is tuple else None
    kafka_type = each.metadata.get("kafka_type")

    def one() -> Any:
        return _primitive(kafka_type, rng) if kafka_type else random_entity(item, rng)

    item = get_args(bare)[0] if count is not None else bare
    assert kafka_type or is_dataclass(item)
    return one() if count is None else tuple(one() for _ in range(count))


def _primitive(kafka_type: str, rng: random.Random) -> Any:
    if kafka_type in LIMITS:
        return rng.choice((-1, 0, 1, 2 ** LIMITS[kafka_type] - 1, -(2 ** LIMITS[kafka_type])))
    if kafka_type.startswith("uint"):
        return rng.randrange(2 ** int(kafka_type[4:]))
    return {
        "bool": lambda: rng.random() < 0.5,
        "float64": lambda: rng.random(),
        "uuid": lambda: UUID(int=rng.randrange(1, 2**128)),
        "error_code": lambda: rng.choice(list(ErrorCode)),
        "timedelta_i32": lambda: timedelta(milliseconds=rng.randrange(-1, 100_000)),
        "timedelta_i64": lambda: timedelta(milliseconds=rng.randrange(-1, 2**40)),
        "datetime_i64": lambda: datetime.fromtimestamp(rng.randrange(2**31), UTC),
        "string": lambda: rng.choice(("", "t", "ü" * 70)),
        "bytes": lambda: rng.randbytes(rng.choice((0, 1, 200))),
        "records": lambda: rng.randbytes(rng.choice((0, 70, 300))),
    }[kafka_type]()

"""Odd messages: every kind, every field, from values that are nearly right to values that are absurd.

Owns what is odd. Must not know brokers: what they said lately is put into the pool by whoever listens. A
value is drawn by its declared type and its name, so that a new kind of message or a new field is fuzzed
without a line here.
"""

import random
from collections.abc import Sequence
from enum import Enum
from functools import cache
from struct import pack_into
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from attrs import define, field
from crc32c import crc32c

from fencepost.impl.log.batch.record_batch import CODECS, Header, Record, encode_batch
from fencepost.impl.messages import broker_api
from fencepost.impl.messages.broker_api import Message
from fencepost.impl.messages.consumer_protocol import Subscription, encode_subscription

KINDS: tuple[Any, ...] = get_args(broker_api.Message)
NUMBERS = (
    -(1 << 63), -(1 << 31) - 1, -(1 << 31), -3, -2, -1, 0, 1, 2, 3, 5, 64, 127, 1_000, 1_000_000, 10**9,
    (1 << 31) - 1, 1 << 31, (1 << 53) + 1, (1 << 63) - 2, (1 << 63) - 1,
)  # fmt: skip
TEXTS = (
    "",
    "t",
    "c",
    "g",
    "range",
    "consumer",
    "__consumer_offsets",
    ".",
    "..",
    "a/b",
    "../t",
    "\0",
    "ünïcödé",
    "\U0001f600" * 9,
    "t-0",
    "x" * 249,
    "x" * 250,
    "x" * 300,
    "y" * 32_767,
    "y" * 32_768,
    "z" * 70_000,
    "t" * 5_000,
)
KEPT = 40
"""Values of one name in the pool; the oldest goes first."""
SANE = 0.75
"""How often a field is one that a broker said lately, or a small one."""
HEADER_FIELDS = (
    (">q", 0),
    (">i", 8),
    (">i", 12),
    (">b", 16),
    (">h", 21),
    (">i", 23),
    (">q", 27),
    (">q", 35),
    (">q", 43),
    (">h", 51),
    (">i", 53),
    (">i", 57),
)
"""Form and place of each field of a batch's header, but for the checksum."""


@define
class Odd:
    """draw: the only randomness. pool: by a field's name, what brokers said lately."""

    draw: random.Random
    pool: dict[str, list[Any]] = field(factory=dict)

    def learn(self, message: Any) -> None:
        """Take the fields of a message that a broker sent into the pool."""
        hints = get_type_hints(type(message))
        for name in message.__struct_fields__:
            self._keep(name, hints[name], getattr(message, name))

    def _keep(self, name: str, hint: Any, value: Any) -> None:
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            for one in value[:5]:
                self._keep(name, hint, one)
        elif hasattr(value, "__struct_fields__"):
            self.learn(value)
        elif value is not None:
            kept = self.pool.setdefault(name, [])
            if value not in kept:
                kept.append(value)
                del kept[:-KEPT]

    def message(self, kinds: Sequence[Any] = KINDS) -> Message:
        """A message of one of these kinds."""
        kind = self.draw.choice(kinds)
        made: Message = self._value(kind, "", 0)
        return made

    # ---- values

    def _value(self, hint: Any, name: str, depth: int) -> Any:
        kept = self.pool.get(name)
        arguments = get_args(hint)
        if get_origin(hint) in (Union, UnionType):
            (inner,) = (one for one in arguments if one is not type(None))
            return None if self.draw.random() < 0.4 else self._value(inner, name, depth)
        if hint is int:
            return self._number(kept)
        if hint is str:
            return self._text(kept)
        if hint is bytes:
            return self._bytes(kept, name)
        if hint is bool:
            return self.draw.random() < 0.5
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self.draw.choice(list(hint))
        if get_origin(hint) is tuple and arguments[1:] == (...,):
            size = self.draw.choice((0, 1, 1, 1, 2, 3, 3 if depth else 100))
            return tuple(self._value(arguments[0], name, depth + 1) for _ in range(size))
        if get_origin(hint) is tuple:
            return tuple(self._value(one, name, depth + 1) for one in arguments)
        fields = _fields(hint)
        return hint(**{each: self._value(inner, each, depth + 1) for each, inner in fields})

    def _number(self, kept: list[Any] | None) -> int:
        if self.draw.random() < SANE:
            known = [one for one in kept or () if type(one) is int]
            near = self.draw.choice(known) + self.draw.choice((0, 0, 0, 0, 1, -1)) if known else 0
            return (
                near if known and -(1 << 63) <= near < 1 << 63 else self.draw.choice((-1, 0, 1, 2, 3, 1_000))
            )
        return self.draw.choice(NUMBERS)

    def _text(self, kept: list[Any] | None) -> str:
        if self.draw.random() < SANE:
            known = [one for one in kept or () if type(one) is str]
            return str(self.draw.choice(known)) if known else self.draw.choice(TEXTS[1:7])
        return self.draw.choice(TEXTS)

    def _bytes(self, kept: list[Any] | None, name: str) -> bytes:
        if name == "records":
            return self.records()
        choice = self.draw.random()
        if choice < 0.3 and kept:
            return bytes(self.draw.choice(kept))
        if choice < 0.6:
            return encode_subscription(Subscription(topics=("t", self.draw.choice(TEXTS[:9]))))
        return self.draw.randbytes(self.draw.choice((0, 1, 2, 7, 30, 300)))

    # ---- batches

    def records(self) -> bytes:
        """A batch, or several: good, changed in its header or its records under a right checksum, cut off, or
        none at all."""
        data = b"".join(self._batch() for _ in range(self.draw.choice((1, 1, 1, 1, 1, 0, 2, 3))))
        if self.draw.random() < 0.1 and data:
            data = data[: self.draw.randrange(len(data))]
        if self.draw.random() < 0.05:
            data = self.draw.randbytes(self.draw.randrange(200))
        return data

    def _batch(self) -> bytes:
        draw = self.draw
        numbered = draw.random() < 0.4
        offsets = draw.choice(((0,), (0, 1, 2), (0, 3), tuple(range(30))))
        base = draw.choice(
            (0, 0, 0, *[one for one in self.pool.get("log_end_offset", ()) if 0 <= one < 1 << 62])
        )
        data = bytearray(
            encode_batch(
                [self._record(base + offset) for offset in offsets],
                base_offset=base,
                leader_epoch=draw.choice((-1, 0, 0, 1, 5)),
                codec=draw.choice(CODECS),
                producer_id=draw.choice((0, 1, 1_000)) if numbered else -1,
                producer_epoch=draw.choice((0, 0, 1)) if numbered else -1,
                base_sequence=draw.choice((0, 1, 3, (1 << 31) - 1)) if numbered else -1,
                transactional=draw.random() < 0.1,
                control=draw.random() < 0.1,
            )
        )
        if draw.random() < 0.4:
            form, place = draw.choice(HEADER_FIELDS)
            bits = {"q": 63, "i": 31, "h": 15, "b": 7}[form[1]]
            number = draw.choice([one for one in NUMBERS if -(1 << bits) <= one < 1 << bits])
            pack_into(form, data, place, number)
        if draw.random() < 0.25:
            place = draw.randrange(61, len(data))
            change = draw.choice((b"", draw.randbytes(1), draw.randbytes(9), b"\xff" * 12, b"\0" * 9))
            data[place : place + draw.randrange(9)] = change
            pack_into(">i", data, 8, len(data) - 12)
        if draw.random() < 0.95:
            pack_into(">I", data, 17, crc32c(data[21:]))
        return bytes(data)

    def _record(self, offset: int) -> Record:
        draw = self.draw
        headers = (Header(draw.choice(("", "h", "value-id")), draw.choice((None, b"", b"7"))),)
        return Record(
            offset,
            draw.choice((-1, 0, 1_000, 1 << 40)),
            draw.choice((None, b"", b"k", b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\2\0\1g")),
            draw.choice((None, b"", b"12", b"v" * 200, b"\0\3\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\0\0\0\0\0\0\1")),
            headers if draw.random() < 0.1 else (),
        )


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    names = kind._fields if hasattr(kind, "_fields") else kind.__struct_fields__
    return tuple((name, hints[name]) for name in names)


def as_sender(message: Message, source: int) -> Message:
    """A peer that names itself: the listener refuses other names, which tests/impl/runtime/test_greeting.py
    shows."""
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    named = {name: source for name in ("replica_id", "controller_id", "broker_id") if name in values}
    made: Message = type(message)(**values | named)
    return made

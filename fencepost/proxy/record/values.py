"""Value ids of records as they pass: keyed hashes of what is in them, so that equal ones compare and nothing
of them is kept.

Owns what a value id is made of. Must not know requests, or how records are in a batch. An
id has 62 bits, from FOREIGN on. The upper 30 are a keyed hash (BLAKE2b) of the record's bytes from its key's
length to its end: key, value and headers. The lower 32 are of the same hash, and for a record of an
idempotent producer mixed with producer id, epoch and sequence, which are in the batch wherever it goes: two
records of equal content have two ids then, and a record keeps its id from the request to the log to whoever
reads it. Without idempotence records alike have the same id.
"""

from collections.abc import Iterator
from enum import StrEnum
from hashlib import blake2b

from attrs import frozen

from fencepost.impl.log.batch.header import NO_PRODUCER_ID, BatchHeader
from fencepost.impl.log.batch.record_batch import each_body, split_body
from fencepost.impl.log.batch.record_walk import nullable_bytes
from fencepost.impl.log.batch.varint import encode_varint
from fencepost.impl.log.values import FOREIGN

KEY_BYTES = 32
TAP_HEADER = "fencepost-id"
"""The header of a record in which a tap says which send it was (docs/how-to/blame.md)."""
LONGEST_TAP_ID = 200
_TAP_BYTES = TAP_HEADER.encode()
CONTENT_SHIFT, LOW, _LEFT_OUT = 32, (1 << 32) - 1, 2
SEQUENCES = 1 << 31
"""After the largest sequence 0 comes again (KIP-98)."""
_OF_SEQUENCE, _OF_EPOCH, _OF_PRODUCER = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
"""Odd numbers: a product with one, modulo 2^32, is different for every factor."""


class Kept(StrEnum):
    """What is kept of a record. FULL: all of it, in files of their own; HASH: a keyed hash; SIZE: how long it
    is."""

    FULL = "full"
    HASH = "hash"
    SIZE = "size"


@frozen
class Content:
    """A record in full."""

    value_id: int
    key: bytes | None
    # Value and headers, as they are in the batch.
    rest: bytes


@frozen(kw_only=True)
class Values:
    """key: of the hash."""

    key: bytes
    kept: Kept = Kept.HASH

    def content(self, key: bytes | None, value: bytes | None, headers: bytes = b"\x00") -> int:
        """The part of a value id that says what is in a record; headers: as they are in a batch."""
        return self._hash(_field(key) + _field(value) + headers) >> _LEFT_OUT + CONTENT_SHIFT

    def key_text(self, key: bytes | None) -> str | None:
        """What is written of a record's key."""
        if key is None:
            return None
        if self.kept is Kept.FULL:
            return key.decode("utf-8", "backslashreplace")
        if self.kept is Kept.SIZE:
            return str(len(key))
        return blake2b(key, digest_size=8, key=self.key).hexdigest()

    def _hash(self, body: bytes) -> int:
        if self.kept is Kept.SIZE:
            return len(body) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
        return int.from_bytes(blake2b(body, digest_size=8, key=self.key).digest(), "big")

    def of_batch(self, data: bytes, header: BatchHeader) -> tuple[list[int], list[int] | None]:
        """The value ids of a batch's records, and their offset deltas.

        Args:
            data: the bytes that hold the batch.
            header: of the batch.

        Returns:
            (ids, deltas); deltas None: 0, 1, 2, ...

        Raises:
            CorruptBatchError: if it cannot be decoded.
        """
        ids: list[int] = []
        deltas: list[int] = []
        append, add, digest, key = ids.append, deltas.append, blake2b, self.key
        plain = header.producer_id == NO_PRODUCER_ID
        mixed = header.producer_id * _OF_PRODUCER + header.producer_epoch * _OF_EPOCH
        first, sized = header.base_sequence, self.kept is Kept.SIZE
        for delta, body in each_body(data, header):
            number = (
                self._hash(body)
                if sized
                else int.from_bytes(digest(body, digest_size=8, key=key).digest(), "big")
            )
            if plain:
                append(FOREIGN | number >> _LEFT_OUT)
            else:
                low = number ^ ((first + delta) % SEQUENCES * _OF_SEQUENCE + mixed)
                append(FOREIGN | (number >> _LEFT_OUT + CONTENT_SHIFT) << CONTENT_SHIFT | low & LOW)
            add(delta)
        return ids, None if len(deltas) == header.last_offset_delta + 1 else deltas

    def keys_of(self, data: bytes, header: BatchHeader) -> list[str | None]:
        """What is written of each record's key.

        Args:
            data: the bytes that hold the batch.
            header: of the batch.

        Raises:
            CorruptBatchError: if it cannot be decoded.
        """
        return [self.key_text(content.key) for content in self.contents(data, header, [])]

    def tap_ids(self, data: bytes, header: BatchHeader) -> list[str | None] | None:
        """The ids that a tap has put into the records of a batch; None if there is none.

        Args:
            data: the bytes that hold the batch.
            header: of the batch.

        Raises:
            CorruptBatchError: if it cannot be decoded.
        """
        if header.codec == "none" and data.find(_TAP_BYTES, header.position, header.end_position) < 0:
            return None
        found = [_tap_id(content.rest) for content in self.contents(data, header, [])]
        return found if any(found) else None

    def contents(self, data: bytes, header: BatchHeader, ids: list[int]) -> Iterator[Content]:
        """Each record in full, with its id of `ids` (0 beyond them). Raises CorruptBatchError."""
        for place, (_, body) in enumerate(each_body(data, header)):
            yield Content(ids[place] if place < len(ids) else 0, *split_body(body, header))


def _tap_id(rest: bytes) -> str | None:
    """The id in a record's value and headers; the last one counts."""
    at = rest.rfind(_TAP_BYTES)
    if at < 0:
        return None
    try:
        found, _ = nullable_bytes(rest, at + len(_TAP_BYTES))
    except (IndexError, ValueError):
        return None
    return found.decode("utf-8", "backslashreplace") if found and len(found) <= LONGEST_TAP_ID else None


def content_of(value_id: int) -> int:
    """The part of a value id that says what is in the record."""
    return (value_id & FOREIGN - 1) >> CONTENT_SHIFT


def _field(content: bytes | None) -> bytes:
    return b"\x01" if content is None else encode_varint(len(content)) + content

"""Value ids of records as they pass: keyed hashes of what is in them, so that equal ones compare and nothing
of them is kept.

Owns the walk over the bytes of a batch's records, and what a value id is made of. Must not know requests. An
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

from fencepost.impl.log.batch.compression import DecompressionError, decompress
from fencepost.impl.log.batch.header import (
    HEADER_SIZE,
    NO_PRODUCER_ID,
    BatchHeader,
    CorruptBatchError,
    Damage,
    read_header,
)
from fencepost.impl.log.batch.varint import decode_varint, encode_varint
from fencepost.impl.log.values import FOREIGN

KEY_BYTES = 32
TAP_HEADER = "fencepost-id"
"""The header of a record in which a tap says which send it was (docs/how-to/proxy.md)."""
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
    rest: bytes
    """Value and headers, as they are in the batch."""


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
        try:
            payload, position = self._payload(data, header)
            for start, end, delta in _bodies(payload, position, header.count):
                body = payload[start:end]
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
        except (IndexError, ValueError, DecompressionError) as error:
            raise _bad(header, error) from None
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
        try:
            payload, position = self._payload(data, header)
            for place, (start, end, _) in enumerate(_bodies(payload, position, header.count)):
                length, after = decode_varint(payload, start)
                key = None if length < 0 else payload[after : after + length]
                rest = payload[after + max(0, length) : end]
                yield Content(ids[place] if place < len(ids) else 0, key, rest)
        except (IndexError, ValueError, DecompressionError) as error:
            raise _bad(header, error) from None

    def _payload(self, data: bytes, header: BatchHeader) -> tuple[bytes, int]:
        if header.codec == "none":
            return data, header.position + HEADER_SIZE
        return decompress(header.codec, data[header.position + HEADER_SIZE : header.end_position]), 0


def _tap_id(rest: bytes) -> str | None:
    """The id in a record's value and headers; the last one counts."""
    at = rest.rfind(_TAP_BYTES)
    if at < 0:
        return None
    try:
        length, start = decode_varint(rest, at + len(_TAP_BYTES))
    except (IndexError, ValueError):
        return None
    if not 0 < length <= min(LONGEST_TAP_ID, len(rest) - start):
        return None
    return rest[start : start + length].decode("utf-8", "backslashreplace")


def content_of(value_id: int) -> int:
    """The part of a value id that says what is in the record."""
    return (value_id & FOREIGN - 1) >> CONTENT_SHIFT


def _bad(header: BatchHeader, error: Exception) -> CorruptBatchError:
    return CorruptBatchError(
        Damage.RECORDS,
        header.position,
        expected=f"{header.count} records",
        seen=str(error) or "too few bytes",
    )


def _field(content: bytes | None) -> bytes:
    return b"\x01" if content is None else encode_varint(len(content)) + content


def _bodies(data: bytes, position: int, count: int) -> Iterator[tuple[int, int, int]]:
    """(start of the key's length, end, offset delta) of each record. Raises IndexError, ValueError for what
    is none."""
    available = len(data)
    for _ in range(count):
        byte = data[position]
        if byte < 0x80:
            length, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            length, position = decode_varint(data, position)
        end = position + length
        if length < 0 or end > available:
            raise ValueError(f"a record of {length} bytes")
        position += 1  # attributes
        while data[position] & 0x80:  # the time delta, which is no part of the content
            position += 1
        position += 1
        byte = data[position]
        if byte < 0x80:
            delta, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            delta, position = decode_varint(data, position)
        if position > end:
            raise ValueError(f"a record with an offset that ends {position - end} bytes after it")
        yield position, end, delta
        position = end


def whole_batches(data: bytes) -> tuple[list[BatchHeader], str]:
    """The headers of the whole batches at the start of `data`, and why the rest is none ("" if there is no
    rest). An answer to a fetch may end inside of a batch. Checksums are the reader's business."""
    headers: list[BatchHeader] = []
    position, end = 0, len(data)
    while position < end:
        try:
            header = read_header(data, position, check_crc=False)
        except CorruptBatchError as error:
            return headers, str(error)
        headers.append(header)
        position = header.end_position
    return headers, ""

"""The record batch by its documentation: a naive reader and writer of format version 2.

Owns the bytes (https://kafka.apache.org/documentation/#recordbatch). Shares no code with the log's reader and
writer, and must not know them: batch_comparison.py compares the two.
"""

from collections.abc import Sequence
from typing import Any

HEADER_BYTES, LENGTH_END, CRC_AT, COVERED = 61, 12, 17, 21
FIELDS = (8, 4, 4, 1, 4, 2, 4, 8, 8, 8, 2, 4, 4)
"""Bytes of each field of the header: base offset, length, leader epoch, magic, checksum, attributes, last
offset delta, base and largest time, producer id and epoch, base sequence, count."""
LONGEST = 10
"""Bytes of a number of 64 bits."""
LARGEST = (1 << 63) - 1
POLYNOMIAL = 0x82F63B78
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LOG_APPEND, TRANSACTIONAL, CONTROL, HORIZON = 0x08, 0x10, 0x20, 0x40


class NoBatchError(Exception):
    """The bytes are not what the documentation says."""


# ---- reading


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, in zigzag code.

    Args:
        data: holds it.
        at: where it begins.

    Returns:
        the number, and the position after it.

    Raises:
        NoBatchError: if it is cut off, or longer than 64 bits.
    """
    value = 0
    for place in range(LONGEST):
        if at + place >= len(data):
            raise NoBatchError
        value |= (data[at + place] & 0x7F) << 7 * place
        if data[at + place] < 0x80:
            if value >> 64:
                raise NoBatchError
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise NoBatchError


def bytes_at(data: bytes, at: int, *, null: bool = True) -> tuple[bytes | None, int]:
    """Bytes after their length.

    Args:
        data: holds them.
        at: where the length begins.
        null: whether the length may be -1, for none.

    Returns:
        the bytes, and the position after them.

    Raises:
        NoBatchError: if they are cut off.
    """
    size, at = number_at(data, at)
    if size < -null or at + size > len(data):
        raise NoBatchError
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def records_in(data: bytes, count: int, last_delta: int) -> list[tuple[Any, ...]]:
    """The records of a batch: offset delta, time delta, key, value, headers.

    Args:
        data: the records, not compressed.
        count: their number.
        last_delta: the largest offset delta.
    """
    at, found, before = 0, [], -1
    for _ in range(count):
        size, at = number_at(data, at)
        end, headers = at + size, []
        time, at = number_at(data, at + 1)
        delta, at = number_at(data, at)
        key, at = bytes_at(data, at)
        value, at = bytes_at(data, at)
        several, at = number_at(data, at)
        if several < 0 or several > len(data):
            raise NoBatchError
        for _ in range(several):
            name, at = bytes_at(data, at, null=False)
            content, at = bytes_at(data, at)
            headers.append((name, content))
        if at != end or not before < delta <= last_delta:
            raise NoBatchError
        before = delta
        found.append((delta, time, key, value, headers))
    if at != len(data):
        raise NoBatchError
    return found


def header_in(data: bytes) -> tuple[int, ...]:
    """The fields of the header of the first batch. Raises NoBatchError.

    Args:
        data: a batch, and whatever follows.
    """
    fields = fields_in(data)
    base, length, epoch, magic, crc, attributes, delta, *_, count = fields
    size = LENGTH_END + length
    if not HEADER_BYTES <= size <= len(data) or magic != 2 or crc % (1 << 32) != crc32c(data[COVERED:size]):
        raise NoBatchError
    if base < 0 or epoch < -1 or attributes & 7 >= len(CODECS) or not 0 <= delta <= LARGEST - 1 - base:
        raise NoBatchError
    if not 0 <= count <= delta + 1:
        raise NoBatchError
    return fields


def fields_in(data: bytes) -> tuple[int, ...]:
    if len(data) < HEADER_BYTES:
        raise NoBatchError
    at, fields = 0, []
    for size in FIELDS:
        fields.append(int.from_bytes(data[at : at + size], signed=True))
        at += size
    return tuple(fields)


def crc32c(data: bytes) -> int:
    """The checksum, byte by byte (RFC 3720, appendix B.4)."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def _entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ POLYNOMIAL * (value & 1)
    return value


_TABLE = tuple(map(_entry, range(256)))


# ---- writing


def varint(value: int, padding: int = 0) -> bytes:
    """padding: bytes more than it needs."""
    rest, out = (value << 1 ^ value >> 63) % (1 << 64), bytearray()
    while rest > 0x7F or padding > 0:
        out.append(rest & 0x7F | 0x80)
        padding -= rest <= 0x7F
        rest >>= 7
    return bytes((*out, rest))


def nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def written(fields: Sequence[int], body: bytes) -> bytes:
    """A batch with these fields; length and checksum are made to fit.

    Args:
        fields: of the header.
        body: the records as bytes.
    """
    parts = [(value % (1 << 8 * size)).to_bytes(size) for value, size in zip(fields, FIELDS, strict=True)]
    parts[1] = (HEADER_BYTES - LENGTH_END + len(body)).to_bytes(4)
    parts[4] = crc32c(b"".join(parts[5:]) + body).to_bytes(4)
    return b"".join(parts) + body

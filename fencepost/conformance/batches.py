"""Record batches with freely chosen fields, valid and invalid.

Owns the bytes of format 2. Must not know how a broker treats them. impl/log writes only valid batches. Here
each field of the header can be wrong, and the checksum is right unless the caller wants a wrong one.
"""

import struct
from collections.abc import Sequence

from attrs import frozen
from crc32c import crc32c

from fencepost.impl.log.batch.compression import compress
from fencepost.impl.log.batch.header import HEADER_SIZE, LENGTH_END, readable_headers
from fencepost.impl.log.batch.varint import encode_varint

TIME_MS = 1_600_000_000_000
"""Timestamp of the records, milliseconds since 1970. The topics of the cases keep records for ever."""
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64
_PREFIX = struct.Struct(">qiib")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_NULL = -1


@frozen(kw_only=True)
class Rec:
    """One record as it is written."""

    value: bytes | None = b"v"
    key: bytes | None = None
    # Offset and milliseconds since the batch's first.
    delta: int = 0
    time: int = 0
    headers: Sequence[tuple[bytes | None, bytes | None]] = ()
    # Bytes after its last field; its length includes them.
    extra: bytes = b""
    # The length to write; None: the true one.
    # Instead of the true one.
    length: int | None = None

    def encoded(self) -> bytes:
        """Its bytes."""
        body = b"".join(
            (
                b"\x00",
                encode_varint(self.time),
                encode_varint(self.delta),
                _bytes(self.key),
                _bytes(self.value),
                encode_varint(len(self.headers)),
                *(_bytes(part) for header in self.headers for part in header),
                self.extra,
            )
        )
        return encode_varint(len(body) if self.length is None else self.length) + body


def _bytes(value: bytes | None) -> bytes:
    return encode_varint(_NULL) if value is None else encode_varint(len(value)) + value


def records(*values: bytes | None, key: bytes | None = None) -> list[Rec]:
    """One record a value, a millisecond apart.

    Args:
        values: of the records; None: a tombstone.
        key: of all of them.
    """
    return [Rec(value=value, key=key, delta=place, time=place) for place, value in enumerate(values)]


@frozen(kw_only=True)
class Batch:
    """One batch. A field that is None has the value that fits its records."""

    # The records of the batch.
    records: Sequence[Rec] = (Rec(),)
    # Name of the compression codec.
    codec: str = "none"
    # More bits than the codec's.
    attributes: int = 0
    # Header fields, as written.
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    # The number of records that the header names.
    count: int | None = None
    # The last offset delta that the header names.
    last_delta: int | None = None
    # Milliseconds since 1970.
    first_time: int = TIME_MS
    max_time: int | None = None
    # Producer id, its epoch, first sequence.
    producer: tuple[int, int, int] = (-1, -1, -1)
    # Added to the length that the header names.
    length_more: int = 0
    # Whether the checksum does not fit the batch.
    wrong_checksum: bool = False
    # Instead of the records, as they would be on the wire.
    body: bytes | None = None

    def encoded(self) -> bytes:
        """Its bytes."""
        written = b"".join(each.encoded() for each in self.records)
        body = compress(self.codec, written) if self.body is None else self.body
        codec = ("none", "gzip", "snappy", "lz4", "zstd").index(self.codec)
        times = [self.first_time + each.time for each in self.records] or [self.first_time]
        covered = _AFTER_CRC.pack(
            self.attributes | codec,
            len(self.records) - 1 if self.last_delta is None else self.last_delta,
            self.first_time,
            max(times) if self.max_time is None else self.max_time,
            *self.producer,
            len(self.records) if self.count is None else self.count,
        )
        checksum = crc32c(body, crc32c(covered)) ^ (1 if self.wrong_checksum else 0)
        length = HEADER_SIZE - LENGTH_END + len(body) + self.length_more
        head = _PREFIX.pack(self.base_offset, length, self.leader_epoch, self.magic)
        return head + struct.pack(">I", checksum) + covered + body


def good(*values: bytes | None, codec: str = "none", key: bytes | None = None) -> bytes:
    """A valid batch with these values. codec: its compression; key: of every record."""
    return Batch(records=records(*values, key=key), codec=codec).encoded()


def shape(data: bytes | None) -> list[list[int]]:
    """First offset, last offset and number of records of each whole batch, in the order fetched."""
    headers, _ = readable_headers(data or b"")
    return [[one.base_offset, one.last_offset, one.count] for one in headers]

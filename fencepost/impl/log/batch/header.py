"""The header of Kafka's record batch, format version 2 (magic 2), and the check that a batch is complete and
undamaged.

Owns the 61 bytes before the records, the checksum, and the description of damage. Must not know records,
files or logs. Sources: KIP-98 (the format), KIP-534 (delete horizon),
https://kafka.apache.org/documentation/#recordbatch. Big-endian:

    byte  0  base offset              int64     21  attributes               int16
          8  length of what follows   int32     23  last offset delta        int32
         12  leader epoch             int32     27  base timestamp           int64
         16  magic                    int8      35  max timestamp            int64
         17  CRC-32C of byte 21 on    uint32    43  producer id              int64
                                                51  producer epoch           int16
                                                53  base sequence            int32
                                                57  number of records        int32, then the records,
                                                                             compressed as one

The checksum does not cover base offset and leader epoch, so that a broker can set them without touching the
rest. A flipped bit in them is detected only by comparing neighbouring batches. A compacted batch keeps its
last offset delta (and its producer's sequence numbers), even if few records are left in it.
"""

import struct
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NoReturn

from attrs import frozen
from crc32c import crc32c

from fencepost.impl.log.batch.compression import CODECS
from fencepost.traces.errors import FencepostError
from fencepost.traces.making import maker_of

Bytes = bytes | bytearray | memoryview

MAGIC = 2
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
"""Bytes before the first record: 61."""
LENGTH_END = 12
"""The length field counts from here; this many bytes suffice to read the length of a batch."""
CRC_START = 21
"""The first byte that the checksum covers."""
MAGIC_AT = 16
"""The byte of the format version, in this format and in those before it."""
_LARGEST_SEQUENCE = (1 << 31) - 1
LARGEST_OFFSET = (1 << 63) - 1
"""Offsets are 64-bit numbers, the one after the last record's included."""
_BEFORE_CHECKSUM = struct.Struct(">qiibI")
KNOWN_HEADERS = 1024
"""The most headers that are cached: more than are in transit through a cluster at once."""

CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
"""Bits of a batch's attributes."""


class TimestampType(StrEnum):
    """Which side sets the records' times: the producer, or the broker for the whole batch at the append."""

    CREATE = "create"
    LOG_APPEND = "log append"


class Damage(StrEnum):
    """Kinds of damage of a batch."""

    TORN = "torn"
    """The bytes end inside it."""
    LENGTH = "length"
    MAGIC = "magic"
    CRC = "crc"
    HEADER = "header"
    """A field of the header has an impossible value."""
    RECORDS = "records"
    """The checksum is right but the records are invalid: they were written so."""


class CorruptBatchError(FencepostError):
    """A batch that is truncated, has a wrong checksum, or is invalid.

    position: of its first byte in the buffer. computed_crc: the checksum of its bytes, if that is what
    differs.
    """

    def __init__(
        self, damage: Damage, position: int, *, expected: str, seen: str, computed_crc: int | None = None
    ) -> None:
        self.damage, self.position, self.computed_crc = damage, position, computed_crc
        super().__init__(expected=expected, seen=seen, where=f"record batch at byte {position}")


@frozen(kw_only=True, weakref_slot=False)
class BatchHeader:
    """The fields of a batch header."""

    # First byte of the batch in the buffer that it was read from.
    position: int
    # Bytes of the batch, header included.
    size: int
    # First offset.
    base_offset: int
    # The leader epoch of the batch.
    leader_epoch: int
    # The format version, 2.
    magic: int = MAGIC
    # CRC-32C of byte 21 and following.
    crc: int
    # CODEC_MASK to DELETE_HORIZON.
    attributes: int
    # Last offset minus `base_offset`; not changed by compaction.
    last_offset_delta: int
    # The times of the records count from here (or the delete horizon).
    base_timestamp_ms: int
    # The largest timestamp.
    max_timestamp_ms: int
    # The producer id; -1 if not idempotent.
    producer_id: int
    # The producer epoch; -1 if not idempotent.
    producer_epoch: int
    # The sequence number of the first offset; -1 if not idempotent.
    base_sequence: int
    # The number of records; after compaction it may be smaller than the number of offsets.
    count: int

    @property
    def last_offset(self) -> int:
        """The last offset of the batch, also if its record was compacted away."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def end_position(self) -> int:
        """The first byte after the batch."""
        return self.position + self.size

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last offset; sequence numbers wrap from 2^31 - 1 to 0. -1 if there is
        none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _LARGEST_SEQUENCE

    @property
    def codec(self) -> str:
        """One of compression.CODECS; `unknown` only in a header that was not verified."""
        number = self.attributes & CODEC_MASK
        return CODECS[number] if number < len(CODECS) else f"unknown ({number})"

    @property
    def timestamp_type(self) -> TimestampType:
        """Which side set the times of the records."""
        return TimestampType.LOG_APPEND if self.attributes & LOG_APPEND_TIME else TimestampType.CREATE

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch has control records (control_records.py), which consumers do not see."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones of a compacted batch may be removed (KIP-534); None if that is not decided."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON else None


_make_header: Callable[..., BatchHeader] = maker_of(BatchHeader, keywords=False)


def read_headers(data: Bytes, *, check_crc: bool = True, start: int = 0) -> Iterator[BatchHeader]:
    """The headers of the batches in a buffer.

    Args:
        data: the buffer.
        check_crc: also verify the checksums.
        start: the first byte of a batch.

    Returns:
        the headers, in order.

    Raises:
        CorruptBatchError: at the first bad batch, after yielding those before it.
    """
    position, end = start, len(data)
    while position < end:
        header = read_header(data, position, check_crc=check_crc)
        yield header
        position += header.size


def readable_headers(data: Bytes) -> tuple[list[BatchHeader], str]:
    """The headers of the whole batches at the start of a buffer, as far as they can be read: an answer to a
    fetch may end inside of a batch. Checksums are not verified.

    Args:
        data: the buffer.

    Returns:
        (headers, why there are no more): "" if the last batch ends the buffer.
    """
    found: list[BatchHeader] = []
    try:
        found.extend(read_headers(data, check_crc=False))
    except CorruptBatchError as error:
        return found, str(error)
    return found, ""


def read_header(data: Bytes, position: int = 0, *, check_crc: bool = True) -> BatchHeader:
    """The header of one batch. The whole batch must be in the buffer.

    Args:
        data: the buffer.
        position: the first byte of the batch.
        check_crc: also verify the checksum over every byte.

    Returns:
        the header.

    Raises:
        CorruptBatchError: if the batch is bad.
    """
    available = len(data) - position
    if available < HEADER_SIZE:
        _refuse_torn(data, position, available)
    fields = HEADER.unpack_from(data, position)
    size = LENGTH_END + fields[1]
    if not HEADER_SIZE <= size <= available:
        _refuse_torn(data, position, available)
    if fields[3] != MAGIC:
        raise foreign_magic(position, fields[3])
    if check_crc:
        seen = crc32c(memoryview(data)[position + CRC_START : position + size])
        if seen != fields[4]:
            raise CorruptBatchError(
                Damage.CRC,
                position,
                expected=f"CRC-32C {fields[4]:08x}",
                seen=f"{seen:08x} of its bytes",
                computed_crc=seen,
            )
    return _checked_header(position, size, fields)


def size_at(data: Bytes, position: int) -> int:
    """The bytes of a batch by its length field, which every format has at the same place. The field may say
    anything.

    Args:
        data: the buffer; it must hold LENGTH_END bytes of the batch.
        position: the first byte of the batch.

    Returns:
        the size, the length field included.
    """
    return LENGTH_END + int.from_bytes(data[position + 8 : position + LENGTH_END], "big", signed=True)


def unchecked_header(data: Bytes, position: int = 0) -> BatchHeader:
    """The fields of a header that read_header refused because of its checksum or a field.

    Args:
        data: the buffer; it must hold the whole header.
        position: the first byte of the batch.

    Returns:
        the header, unverified.
    """
    fields = HEADER.unpack_from(data, position)
    return _header_of(position, LENGTH_END + fields[1], fields)


@lru_cache(maxsize=KNOWN_HEADERS)
def _checked_header(position: int, size: int, fields: tuple[int, ...]) -> BatchHeader:
    """The leader, every follower and every reader verify a batch in transit, mostly at the same position. One
    cached object serves them all."""
    header = _header_of(position, size, fields)
    _check(header)
    return header


def _header_of(position: int, size: int, fields: tuple[int, ...]) -> BatchHeader:
    """BatchHeader has its fields in their order on the wire, where the length is the second one."""
    return _make_header(position, size, fields[0], *fields[2:])


def header_before(body: bytes) -> bytes:
    """The bytes before the part that the checksum covers, with offset and epoch (and the checksum) as the
    producer left them."""
    return _BEFORE_CHECKSUM.pack(0, CRC_START - LENGTH_END + len(body), 0, MAGIC, 0)


def _refuse_torn(data: Bytes, position: int, available: int) -> NoReturn:
    """Raise CorruptBatchError if there are fewer bytes than a header or than the length field says, or if the
    length is impossible."""
    if available < LENGTH_END:
        raise CorruptBatchError(
            Damage.TORN, position, expected=f"{LENGTH_END} bytes up to its length", seen=f"{available} bytes"
        )
    size = size_at(data, position)
    if size >= HEADER_SIZE:
        raise CorruptBatchError(
            Damage.TORN, position, expected=f"a batch of {size} bytes", seen=f"{available} bytes"
        )
    magic = int.from_bytes(data[position + MAGIC_AT : position + MAGIC_AT + 1], "big", signed=True)
    if len(data) > position + MAGIC_AT and size > LENGTH_END and magic in (0, 1):
        raise foreign_magic(position, magic)
    raise CorruptBatchError(
        Damage.LENGTH,
        position,
        expected=f"a length of at least {HEADER_SIZE - LENGTH_END}",
        seen=str(size - LENGTH_END),
    )


def foreign_magic(position: int, magic: int) -> CorruptBatchError:
    """The error of a batch of another format version.

    Args:
        position: the first byte of the batch.
        magic: the version that it names.

    Returns:
        the error.
    """
    old = " (a message set of a Kafka before 0.11)" if magic in (0, 1) else ""
    return CorruptBatchError(Damage.MAGIC, position, expected=f"magic {MAGIC}", seen=f"{magic}{old}")


def _check(header: BatchHeader) -> None:
    """Check what the checksum does not prove: a writer's error, or a bit flip outside of it."""
    if header.base_offset < 0:
        wrong = ("a base offset of at least 0", header.base_offset)
    elif header.leader_epoch < NO_LEADER_EPOCH:
        wrong = ("a leader epoch of at least -1", header.leader_epoch)
    elif header.attributes & CODEC_MASK >= len(CODECS):
        wrong = (f"a codec of at most {len(CODECS) - 1}", header.attributes & CODEC_MASK)
    elif header.last_offset_delta < 0:
        wrong = ("a last offset delta of at least 0", header.last_offset_delta)
    elif header.next_offset > LARGEST_OFFSET:
        wrong = (f"offsets below {LARGEST_OFFSET}", header.last_offset)
    elif not 0 <= header.count <= header.last_offset_delta + 1:
        wrong = (f"0 to {header.last_offset_delta + 1} records", header.count)
    else:
        return
    raise CorruptBatchError(Damage.HEADER, header.position, expected=wrong[0], seen=str(wrong[1]))

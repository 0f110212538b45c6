"""The header of Kafka's record batch, format version 2 (magic 2): what a batch says about itself, and whether
its bytes are whole.

Owns the 61 bytes before the records, the checksum, and what is wrong with a bad batch. Must not know records,
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

Base offset and leader epoch stand outside the checksum, so that a broker can stamp them without touching the
rest; a flipped bit in them shows only against the neighbouring batches. A compacted batch keeps its last
offset delta (and its producer's sequence numbers) whatever records are left in it.
"""

import struct
from collections.abc import Iterator
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

_HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = _HEADER.size
"""Bytes before the first record: 61."""
LENGTH_END = 12
"""The length field counts from here; so many bytes tell how long a batch is."""
CRC_START = 21
"""The first byte that the checksum covers."""
_LARGEST_SEQUENCE = (1 << 31) - 1
LARGEST_OFFSET = (1 << 63) - 1
"""Offsets are 64-bit numbers, the one after the last record's included."""
_BEFORE_CHECKSUM = struct.Struct(">qiibI")
KNOWN_HEADERS = 1024
"""Headers that are remembered: more than are on their way through a cluster at once."""

CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
"""Bits of a batch's attributes."""


class TimestampType(StrEnum):
    """Who set the records' times: the producer, or the broker for the whole batch when it appended it."""

    CREATE = "create"
    LOG_APPEND = "log append"


class Damage(StrEnum):
    """What is wrong with a batch."""

    TORN = "torn"
    """The bytes end inside it."""
    LENGTH = "length"
    MAGIC = "magic"
    CRC = "crc"
    HEADER = "header"
    """A field of the header that cannot be (or is not covered by the checksum, and cannot be)."""
    RECORDS = "records"
    """The checksum holds, the records make no sense: written so."""


class CorruptBatchError(FencepostError):
    """A batch that is cut off, whose checksum does not hold, or that is none. position: of its first byte in
    the buffer. computed_crc: what its bytes give, if the checksum is what is wrong."""

    def __init__(
        self, damage: Damage, position: int, *, expected: str, seen: str, computed_crc: int | None = None
    ) -> None:
        self.damage, self.position, self.computed_crc = damage, position, computed_crc
        super().__init__(expected=expected, seen=seen, where=f"record batch at byte {position}")


@frozen(kw_only=True, weakref_slot=False)
class BatchHeader:
    """What a batch says about itself. position, size: bytes in the buffer that it was read from, header
    included. count: records in it, which after compaction may be fewer than the offsets it spans.
    base_timestamp_ms: what the records' times count from (or the delete horizon)."""

    position: int
    size: int
    base_offset: int
    leader_epoch: int
    magic: int = MAGIC
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> int:
        """The last offset that the batch spans, whether or not its record is still there."""
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
        """The sequence number of the last offset; they wrap from 2^31 - 1 to 0. -1 if there is none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _LARGEST_SEQUENCE

    @property
    def codec(self) -> str:
        """One of compression.CODECS; `unknown` only in a header that was read unchecked."""
        number = self.attributes & CODEC_MASK
        return CODECS[number] if number < len(CODECS) else f"unknown ({number})"

    @property
    def timestamp_type(self) -> TimestampType:
        """Whose times the records carry."""
        return TimestampType.LOG_APPEND if self.attributes & LOG_APPEND_TIME else TimestampType.CREATE

    @property
    def is_transactional(self) -> bool:
        """Part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Control records (control_records.py), which no consumer sees."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones of a compacted batch may go (KIP-534); None if that is not decided."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON else None


_make_header = maker_of(BatchHeader)


def read_headers(data: Bytes, *, check_crc: bool = True, start: int = 0) -> Iterator[BatchHeader]:
    """The headers of the batches from byte `start` to the end of `data`. Raises CorruptBatchError at the
    first bad one, after those before it."""
    position, end = start, len(data)
    while position < end:
        header = read_header(data, position, check_crc=check_crc)
        yield header
        position += header.size


def read_header(data: Bytes, position: int = 0, *, check_crc: bool = True) -> BatchHeader:
    """The header of the batch at `position`. Raises CorruptBatchError. check_crc: also look at every byte of
    the batch; without, the whole batch must still be there."""
    available = len(data) - position
    if available < HEADER_SIZE:
        _refuse_torn(data, position, available)
    fields = _HEADER.unpack_from(data, position)
    size = LENGTH_END + fields[1]
    if not HEADER_SIZE <= size <= available:
        _refuse_torn(data, position, available)
    if fields[3] != MAGIC:
        raise _foreign(position, fields[3])
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


def unchecked_header(data: Bytes, position: int = 0) -> BatchHeader:
    """What a header says that read_header refused for its checksum or its fields. Its bytes must be there."""
    fields = _HEADER.unpack_from(data, position)
    return _header_of(position, LENGTH_END + fields[1], fields)


@lru_cache(maxsize=KNOWN_HEADERS)
def _checked_header(position: int, size: int, fields: tuple[int, ...]) -> BatchHeader:
    """A batch on its way is looked at by its leader, every follower and every reader, mostly at the same
    place: one object serves them all."""
    header = _header_of(position, size, fields)
    _check(header)
    return header


def _header_of(position: int, size: int, fields: tuple[int, ...]) -> BatchHeader:
    base_offset, _, leader_epoch, magic, crc, attributes, last_delta, base_ms, max_ms, *producer, count = (
        fields
    )
    producer_id, producer_epoch, base_sequence = producer
    return _make_header(
        position=position,
        size=size,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=last_delta,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=count,
    )


def header_before(body: bytes) -> bytes:
    """What stands before the part of a batch that the checksum covers, as if nobody had stamped it (nor
    computed the checksum)."""
    return _BEFORE_CHECKSUM.pack(0, CRC_START - LENGTH_END + len(body), 0, MAGIC, 0)


def _refuse_torn(data: Bytes, position: int, available: int) -> NoReturn:
    """Fewer bytes than a header has, or than the length says, or a length that no batch has."""
    if available < LENGTH_END:
        raise CorruptBatchError(
            Damage.TORN, position, expected=f"{LENGTH_END} bytes up to its length", seen=f"{available} bytes"
        )
    length = int.from_bytes(data[position + 8 : position + LENGTH_END], "big", signed=True)
    size = LENGTH_END + length
    if size >= HEADER_SIZE:
        raise CorruptBatchError(
            Damage.TORN, position, expected=f"a batch of {size} bytes", seen=f"{available} bytes"
        )
    magic = int.from_bytes(data[position + 16 : position + 17], "big", signed=True)
    if len(data) > position + 16 and length > 0 and magic in (0, 1):
        raise _foreign(position, magic)
    raise CorruptBatchError(
        Damage.LENGTH, position, expected=f"a length of at least {HEADER_SIZE - LENGTH_END}", seen=str(length)
    )


def _foreign(position: int, magic: int) -> CorruptBatchError:
    old = " (a message set of a Kafka before 0.11)" if magic in (0, 1) else ""
    return CorruptBatchError(Damage.MAGIC, position, expected=f"magic {MAGIC}", seen=f"{magic}{old}")


def _check(header: BatchHeader) -> None:
    """What a checksum does not tell: a writer's mistake, or a flip outside of it."""
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

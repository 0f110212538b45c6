"""The bytes of one segment, written by any broker and in any condition: its batches, and everything that is
not a batch.

Owns the walk through such a file and how much of it is in memory: CHUNK_BYTES, or one batch. Must not know
where files are (it reads from an open file, and only reads), offsets of a log, other files, or the
consequences of damage.

A batch with a wrong checksum or header is reported and skipped, because its length still says where the next
one begins. Damage that makes the length doubtful ends the walk. Messages of formats 0 and 1 (before Kafka
0.11, KIP-98) have their length at the same place: they are counted and skipped.
"""

import zlib
from collections.abc import Iterator
from typing import Protocol

from attrs import define, evolve, frozen

from fencepost.impl.log.batch.batch_file import CHUNK_BYTES
from fencepost.impl.log.batch.header import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    CorruptBatchError,
    Damage,
    read_header,
    size_at,
    unchecked_header,
)
from fencepost.impl.log.batch.record_batch import Record, read_records

MOST_BATCH_BYTES = 256 * 1024 * 1024
"""A batch is in memory as a whole; one that claims more than any sane message.max.bytes is taken for damage,
not read."""
SMALLEST_OLD_MESSAGE = 26
"""Offset, size, CRC, magic, attributes, two null lengths (format 0)."""


class Source(Protocol):
    """An open file, opened for reading only; for example impl.files.File."""

    def read_at(self, position: int, size: int) -> bytes:
        """Read up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def size(self) -> int:
        """The size of the file in bytes."""
        ...


@define
class SegmentBatch:
    """A whole batch."""

    header: BatchHeader
    # In the file (that of the header is in `data`).
    position: int
    # Its bytes, and only they.
    data: bytes
    # Of the file, as messages name it.
    path: object

    @property
    def where(self) -> str:
        """File and byte."""
        return f"{self.path} at byte {self.position}"

    def records(self) -> tuple[Record, ...]:
        """What it holds. Raises CorruptBatchError."""
        return read_records(self.data, evolve(self.header, position=0))


@frozen(kw_only=True)
class Bad:
    """Bytes that are not a good batch."""

    # Byte in the file.
    position: int
    damage: Damage
    expected: str
    seen: str
    # Bytes from here to the end of the file.
    rest: int
    # Header of a batch that was skipped; None if the walk ends here.
    header: BatchHeader | None = None
    # Whether the rest is all zeros.
    zeros: bool = False
    # The checksum of the bytes of a batch that was skipped, if that is what differs.
    computed_crc: int | None = None


@frozen
class Old:
    """Messages of a format before record batches, one after the other."""

    position: int
    magic: int
    count: int
    # Of the last one.
    last_offset: int


@define
class Parsed:
    """The batch that was parsed last, here or in the replica compared with it: equal bytes have the same
    header and the same checksum."""

    data: bytes = b""
    header: BatchHeader | None = None

    def header_of(self, data: bytes) -> BatchHeader:
        """The header of the whole batch in `data`. Raises CorruptBatchError."""
        if self.header is None or data != self.data:
            self.header = None
            self.header = read_header(data)
            self.data = data
        return self.header


def walk_segment(source: Source, path: object, parsed: Parsed) -> Iterator[SegmentBatch | Bad | Old]:
    """Everything in a segment, in the order of the file. A Bad without a header is the last item. parsed:
    shared by replicas that are walked side by side."""
    position, size, start, data = 0, source.size(), 0, b""
    while position < size:
        at = position - start
        if at + HEADER_SIZE > len(data) or at + size_at(data, at) > len(data):
            start, data = position, _read(source, position, size)
            at = 0
        if _magic(data, at) in (0, 1):
            old = _old(source, position, size)
            if old.count:
                yield old
                position = old.position
                continue
        whole = data[at : at + max(size_at(data, at), HEADER_SIZE)]
        try:
            header = parsed.header_of(whole)
        except CorruptBatchError as error:
            bad = _bad(source, error, data, at, position, size)
            yield bad
            if bad.header is None:
                return
            position += bad.header.size
            continue
        yield SegmentBatch(header, position, whole, path)
        position += header.size


def _magic(data: bytes, at: int) -> int:
    return data[at + MAGIC_AT] if at + MAGIC_AT < len(data) else MAGIC


def _read(source: Source, position: int, size: int) -> bytes:
    """A chunk that holds at least the batch at its beginning, where one can be believed."""
    data = source.read_at(position, CHUNK_BYTES)
    claimed = size_at(data, 0) if len(data) >= LENGTH_END else 0
    if len(data) < claimed <= min(MOST_BATCH_BYTES, size - position) and _magic(data, 0) == MAGIC:
        data = source.read_at(position, claimed)
    return data


def _bad(source: Source, error: CorruptBatchError, data: bytes, at: int, position: int, size: int) -> Bad:
    header = None
    if error.damage in (Damage.CRC, Damage.HEADER):
        header = evolve(unchecked_header(data, at), position=position)
    seen = error.seen
    if error.damage is Damage.TORN:
        claimed = size_at(data, at) if len(data) - at >= LENGTH_END else 0
        seen = (
            f"a batch of {claimed} bytes, more than the {MOST_BATCH_BYTES} that are read at once"
            if claimed <= size - position and claimed > len(data) - at
            else f"the last {size - position} bytes of the file"
        )
    zeros = header is None and _is_zero(source, position, size)
    if zeros:
        seen = f"{size - position} bytes of zeros"
    return Bad(
        position=position,
        damage=error.damage,
        expected="a batch or the end of the file" if zeros else error.expected,
        seen=seen,
        rest=size - position,
        header=header,
        zeros=zeros,
        computed_crc=error.computed_crc,
    )


def _is_zero(source: Source, position: int, size: int) -> bool:
    while position < size:
        piece = source.read_at(position, CHUNK_BYTES)
        if not piece or piece.strip(b"\0"):
            return False
        position += len(piece)
    return True


def _is_old(source: Source, position: int, size: int) -> bool:
    """Whether the CRC-32 of a message of format 0 or 1 holds; it covers everything from the magic on."""
    if size > MOST_BATCH_BYTES:
        return False
    message = source.read_at(position, size)
    return zlib.crc32(message[MAGIC_AT:]) == int.from_bytes(message[LENGTH_END:MAGIC_AT], "big")


def _old(source: Source, position: int, size: int) -> Old:
    """The messages of an old format from here on; its position is where they end. None at all if the checksum
    of the first one does not hold."""
    count, last_offset, magic, start, data = 0, -1, -1, position, b""
    while position < size:
        at = position - start
        if at + MAGIC_AT >= len(data):
            start, data, at = position, source.read_at(position, CHUNK_BYTES), 0
        message = size_at(data, at)
        whole = message >= SMALLEST_OLD_MESSAGE and position + message <= size
        if (
            _magic(data, at) not in (0, 1)
            or not whole
            or (not count and not _is_old(source, position, message))
        ):
            break
        magic, last_offset = data[at + MAGIC_AT], int.from_bytes(data[at : at + 8], "big", signed=True)
        count += 1
        position += message
    return Old(position, magic, count, last_offset)

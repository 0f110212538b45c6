"""Record batches as bytes. Owns the framing; must not know files, offsets of a log, or who wrote a batch.

A batch: base offset (int64), length of what follows the checksum (int32), leader epoch (int32), CRC-32 of the rest (uint32), record count (int32),
then the records' value ids (int64 each); big-endian. A batch is one unit: it is appended, fetched and cut whole.
"""

import struct
import zlib
from collections.abc import Iterator

from attrs import frozen

from fencepost.traces.errors import FencepostError

_HEADER = struct.Struct(">qiiI")
_COUNT = struct.Struct(">i")
HEADER_SIZE = _HEADER.size
MAX_RECORDS = 1_000_000
"""Bound on the records of one batch: a larger count in a header is corruption, not a batch."""


class CorruptBatchError(FencepostError):
    """A batch that is cut off or whose checksum does not match."""


@frozen(kw_only=True)
class Batch:
    """A decoded batch. position, size: bytes within the buffer that it was read from."""

    base_offset: int
    leader_epoch: int
    values: tuple[int, ...]
    position: int
    size: int

    @property
    def next_offset(self) -> int:
        """The offset after the last record."""
        return self.base_offset + len(self.values)


def encode_batch(base_offset: int, leader_epoch: int, values: tuple[int, ...]) -> bytes:
    """The bytes of one batch."""
    assert values, "a batch has at least one record"
    body = _COUNT.pack(len(values)) + struct.pack(f">{len(values)}q", *values)
    return _HEADER.pack(base_offset, len(body), leader_epoch, zlib.crc32(body)) + body


def decode_batches(data: bytes) -> Iterator[Batch]:
    """The batches of a buffer, in order. Raises CorruptBatchError at the first that is torn or corrupt (those before were yielded)."""
    position, end = 0, len(data)
    while position < end:
        if end - position < HEADER_SIZE + _COUNT.size:
            raise _corrupt(position, "a whole header", f"{end - position} bytes")
        base_offset, length, leader_epoch, checksum = _HEADER.unpack_from(data, position)
        start = position + HEADER_SIZE
        if length < _COUNT.size or start + length > end:
            raise _corrupt(position, f"a body of {length} bytes", f"{end - start} bytes")
        if zlib.crc32(memoryview(data)[start : start + length]) != checksum:
            raise _corrupt(position, f"checksum {checksum:08x}", "another")
        (count,) = _COUNT.unpack_from(data, start)
        if not 0 < count <= MAX_RECORDS or length != _COUNT.size + 8 * count:
            raise _corrupt(position, "a record count that fits the length", str(count))
        yield Batch(
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            values=struct.unpack_from(f">{count}q", data, start + _COUNT.size),
            position=position,
            size=HEADER_SIZE + length,
        )
        position = start + length


def _corrupt(position: int, expected: str, seen: str) -> CorruptBatchError:
    return CorruptBatchError(expected=expected, seen=seen, where=f"batch at byte {position}")

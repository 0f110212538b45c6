"""Iterate over the batches of a file: either header by header, without reading the records, or chunk by chunk
with every byte.

Owns how much is read at a time. Must not know indexes or offsets of a log. Everything is bounded by an `end`
that the caller determined before. A file may grow while it is being read, or hold the torn rest of a failed
write (KAFKA-2477, KAFKA-9835).
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from fencepost.impl.core.file_system import File
from fencepost.impl.log.batch.compression import CODECS
from fencepost.impl.log.batch.header import (
    CODEC_MASK,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LARGEST_OFFSET,
    LENGTH_END,
    MAGIC,
    CorruptBatchError,
    Damage,
    read_header,
    size_at,
)

CHUNK_BYTES = 1024 * 1024
"""Bytes per read if every byte is needed. A larger batch is read whole."""
STRIDE_BYTES = 16 * 1024
"""Bytes per read if only headers are needed: a few index intervals."""

_CODECS = len(CODECS)
_ABOVE_ALL = 1 << 64
"""Above each last offset that a header can name."""
_FRAME = Struct(">qiibIhiqq")
_FRAME_HEAD = Struct(">qiibIhi")


class Frame(NamedTuple):
    """The place of a batch in its file, and its offsets."""

    # First byte of the batch in its file.
    position: int
    # Bytes of the batch, header included.
    size: int
    # First offset.
    base_offset: int
    # Last offset, also if its record was compacted away.
    last_offset: int
    # The leader epoch of the batch.
    leader_epoch: int
    # The largest timestamp in the batch.
    max_timestamp_ms: int


def frames(file: File, start: int, end: int) -> Iterator[Frame]:
    """The batches of a part of a file. Checksums are not verified.

    Args:
        file: the open file.
        start: the first byte of a batch.
        end: where to stop.

    Returns:
        the places of the batches.

    Raises:
        CorruptBatchError: if the bytes cannot be a batch.
    """
    position, read_from, data = start, start, b""
    while position < end:
        if position - read_from + HEADER_SIZE > len(data):
            read_from, data = position, file.read_at(position, min(STRIDE_BYTES, end - position))
            if len(data) < HEADER_SIZE:
                raise _torn(position, HEADER_SIZE, len(data))
        base, length, epoch, magic, _, _, delta, _, max_timestamp = _FRAME.unpack_from(
            data, position - read_from
        )
        size = LENGTH_END + length
        if magic != MAGIC or size < HEADER_SIZE or base < 0 or delta < 0:
            raise CorruptBatchError(
                Damage.HEADER,
                position,
                expected=f"a batch of magic {MAGIC}",
                seen=f"magic {magic}, {size} bytes",
            )
        if position + size > end:
            raise _torn(position, size, end - position)
        yield Frame(position, size, base, base + delta, epoch, max_timestamp)
        position += size


def checked_frames(data: bytes, *, check_crc: bool = True) -> Iterator[Frame]:
    """The batches of a buffer, verified as in read_header, without an object for each header.

    Args:
        data: whole batches.
        check_crc: verify checksums too.

    Returns:
        the places of the batches.

    Raises:
        CorruptBatchError: at the first bad batch.
    """
    position, end, view, unpack = 0, len(data), memoryview(data), HEADER.unpack_from
    while position + HEADER_SIZE <= end:
        base, length, epoch, magic, crc, attributes, delta, _, max_timestamp, _, _, _, count = unpack(
            data, position
        )
        size = LENGTH_END + length
        following = position + size
        if (
            magic != MAGIC
            or not HEADER_SIZE <= size <= end - position
            or base < 0
            or base + delta >= LARGEST_OFFSET
            or epoch < -1
            or attributes & CODEC_MASK >= _CODECS
            or not 0 <= count <= delta + 1
            or delta < 0
            or (check_crc and crc32c(view[position + CRC_START : following]) != crc)
        ):
            break
        yield Frame(position, size, base, base + delta, epoch, max_timestamp)
        position = following
    if position < end:
        read_header(data, position, check_crc=check_crc)
        raise AssertionError(f"a batch at byte {position} that is bad in one way of looking only")


def whole_batches(data: bytes, *, below: int, start: int = 0) -> int:
    """How many bytes at the beginning of `data` are whole batches with a last offset of at most `below`.
    start: this many bytes are known to be."""
    position, available, unpack = start, len(data), _FRAME_HEAD.unpack_from
    while position + HEADER_SIZE <= available:
        base, length, _, _, _, _, delta = unpack(data, position)
        following = position + LENGTH_END + length
        if following > available or base + delta >= below or length <= 0:
            break
        position = following
    return position


def is_batch_to(data: bytes, position: int, offset: int) -> bool:
    """Whether a batch begins at `position` of `data` and ends with `offset`. At a wrong position, magic and
    length may look right by chance, but not also this offset."""
    base, length, _, magic, _, _, delta = _FRAME_HEAD.unpack_from(data, position)
    return bool(magic == MAGIC and length > 0 and delta >= 0 and base + delta == offset)


def chunks(file: File, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Whole batches of a part of a file, in pieces.

    Args:
        file: the open file.
        start: the first byte of a batch.
        end: where to stop.

    Returns:
        (position, bytes) of pieces that together cover `start` to `end`. A torn last batch is returned as it
        is.
    """
    position = start
    while position < end:
        data = file.read_at(position, min(CHUNK_BYTES, end - position))
        whole = whole_batches(data, below=_ABOVE_ALL)
        if not whole and position + len(data) < end and len(data) >= LENGTH_END:
            if (size := size_at(data, 0)) > len(data):
                data = file.read_at(position, min(size, end - position))
            whole = len(data)
        if not whole:
            whole = len(data)
        if not whole:
            return
        yield position, data if whole == len(data) else data[:whole]
        position += whole


def _torn(position: int, size: int, seen: int) -> CorruptBatchError:
    return CorruptBatchError(Damage.TORN, position, expected=f"{size} bytes", seen=f"{seen} bytes")

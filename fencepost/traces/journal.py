"""The journal: finished runs, one frame each, appended by one worker and safe to lose power under.

Owns the frame format, what a torn tail is, and the lock that distinguishes a journal in use from an abandoned
one. Must not know Parquet, the folder (store.py), or what a run means.

A journal is the line `fencepost journal 1` followed by frames, integers little-endian:

    u32 length | u32 raw length | u32 CRC-32 | i64 trace id | payload

The payload is MessagePack of `[trace row, operation rows, event rows]` (canonical rows, canonical_rows.py),
compressed with Zstandard; the checksum covers the other three header fields and the payload. A frame is one
write.

What survives: a *killed process* loses nothing that `append` returned for, because the kernel has the bytes.
*Power loss* may remove what was not fsynced: `append` syncs after every `SYNC_BYTES` and `close` at
the end, so at most that much of each worker is run again. Reading keeps every frame with a correct checksum.
What remains at the end is a torn tail: it is ignored when reading and cut before the next append. A frame
with a wrong checksum before a correct one (a page that never reached the disk) is skipped and counted
as damaged.
"""

import contextlib
import fcntl
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pyarrow as pa
from attrs import define, frozen

from fencepost.traces.canonical_rows import NESTED, Row, Rows, check_rows, rows_of
from fencepost.traces.decoding import from_msgpack
from fencepost.traces.digest import digest_of_rows
from fencepost.traces.errors import EnvironmentError_, TraceError
from fencepost.traces.schema import SCHEMAS, TABLES, Table
from fencepost.traces.trace import Trace

MAGIC = b"fencepost journal 1\n"
SUFFIX = ".journal"
SYNC_BYTES = 8 * 1024 * 1024
"""Most bytes that a power loss may take from one worker; each costs only a re-run of its seed."""
FRAME_BYTES_MAX = 1 << 30
"""No run is larger; a longer length is garbage."""
RAW_BYTES_MAX = 1 << 28
"""What a payload may decompress to: ROWS_MAX operations of a campaign take 200 MB."""
WHOLE_BYTES = 1 << 24
"""A payload of no more is decoded at once, which takes at most 20 times as much memory; a larger one row
by row, so that its bounds are noticed. A row may have as many bytes, too: a poll of 500,000 records."""
NESTED_MAX = 4_000_000
"""Records and positions of one run: each takes about 100 bytes of memory, and as few as 6 of a payload."""

_HEADER = struct.Struct("<IIIq")
_codec = pa.Codec("zstd", compression_level=1)


def _kind(field: Any) -> Any:
    """The Python type of a column's values, or of a member of a nested one, in a canonical row."""
    made: Any = {"int64": int, "string": str, "bool": bool}.get(str(field.type))
    if pa.types.is_list(field.type):
        made = list[_kind(field.type.value_field)]  # type: ignore[misc]
    elif pa.types.is_struct(field.type):
        made = tuple.__class_getitem__(tuple(_kind(member) for member in field.type))
    assert made is not None, f"no rows of {field.type}"
    return made | None if field.nullable else made


def _row_kind(table: Table) -> Any:
    """The type of a canonical row of a table."""
    said = [
        field for field in SCHEMAS[table] if table == "traces" or field.name not in ("trace_id", "position")
    ]
    return tuple.__class_getitem__(tuple(map(_kind, said)))


_TRACE, _OPERATION, _EVENT = (msgspec.msgpack.Decoder(_row_kind(table)) for table in TABLES)
_WHOLE = msgspec.msgpack.Decoder(
    tuple[_TRACE.type, list[_OPERATION.type], list[_EVENT.type]]  # type: ignore[name-defined]
)
_PIECES = msgspec.msgpack.Decoder(tuple[msgspec.Raw, msgspec.Raw, msgspec.Raw])
_LIST = msgspec.msgpack.Decoder(list[msgspec.Raw])


@frozen(kw_only=True)
class Frame:
    """Where a run lies in a journal."""

    trace_id: int
    # Of the payload.
    offset: int
    # Of the payload.
    length: int
    # decompressed.
    raw_length: int


@frozen(kw_only=True)
class Scan:
    """What a journal holds."""

    frames: tuple[Frame, ...]
    # Where the last good frame ends.
    end: int
    # How many follow it.
    torn_bytes: int
    # Offsets of frames before the end that fail their checksum.
    damaged: tuple[int, ...]


def _checksum(length: int, raw_length: int, trace_id: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(struct.pack("<IIq", length, raw_length, trace_id)))


def encode_frame(rows: Rows) -> bytes:
    """The frame of one run. Raises TraceError for a value that has no place in a row."""
    try:
        check_rows(len(rows.operations) + len(rows.events))
        raw = msgspec.msgpack.encode([rows.trace, rows.operations, rows.events])
        if len(raw) > RAW_BYTES_MAX:
            raise OverflowError(f"{len(raw):,} bytes, and a run has at most {RAW_BYTES_MAX:,}")
        if len(raw) > WHOLE_BYTES:
            _check_nested(sum(map(_nested, rows.operations)))
        payload = _codec.compress(raw, asbytes=True)
        header = _HEADER.pack(
            len(payload), len(raw), _checksum(len(payload), len(raw), rows.trace_id, payload), rows.trace_id
        )
    except TraceError:
        raise
    except (OverflowError, TypeError, ValueError, struct.error) as error:
        raise TraceError(
            expected="64-bit integers and text", seen=str(error), where="a trace's rows"
        ) from None
    return header + payload


def _frame_at(data: Any, start: int) -> tuple[Frame | None, int]:
    """(the frame at `start` if its checksum holds, where a frame of the length found there would end)."""
    if start + _HEADER.size > len(data):
        return None, len(data)
    length, raw_length, checksum, trace_id = _HEADER.unpack_from(data, start)
    offset, end = start + _HEADER.size, start + _HEADER.size + length
    if not 0 < length <= FRAME_BYTES_MAX or end > len(data):
        return None, len(data)
    if _checksum(length, raw_length, trace_id, data[offset:end]) != checksum:
        return None, end
    return Frame(trace_id=trace_id, offset=offset, length=length, raw_length=raw_length), end


def _scan(data: Any, where: str) -> Scan:
    head = bytes(data[: len(MAGIC)])
    if head != MAGIC:
        if MAGIC.startswith(head):  # the header itself was torn
            return Scan(frames=(), end=0, torn_bytes=len(head), damaged=())
        raise TraceError(expected="a journal of version 1", seen=repr(head), where=where)
    frames: list[Frame] = []
    damaged: list[int] = []
    start = end = len(MAGIC)
    while start < len(data):
        frame, after = _frame_at(data, start)
        if frame is not None:
            frames.append(frame)
            end = after
        elif _frame_at(data, after)[0] is not None:
            damaged.append(start)
        else:
            break
        start = after
    return Scan(frames=tuple(frames), end=end, torn_bytes=len(data) - end, damaged=tuple(damaged))


def scan(path: Path) -> Scan:
    """Which runs a journal holds; reads it once, bounded by the address space, not by memory. Raises
    TraceError."""
    with _open_for_reading(path) as file:
        size = file.size()
        return _scan(memoryview(file.read_buffer(size)) if size else b"", str(path))


def _open_for_reading(path: Path) -> pa.MemoryMappedFile:
    try:
        return pa.memory_map(str(path), "r")
    except OSError as error:
        raise TraceError(
            expected="a readable journal", seen=error.strerror or str(error), where=str(path)
        ) from None


def _decompressed(payload: bytes, raw_length: int) -> bytes:
    """The payload's MessagePack. Raises ValueError for more than a run may have, OSError for what is not
    compressed."""
    if raw_length > RAW_BYTES_MAX:
        raise ValueError(f"{raw_length:,} bytes once decompressed, and a run has at most {RAW_BYTES_MAX:,}")
    return _codec.decompress(payload, decompressed_size=raw_length, asbytes=True)


def _decoded(raw: bytes) -> Rows:
    """The run in a payload's MessagePack. Raises ValueError, msgspec.DecodeError."""
    if len(raw) <= WHOLE_BYTES:
        trace, operations, events = from_msgpack(raw, _WHOLE)
        return Rows(trace=trace, operations=operations, events=events)
    pieces = from_msgpack(raw, _PIECES)
    check_rows(sum(map(_count, pieces[1:])))
    found = [from_msgpack(pieces[0], _TRACE)]
    nested = 0
    for decoder, piece in zip((_OPERATION, _EVENT), pieces[1:], strict=True):
        rows: list[Row] = []
        for row in from_msgpack(piece, _LIST):
            if len(memoryview(row)) > WHOLE_BYTES:
                raise ValueError(
                    f"a row of {len(memoryview(row)):,} bytes, and one has at most {WHOLE_BYTES:,}"
                )
            rows.append(from_msgpack(row, decoder))
            nested += _nested(rows[-1]) if decoder is _OPERATION else 0
            _check_nested(nested)
        found.append(rows)
    return Rows(trace=found[0], operations=found[1], events=found[2])


def _count(array: msgspec.Raw) -> int:
    """How many members a MessagePack array says that it has. Raises ValueError for something else."""
    head = memoryview(array)
    if head[0] & 0xF0 == 0x90:
        return head[0] & 0x0F
    width = {0xDC: 2, 0xDD: 4}.get(head[0])
    if width is None:
        raise ValueError("something else than a list of rows")
    return int.from_bytes(head[1 : 1 + width], "big")


def _nested(operation: Row) -> int:
    """The records and positions of an operation's row, which are in its last columns."""
    return sum(len(values) for values in operation[-len(NESTED) :])


def _check_nested(count: int) -> None:
    if count > NESTED_MAX:
        raise ValueError(f"more than {NESTED_MAX:,} records and positions in a run")


def decode_payload(payload: bytes, frame: Frame, *, where: str) -> Rows:
    """The run of a frame. Raises TraceError."""
    try:
        return _decoded(_decompressed(payload, frame.raw_length))
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise TraceError(expected="rows of a run", seen=str(error), where=where) from None


def read_frames(path: Path, frames: "tuple[Frame, ...] | list[Frame]") -> Iterator[Rows]:
    """The runs of the given frames of a journal, in the order given. Raises TraceError."""
    with _open_for_reading(path) as file:
        for frame in frames:
            file.seek(frame.offset)
            where = f"{path}, byte {frame.offset}"
            yield decode_payload(file.read(frame.length), frame, where=where)


def frames_one_by_one(path: Path, frames: Iterable[Frame]) -> Iterator[Rows | TraceError]:
    """As `read_frames`, but for a run that cannot be read the error comes instead, and the others follow.
    path: the journal; frames: to read."""
    for frame in frames:
        try:
            yield from read_frames(path, [frame])
        except TraceError as error:
            yield error


def lock(descriptor: int) -> bool:
    """Take the lock of an open journal; False if its worker is alive. Released when the descriptor is
    closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@define
class JournalWriter:
    """Appends finished runs to a new journal."""

    path: Path
    # Open and locked until `close`; -1 after it.
    descriptor: int
    # Where the next frame goes, the end of the last whole one.
    end: int
    # How much of that an fsync has covered.
    synced: int

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create a journal, cut its torn tail, and hold it. Raises TraceError if another worker holds
        it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            if not lock(descriptor):
                os.close(descriptor)
                raise TraceError(
                    expected="no other campaign writing here",
                    seen="one that is at work",
                    where=str(path),
                    hint="wait for its end, or write to another folder",
                )
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                break
            os.close(descriptor)  # it was sealed and removed between open and lock
        try:
            end = scan(path).end
            os.ftruncate(descriptor, end)
            if end == 0:
                os.write(descriptor, MAGIC)
                end = len(MAGIC)
            os.lseek(descriptor, end, os.SEEK_SET)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, end, 0)

    def append(self, trace: Trace) -> None:
        """Append one finished run; after this returns, the death of the process no longer loses it.

        A trace without a digest gets one.

        Raises TraceError for a run that rows cannot hold, EnvironmentError_ if the disk refuses.
        """
        rows = rows_of(trace)
        self.append_rows(rows if trace.digest else rows.with_digest(digest_of_rows(rows)))

    def append_rows(self, rows: Rows) -> None:
        """`append` of a run that is canonical rows already, with its digest."""
        assert self.descriptor >= 0, f"append to the closed journal {self.path}"
        frame = memoryview(encode_frame(rows))
        written = 0
        try:
            while written < len(frame):
                written += os.write(self.descriptor, frame[written:])
        except OSError as error:
            with contextlib.suppress(OSError):  # a reader would take half a frame in the middle for damage
                os.ftruncate(self.descriptor, self.end)
                os.lseek(self.descriptor, self.end, os.SEEK_SET)
            raise EnvironmentError_(
                expected="room for a finished run", seen=error.strerror or str(error), where=str(self.path)
            ) from None
        self.end += len(frame)
        if self.end - self.synced >= SYNC_BYTES:
            self.sync()

    def sync(self) -> None:
        """Make everything appended so far survive a power loss."""
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            raise EnvironmentError_(
                expected="to sync a journal", seen=error.strerror or str(error), where=str(self.path)
            ) from None
        self.synced = self.end

    def close(self) -> None:
        """Sync and let go. Closing twice is allowed."""
        if self.descriptor >= 0:
            self.sync()
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

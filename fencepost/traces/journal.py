"""The journal: finished runs, one frame each, appended by one worker and safe to lose power under.

Owns: the frame format, what a torn tail is, the lock that tells a journal in use from one left behind. Must not
know: Parquet, the folder (store.py), what a run means.

A journal is the line `fencepost journal 1` followed by frames, integers little-endian:

    u32 length | u32 raw length | u32 CRC-32 | i64 trace id | payload

The payload is MessagePack of `[trace row, operation rows, event rows]` (canonical rows, rows.py), compressed with
Zstandard; the checksum covers the other three header fields and the payload. A frame is one write.

What survives: a *killed process* loses nothing that `append` returned for, because the bytes are the kernel's. *Power
loss* may take what was not fsynced: `append` syncs after every `SYNC_BYTES` and `close` at the end, so at most that much
of each worker is run again. Reading keeps every frame whose checksum holds. What remains at the end is a torn
tail: it is ignored when reading and cut before the next append. A frame that fails in the middle while the next
one holds (a page that never reached the disk) is skipped and counted as damaged.
"""

import contextlib
import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pyarrow as pa
from attrs import define, frozen

from fencepost.traces.digest import digest_of_rows
from fencepost.traces.errors import EnvironmentError_, TraceError
from fencepost.traces.rows import Rows, rows_of
from fencepost.traces.trace import Trace

MAGIC = b"fencepost journal 1\n"
SUFFIX = ".journal"
SYNC_BYTES = 8 * 1024 * 1024
"""Most bytes that a power loss may take from one worker; each costs only a re-run of its seed."""
FRAME_BYTES_MAX = 1 << 30
"""No run is larger; a longer length is garbage."""

_HEADER = struct.Struct("<IIIq")
_codec = pa.Codec("zstd", compression_level=1)


@frozen(kw_only=True)
class Frame:
    """Where a run lies in a journal. offset: of the payload; length: of the payload; raw_length: decompressed."""

    trace_id: int
    offset: int
    length: int
    raw_length: int


@frozen(kw_only=True)
class Scan:
    """What a journal holds. end: where the last good frame ends; torn_bytes: how many follow it; damaged: offsets
    of frames before the end that fail their checksum."""

    frames: tuple[Frame, ...]
    end: int
    torn_bytes: int
    damaged: tuple[int, ...]


def _checksum(length: int, raw_length: int, trace_id: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(struct.pack("<IIq", length, raw_length, trace_id)))


def encode_frame(rows: Rows) -> bytes:
    """The frame of one run. Raises TraceError for a value that has no place in a row."""
    try:
        raw = msgspec.msgpack.encode([rows.trace, rows.operations, rows.events])
        payload = _codec.compress(raw, asbytes=True)
        header = _HEADER.pack(
            len(payload), len(raw), _checksum(len(payload), len(raw), rows.trace_id, payload), rows.trace_id
        )
    except (OverflowError, TypeError, UnicodeError, struct.error) as error:
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
    """Which runs a journal holds; reads it once, bounded by the address space, not by memory. Raises TraceError."""
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


def decode_payload(payload: bytes, frame: Frame, *, where: str) -> Rows:
    """The run of a frame. Raises TraceError."""
    try:
        raw = _codec.decompress(payload, decompressed_size=frame.raw_length, asbytes=True)
        trace, operations, events = msgspec.msgpack.decode(raw)
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise TraceError(expected="rows of a run", seen=str(error), where=where) from None
    return Rows(trace=trace, operations=operations, events=events)


def read_frames(path: Path, frames: "tuple[Frame, ...] | list[Frame]") -> Iterator[Rows]:
    """The runs of the given frames of a journal, in the order given. Raises TraceError."""
    with _open_for_reading(path) as file:
        for frame in frames:
            file.seek(frame.offset)
            where = f"{path}, byte {frame.offset}"
            yield decode_payload(file.read(frame.length), frame, where=where)


def lock(descriptor: int) -> bool:
    """Take the lock of an open journal; False if its worker is alive. Released when the descriptor is closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@define
class JournalWriter:
    """Appends finished runs to a journal of its own.

    descriptor: open and locked until `close`; -1 after it. end: where the next frame goes, the end of the last whole
    one. synced: how much of that an fsync has covered.
    """

    path: Path
    descriptor: int
    end: int
    synced: int

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create a journal, cut its torn tail, and hold it. Raises TraceError if another worker holds it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            if not lock(descriptor):
                os.close(descriptor)
                raise TraceError(
                    expected="a journal of this worker's own",
                    seen="that another one holds it",
                    where=str(path),
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
        """Append one finished run; when this returns, the death of the process no longer loses it.

        A trace without a digest gets its own.

        Raises TraceError for a run that has no place in rows, EnvironmentError_ when the disk refuses.
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
        os.fsync(self.descriptor)
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

"""The record on disk: parts of a trace under way, sealed by a rename, and the key of the hashes.

Owns files, their bounds, and what is with the system when. Must not know what a line says. Lines gather in
memory and go to the system in one write before the next request leaves (write-ahead): killing the process
loses nothing that a broker can know of. Power loss may take what was not synced: at most one part.

    DIR/key                       32 random bytes, mode 600: the same for all runs, so that equal records
                                  compare
    DIR/ports                     JSON: where each broker's listener was
    DIR/run-0001/recording.json   a run of the proxy: one trace (traces/parts.py)
    DIR/run-0001/part-000001.jsonl
    DIR/run-0001/contents-000001.records   with --values full: JSON lines of records as they were
"""

import base64
import contextlib
import json
import os
import secrets
import shutil
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field, frozen

from fencepost import __version__
from fencepost.proxy.record.values import KEY_BYTES
from fencepost.traces.errors import EnvironmentError_, TraceError
from fencepost.traces.parts import RECORDING, part_name, parts_of
from fencepost.traces.trace import Claims
from fencepost.traces.whole_file import write_whole

KEY, PORTS = "key", "ports"
LARGEST_BUFFER = 1 << 20
"""Bytes of lines that gather before they are written, whatever else happens."""
MOST_SEALING = 4
"""Parts that wait for the disk while the next is written: 64 MB with parts of 16 MB. With more, traffic
waits, too."""
TO_END_BYTES = 4_096
"""Kept free below the bound: the lines that end a part, and those that begin the next, take 700 bytes."""
ENOUGH_BYTES = 4 * LARGEST_BUFFER
"""Room, or a tenth of the bound, that lets a full record go on: it shall not be full again at once."""
TARGET = PROFILE = "proxy"
LARGEST_PORTS_FILE = 1 << 20
_encode = msgspec.json.Encoder().encode


@frozen(kw_only=True)
class Bounds:
    """part_bytes, part_ns: a part is sealed when it is so large or so old. disk_bytes: of all that the folder
    holds."""

    part_bytes: int = 16 << 20
    part_ns: int = 10_000_000_000
    disk_bytes: int = 10 << 30


def key_of(folder: Path) -> bytes:
    """The key of a folder's hashes, made where there is none. Raises TraceError for one of another length, or
    one that others may read."""
    path = folder / KEY
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
    if path.stat().st_mode & 0o077:
        raise TraceError(
            expected="a key that only its owner may read (mode 600)",
            seen=f"mode {path.stat().st_mode & 0o777:o}",
            where=str(path),
        )
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise TraceError(expected=f"a key of {KEY_BYTES} bytes", seen=f"{len(key)} bytes", where=str(path))
    return key


def ports_of(folder: Path) -> dict[str, int]:
    """Where each broker's listener was in the run before; nothing for a file that says nothing of the
    kind."""
    path = folder / PORTS
    try:
        data = path.read_bytes()[:LARGEST_PORTS_FILE]
        return msgspec.json.decode(data, type=dict[str, int])
    except (OSError, msgspec.DecodeError):
        return {}


def keep_ports(folder: Path, ports: dict[str, int]) -> None:
    """Write the ports down, so that a proxy that starts again uses the same.

    Args:
        folder: of the record.
        ports: by listener.
    """
    write_whole(folder / PORTS, json.dumps(ports, indent=1) + "\n")


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@define(eq=False, kw_only=True)
class RecordFiles:
    """A run's files."""

    folder: Path
    claims: Claims
    kept: str
    # Nanoseconds of the trace; low_watermark(now): up to when everything is written.
    now: Callable[[], int]
    low_watermark: Callable[[int], int]
    # Called once, with the reason, when there is no room.
    on_full: Callable[[str], None]
    bounds: Bounds = field(factory=Bounds)
    run: Path = field(init=False)
    # Of the part that is being written.
    number: int = field(default=0, init=False)
    bytes_written: int = field(default=0, init=False)
    full: bool = field(default=False, init=False)
    _trace: bytes = field(default=b"", init=False)
    _buffer: list[bytes] = field(factory=list, init=False)
    _buffered: int = field(default=0, init=False)
    _descriptor: int = field(default=-1, init=False)
    _size: int = field(default=0, init=False)
    _began: int = field(default=0, init=False)
    # Bytes of the folder when the run began.
    _before: int = field(default=0, init=False)
    _contents: list[bytes] = field(factory=list, init=False)
    # One thread: parts are sealed in their order, and no request waits for the disk.
    _sealer: ThreadPoolExecutor | None = field(default=None, init=False)
    _sealing: "deque[Future[None]]" = field(factory=deque, init=False)
    # Lines of the part, but for the trace's own.
    _lines: int = field(default=0, init=False)

    def open(self) -> None:
        """Make the run's folder, and whole what a killed run has left. Raises EnvironmentError_."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for left in sorted(self.folder.glob("run-*")):
                make_whole(left)
            number = 1 + max((int(each.name[4:]) for each in self.folder.glob("run-[0-9]*")), default=0)
            self.run = self.folder / f"run-{number:04}"
            self.run.mkdir()
            said = {
                "version": 1,
                "software_version": __version__,
                "values": self.kept,
                "began_ns": self.now(),
            }
            (self.run / RECORDING).write_text(json.dumps(said) + "\n", encoding="utf-8")
        except OSError as error:
            raise EnvironmentError_(
                expected="a folder to record into",
                seen=error.strerror or str(error),
                where=error.filename or str(self.folder),
            ) from None
        trace: dict[str, Any] = {
            "type": "trace",
            "trace_id": number,
            "plan": "",
            "seed": 0,
            "target": TARGET,
            "software_version": __version__,
            "profile": PROFILE,
            "claims": {"retention": True, "acks_1_may_lose": True, "reasons": list(self.claims.reasons)},
            "unique_values": False,
            "concurrent_processes": True,
        }
        if self.claims.compacted:
            trace["claims"]["compacted"] = list(self.claims.compacted)
        self._trace = _encode(trace) + b"\n"
        self._before = _size_of(self.folder)
        self._begin()

    # ---- lines

    def emit(self, line: bytes) -> None:
        """Take a line."""
        self._buffer.append(line)
        self._lines += 1
        self._buffered += len(line)
        if self._buffered > LARGEST_BUFFER:
            self.flush()

    def keep(self, value_id: int, key: bytes | None, rest: bytes) -> None:
        """Keep a record in full.

        Args:
            value_id: of the record.
            key: of the record.
            rest: value and headers.
        """
        row = {
            "value": value_id,
            "key": None if key is None else base64.b64encode(key).decode(),
            "rest": base64.b64encode(rest).decode(),
        }
        self._contents.append(_encode(row) + b"\n")

    def flush(self) -> None:
        """Hand everything to the system, or the whole lines that there is room for."""
        if not self._buffer or self.full:
            return
        data = b"".join(self._buffer)
        self._buffer, self._buffered = [], 0
        fits = _whole_lines(data, self._room)
        try:
            _write_all(self._descriptor, fits)
            self._size += len(fits)
            self.bytes_written += len(fits)
            whole = self._write_contents()
        except OSError as error:  # what was written stays, up to its last whole line
            self._no_room(error.strerror or str(error))
            return
        if len(fits) < len(data) or not whole:
            self._no_room(f"the record holds {self.bounds.disk_bytes} bytes")
        elif self._size >= self.bounds.part_bytes:
            self.seal()

    @property
    def _room(self) -> int:
        """Bytes that may still be written; what ends a part has room of its own."""
        return max(0, self.bounds.disk_bytes - TO_END_BYTES - self._before - self.bytes_written)

    def has_room_again(self) -> bool:
        """Whether a full record could go on, in a new run, for a while: below the bound and on the disk.
        Raises OSError."""
        needed = TO_END_BYTES + min(ENOUGH_BYTES, self.bounds.disk_bytes // 10)
        below = self.bounds.disk_bytes - _size_of(self.folder)
        return min(below, shutil.disk_usage(self.folder).free) >= needed

    def tick(self) -> None:
        """Time has gone by: write, and seal a part that is old enough and says something."""
        self.flush()
        self._settle(0 if self.full else MOST_SEALING)
        if not self.full and self._lines and self.now() - self._began >= self.bounds.part_ns:
            self.seal()

    def seal(self, *, last: bool = False) -> None:
        """The part becomes whole, and the next one begins. last: no other does."""
        if self._descriptor < 0 or self.full:
            return
        if not last and not self._room:
            self._no_room(f"the record holds {self.bounds.disk_bytes} bytes")
            return
        time = self.now()
        mark = {"type": "event", "time": self.low_watermark(time), "name": "mark", "offset": self.number}
        lines = _encode(mark | {"cause": "low_watermark"}) + b"\n"
        if last:
            end = {"type": "event", "time": time, "name": "phase", "offset": self.number, "cause": "end"}
            lines += _encode(end) + b"\n"
        try:
            _write_all(self._descriptor, lines)
        except OSError as error:
            self._no_room(error.strerror or str(error))
            return
        if self._sealer is None:
            self._sealer = ThreadPoolExecutor(1, "fencepost seals parts")
        descriptor, self._descriptor = self._descriptor, -1
        self._sealing.append(self._sealer.submit(_sealed, descriptor, self.run, self.number))
        if not self._settle(0 if last else MOST_SEALING):
            return
        self.bytes_written += len(lines)
        if not last:
            self._begin()

    def close(self) -> None:
        """Write what there is and seal."""
        self.flush()
        self.seal(last=True)
        if self._sealer is not None:
            self._sealer.shutdown()

    def _settle(self, most: int) -> bool:
        """Look at what was sealed, and wait while more than so many parts are not. Answers whether there is
        still room."""
        while self._sealing and (len(self._sealing) > most or self._sealing[0].done()):
            error = self._sealing.popleft().exception()
            if isinstance(error, OSError):
                self._no_room(error.strerror or str(error))
            elif error is not None:
                raise error
        return not self.full

    def _begin(self) -> None:
        self.number += 1
        path = self.run / part_name(self.number, whole=False)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        _write_all(self._descriptor, self._trace)
        self._size, self._lines, self._began = len(self._trace), 0, self.now()
        self.bytes_written += len(self._trace)

    def _write_contents(self) -> bool:
        """The records in full that there is room for; answers whether these are all. Raises OSError."""
        if not self._contents:
            return True
        data = b"".join(self._contents)
        self._contents = []
        fits = _whole_lines(data, self._room)
        path = self.run / f"contents-{self.number:06}.records"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            _write_all(descriptor, fits)
        finally:
            os.close(descriptor)
        self.bytes_written += len(fits)
        return len(fits) == len(data)

    def _no_room(self, reason: str) -> None:
        """The end of the record: what is on disk is made whole as far as it goes."""
        if self.full:
            return
        self.full = True
        self._buffer, self._buffered = [], 0
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        for each in self._sealing:
            each.exception()
        self._sealing.clear()
        with contextlib.suppress(OSError):
            make_whole(self.run)
        self.on_full(reason)


def _whole_lines(data: bytes, room: int) -> bytes:
    """The lines at the beginning of some bytes that are at most so many bytes together."""
    return data if len(data) <= room else data[: data.rfind(b"\n", 0, room) + 1]


def make_whole(run: Path) -> None:
    """What a killed proxy left: the last part loses half a line and gets its name. Raises OSError."""
    if not (run / RECORDING).is_file():
        return
    for part in parts_of(run):
        if part.name.startswith("."):
            data = part.read_bytes()
            with part.open("r+b") as file:
                file.truncate(data.rfind(b"\n") + 1)
            part.rename(part.with_name(part.name[1:]))


def _sealed(descriptor: int, run: Path, number: int) -> None:
    """The disk has a part, and it gets its name."""
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    (run / part_name(number, whole=False)).rename(run / part_name(number, whole=True))


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

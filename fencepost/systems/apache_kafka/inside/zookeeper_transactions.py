"""ZooKeeper's transaction log as changes of nodes.

Owns the format. Must not know what the nodes mean. A file is preallocated: the log ends where zeros begin,
and a server that was killed leaves at most an entry that is not whole.

    file   magic "ZKLG" (int32), version 2 (int32), database (int64), then entries
    entry  checksum (int64, Adler-32 of the bytes), length (int32), bytes, "B"
    bytes  session (int64), cxid (int32), zxid (int64), milliseconds (int64), type (int32), then by type:
           create    path, data, ACL, ephemeral, child version
           delete    path
           set       path, data, new version
           multi     count (int32), then type (int32) and bytes of each
           close     paths of the session's ephemeral nodes (3.6 and later)

Strings and buffers have an int32 length before them. What follows the fields, such as a digest, is passed
over.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from attrs import define, frozen

from fencepost.systems.apache_kafka.inside.live_files import ReadOnly
from fencepost.traces.errors import TraceError

MOST_BYTES = 1 << 30
"""Of one log. ZooKeeper begins another one after 100,000 transactions, some tens of megabytes."""
MOST_ENTRY_BYTES = 8 * 1024 * 1024
"""jute.maxbuffer is 1 MB by default, and a multi of that size is far from Kafka's."""
MAGIC, VERSION = b"ZKLG", 2
_FILE = struct.Struct(">4siq")
_ENTRY = struct.Struct(">qi")
_HEAD = struct.Struct(">qiqqi")
_INT = struct.Struct(">i")
CREATES = (1, 15, 19, 21)
"""create, create2, createContainer, createTTL."""
DELETES = (2, 20)
SET, MULTI, CLOSE_SESSION, ERROR = 5, 14, -11, -1


class Kind(StrEnum):
    """What became of a node."""

    CREATED = "created"
    DELETED = "deleted"
    SET = "set"


@frozen(kw_only=True)
class Change:
    """One node in one transaction."""

    kind: Kind
    path: str
    data: bytes = b""
    # Of the data, after the change.
    version: int = 0
    # Of the client that asked.
    session: int
    zxid: int
    # Of the server's wall clock.
    time_ms: int


@define
class _Cursor:
    """The bytes of an entry. Every method raises ValueError where they end too early."""

    data: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size < 0 or self.at + size > len(self.data):
            raise ValueError(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self) -> int:
        """An int32."""
        return int(_INT.unpack(self.take(4))[0])

    def buffer(self) -> bytes:
        """Bytes with their length; null is empty."""
        return self.take(max(0, self.number()))

    def text(self) -> str:
        """A string."""
        return self.buffer().decode("utf-8", "backslashreplace")


def read_transactions(paths: Iterable[Path]) -> Iterator[Change]:
    """The changes of these logs, in the order of commits.

    Args:
        paths: oldest first.

    Yields:
        each change of each transaction that is whole.

    Raises:
        TraceError: for a file that is no such log.
    """
    for path in paths:
        with ReadOnly(path, MOST_BYTES) as source:
            head = source.read_at(0, _FILE.size)
            if len(head) < _FILE.size or _FILE.unpack(head)[:2] != (MAGIC, VERSION):
                raise TraceError(
                    expected="a transaction log of ZooKeeper, ZKLG version 2",
                    seen=head[:8].hex() or "nothing",
                    where=str(path),
                )
            for entry in _entries(source):
                try:
                    yield from changes_of(entry)
                except ValueError as error:
                    raise TraceError(
                        expected="a transaction of ZooKeeper", seen=f"no {error}", where=str(path)
                    ) from None


def _entries(source: ReadOnly) -> Iterator[bytes]:
    position = _FILE.size
    while len(head := source.read_at(position, _ENTRY.size)) == _ENTRY.size:
        checksum, size = _ENTRY.unpack(head)
        if not 0 < size <= MOST_ENTRY_BYTES:
            return
        entry = source.read_at(position + _ENTRY.size, size)
        if len(entry) < size or zlib.adler32(entry) != checksum:
            return
        yield entry
        position += _ENTRY.size + size + 1


def changes_of(entry: bytes) -> Iterator[Change]:
    """The changes of one transaction. entry: its bytes. Raises ValueError where they end too early."""
    cursor = _Cursor(entry)
    session, _, zxid, time_ms, kind = _HEAD.unpack(cursor.take(_HEAD.size))
    yield from _changes(cursor, kind, session, zxid, time_ms)


def _changes(cursor: _Cursor, kind: int, session: int, zxid: int, time_ms: int) -> Iterator[Change]:
    if kind in CREATES:
        path, data = cursor.text(), cursor.buffer()
        yield Change(kind=Kind.CREATED, path=path, data=data, session=session, zxid=zxid, time_ms=time_ms)
    elif kind in DELETES:
        yield Change(kind=Kind.DELETED, path=cursor.text(), session=session, zxid=zxid, time_ms=time_ms)
    elif kind == SET:
        path, data, version = cursor.text(), cursor.buffer(), cursor.number()
        yield Change(
            kind=Kind.SET, path=path, data=data, version=version, session=session, zxid=zxid, time_ms=time_ms
        )
    elif kind == MULTI:
        parts = [(cursor.number(), cursor.buffer()) for _ in range(cursor.number())]
        if all(part != ERROR for part, _ in parts):
            for part, data in parts:
                yield from _changes(_Cursor(data), part, session, zxid, time_ms)
    elif kind == CLOSE_SESSION and cursor.at < len(cursor.data):
        for _ in range(max(0, cursor.number())):
            yield Change(kind=Kind.DELETED, path=cursor.text(), session=session, zxid=zxid, time_ms=time_ms)

"""A sparse index in a file: sorted entries of a fixed size, in Kafka's big-endian form.

Owns the entries in memory, how many of them the file holds, and the check of an index file. Must not know the
meaning of an entry.

An index is a cache of its segment: it can be rebuilt from the batches. So new entries stay in memory until
the segment is flushed, rolled or closed. Code that finds an index wrong raises CorruptIndexError, and the
segment rebuilds it. Kafka preallocates index files: zeros after the last entry are free space, not entries.
"""

from collections.abc import Callable
from struct import Struct
from typing import ClassVar

from attrs import define

from fencepost.impl.core.file_system import FileSystem
from fencepost.traces.errors import FencepostError


class CorruptIndexError(FencepostError):
    """An index file that is missing, truncated inside an entry, unsorted, or contradicts its segment."""


@define(eq=False, kw_only=True)
class IndexFile:
    """A sparse index."""

    # The format of one entry.
    FORMAT: ClassVar[Struct]

    # The file system.
    files: FileSystem
    # The index file.
    path: str
    # The base offset of the segment; offsets in the file are relative to it.
    base_offset: int
    # An index that would grow beyond it is full, and its segment is rolled.
    max_bytes: int
    # Bytes of `entries` that the file holds; increased by `write`, decreased by `keep`.
    saved: int = 0
    # Whether the content of the file is durable.
    synced: bool = False
    # The entries; None until they are first needed.
    _entries: bytearray | None = None

    # ---- opening

    @property
    def entries(self) -> bytearray:
        """The entries, read from the file on first use. Raises CorruptIndexError."""
        if self._entries is None:
            self._entries = self._load()
        return self._entries

    def _load(self) -> bytearray:
        if not self.files.exists(self.path):
            raise self.corrupt("an index file", "none")
        file = self.files.open(self.path, create=False)
        size = file.size()
        data = bytearray(file.read_at(0, size))
        file.close()
        end = len(data.rstrip(b"\0"))
        del data[(end + self.FORMAT.size - 1) // self.FORMAT.size * self.FORMAT.size :]
        if len(data) % self.FORMAT.size:
            raise self.corrupt("whole entries", f"{len(data)} bytes")
        self.saved, self.synced = len(data), len(data) == size
        previous = None
        for entry in self.FORMAT.iter_unpack(data):
            if not self._follows(previous, entry):
                raise self.corrupt(f"an entry after {previous}", str(entry))
            previous = entry
        return data

    def _follows(self, previous: tuple[int, ...] | None, entry: tuple[int, ...]) -> bool:
        """Whether an entry can follow another (or be the first)."""
        raise NotImplementedError

    def reset(self) -> None:
        """Become an empty index, without reading the file; the next append replaces the file's content."""
        self._entries, self.saved, self.synced = bytearray(), 0, False

    def release(self) -> None:
        """Release the entries that the file holds; they are read again when needed."""
        if self._entries is not None and self.synced and self.saved == len(self._entries):
            self._entries = None

    # ---- reading

    def __len__(self) -> int:
        return len(self.entries) // self.FORMAT.size

    def entry(self, number: int) -> tuple[int, int]:
        """The entry with this number, from 0; as stored."""
        first, second = self.FORMAT.unpack_from(self.entries, number * self.FORMAT.size)
        return first, second

    def count_while(self, before: Callable[[tuple[int, int]], bool]) -> int:
        """How many entries from the first on satisfy `before`, by binary search. (Those that satisfy it must
        come first.)"""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if before(self.entry(middle)):
                low = middle + 1
            else:
                high = middle
        return low

    @property
    def is_full(self) -> bool:
        """Whether one more entry would not fit."""
        return len(self.entries) + self.FORMAT.size > self.max_bytes

    # ---- writing

    def keep(self, count: int) -> None:
        """Remove all entries but the first `count`."""
        size = count * self.FORMAT.size
        if size < len(self.entries):
            del self.entries[size:]
            self.saved, self.synced = min(self.saved, size), False

    def write(self, *, sync: bool) -> None:
        """Make the file equal to the memory: without old entries and preallocated space. It exists
        afterwards. No effect if the index was not used."""
        if self._entries is None or (self.synced and self.saved == len(self._entries)):
            return
        file = self.files.open(self.path)
        if file.size() != self.saved:
            file.truncate(self.saved)
        if self.saved < len(self._entries):
            file.append(bytes(self._entries[self.saved :]))
        if sync:
            file.sync()
        file.close()
        self.saved, self.synced = len(self._entries), sync

    def corrupt(self, expected: str, seen: str) -> CorruptIndexError:
        """The error to raise.

        Args:
            expected, seen: one clause each.

        Returns:
            an error that names the file.
        """
        return CorruptIndexError(expected=expected, seen=seen, where=self.path)

"""The file-system interface: synchronous calls on an injected object, either real (`os`) or simulated.

Paths are relative, with "/" between parts. A write is durable only after `sync` of its file. A created,
renamed or removed name is durable only after `sync_directory` of its parent. Errors are the subclasses of
OSError that `os` raises (FileNotFoundError, ENOSPC, EIO).
"""

from typing import Protocol


class File(Protocol):
    """One open file."""

    def append(self, data: bytes) -> int:
        """Write at the end; returns the position where `data` begins."""
        ...

    def read_at(self, position: int, size: int) -> bytes:
        """Read up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes (never extends)."""
        ...

    def sync(self) -> None:
        """Make the content durable."""
        ...

    def size(self) -> int:
        """The size of the file in bytes."""
        ...

    def close(self) -> None:
        """Close the file, without a sync."""
        ...


class FileSystem(Protocol):
    """A tree of files."""

    def open(self, path: str, *, create: bool = True) -> File:
        """Open a file for reading and appending. Raises FileNotFoundError if it does not exist and `create`
        is false."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; no effect if it exists."""
        ...

    def list(self, path: str) -> list[str]:
        """The sorted names in a directory; empty if it does not exist."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomically rename `source` to `target`, replacing a file of that name."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file. Raises FileNotFoundError."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove a directory with its files. After a crash in between, the next start removes the rest.
        Raises FileNotFoundError; IsADirectoryError if it contains a directory."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in this directory durable."""
        ...

"""The file-system interface: synchronous calls on an injected object, real (`os`) or simulated.

Paths are relative, with "/" between parts. A write is durable only after `sync` of its file; a created,
renamed or removed name only after `sync_directory` of its parent. Errors are OSError subclasses
(FileNotFoundError, ENOSPC, EIO), as `os` raises them.
"""

from typing import Protocol


class File(Protocol):
    """One open file."""

    def append(self, data: bytes) -> int:
        """Write at the end; returns the position where `data` begins."""
        ...

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes (never extends)."""
        ...

    def sync(self) -> None:
        """Make the content durable."""
        ...

    def size(self) -> int:
        """Bytes in the file."""
        ...

    def close(self) -> None:
        """Release it; does not sync."""
        ...


class FileSystem(Protocol):
    """A tree of files."""

    def open(self, path: str, *, create: bool = True) -> File:
        """Open for reading and appending. Raises FileNotFoundError if it is absent and not `create`."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; nothing happens if it exists."""
        ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty if it is absent."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomically replace `target` by `source`."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file. Raises FileNotFoundError."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove a directory with the files in it, none of which anybody needs: what a crash leaves of it is
        the next start's to remove. Raises FileNotFoundError; IsADirectoryError if a directory lies in it."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in this directory durable."""
        ...

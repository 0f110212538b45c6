"""The file-system interface on the operating system: one directory tree below a root.

Owns descriptors and the translation of calls. Must not know the content. Every error is the `OSError` that
the system raised. A directory is made durable by an fsync of its own descriptor (fsync(2): "calling fsync()
does not necessarily ensure that the entry in the directory containing the file has also reached disk").
"""

import os
from pathlib import Path

from attrs import define, field, frozen


@define(eq=False)
class RealFile:
    """impl.files.File on a descriptor. Appends go to the end of the file, even if other handles have moved
    it."""

    descriptor: int

    def append(self, data: bytes) -> int:
        """Write at the end. A short write is continued, so only an error leaves a part."""
        position = os.fstat(self.descriptor).st_size
        written = os.write(self.descriptor, data)
        if written < len(data):
            rest = memoryview(data)
            while written < len(data):
                written += os.write(self.descriptor, rest[written:])
        return position

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; a short read is continued until the end of the file."""
        data = os.pread(self.descriptor, size, position)
        if len(data) == size or not data:
            return data
        parts, got = [data], len(data)
        while got < size:
            data = os.pread(self.descriptor, size - got, position + got)
            if not data:
                break
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes (never extends)."""
        if size < os.fstat(self.descriptor).st_size:
            os.ftruncate(self.descriptor, size)

    def sync(self) -> None:
        """Make the content durable."""
        os.fsync(self.descriptor)

    def size(self) -> int:
        """The size of the file in bytes."""
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        """Release the descriptor; a second call has no effect."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        self.close()


@frozen
class RealFiles:
    """impl.files.FileSystem below `root`."""

    root: Path = field(converter=Path)
    # Never open for writing, create, rename or remove anything.
    read_only: bool = False

    def open(self, path: str, *, create: bool = True) -> RealFile:
        """Open a file for reading and appending (for reading only, if read_only).

        Args:
            path: relative to the root.
            create: create the file if it does not exist.

        Returns:
            the open file.

        Raises:
            FileNotFoundError: if it does not exist and `create` is false.
        """
        if self.read_only:
            flags = os.O_RDONLY
        else:
            flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)
        descriptor = os.open(self._at(path), flags | os.O_CLOEXEC, 0o644)
        return RealFile(descriptor)

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""
        return self._at(path).exists()

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        self._writable(path)
        self._at(path).mkdir(parents=True, exist_ok=True)

    def list(self, path: str) -> list[str]:
        """The sorted names in a directory; empty if it does not exist."""
        try:
            return sorted(os.listdir(self._at(path)))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return []

    def rename(self, source: str, target: str) -> None:
        """Atomically rename `source` to `target`, replacing a file of that name."""
        self._writable(source)
        self._at(source).replace(self._at(target))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._writable(path)
        self._at(path).unlink()

    def remove_directory(self, path: str) -> None:
        """Remove a directory with the files in it."""
        self._writable(path)
        directory = self._at(path)
        for name in os.listdir(directory):  # noqa: PTH208 - names, not paths
            (directory / name).unlink()
        directory.rmdir()

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in this directory durable."""
        descriptor = os.open(self._at(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _at(self, path: str) -> Path:
        assert not path.startswith("/") and ".." not in path.split("/"), f"not below the root: {path}"
        return self.root / path

    def _writable(self, path: str) -> None:
        if self.read_only:
            raise PermissionError(f"opened read-only: {path}")

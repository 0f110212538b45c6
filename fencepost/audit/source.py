"""Files to be read, and only read: of this machine, or of a disk that is in memory.

Owns descriptors, and what a path of a disk in memory is. Must not know what a file is for.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from attrs import frozen


class Shown(Protocol):
    """A disk in memory, as a process of its host would read it now."""

    def look(self, path: str) -> bytes | tuple[str, ...] | None:
        """The content of a file, the sorted names in a directory, or None where nothing has this name."""
        ...


@frozen
class ShownPath:
    """A path on such a disk, with the part of pathlib.Path's interface that an audit uses."""

    disk: Shown
    # Of the host; for messages.
    host: str
    # Without a leading "/"; the root is "".
    path: str = ""

    def __str__(self) -> str:
        return f"{self.host}:/{self.path}"

    def __truediv__(self, name: str) -> Self:
        return type(self)(self.disk, self.host, f"{self.path}/{name}" if self.path else name)

    @property
    def name(self) -> str:
        """The last part."""
        return self.path.rpartition("/")[2]

    def with_name(self, name: str) -> Self:
        """Another name in the same directory."""
        above, slash, _ = self.path.rpartition("/")
        return type(self)(self.disk, self.host, f"{above}{slash}{name}")

    def resolve(self) -> Self:
        """Itself: there are no links."""
        return self

    def exists(self) -> bool:
        """Whether a file or directory has this name."""
        return self.disk.look(self.path) is not None

    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return isinstance(self.disk.look(self.path), tuple)

    def iterdir(self) -> Iterator[Self]:
        """What is in a directory; nothing in a file."""
        names = self.disk.look(self.path)
        return iter([self / name for name in names] if isinstance(names, tuple) else [])


Place = Path | ShownPath
"""A file or a directory that an audit reads."""


def in_order(directory: Place) -> list[Place]:
    """What is in a directory, by name. Raises OSError."""
    return sorted(directory.iterdir(), key=lambda entry: entry.name)


def size_of(file: Place) -> int:
    """Bytes in a file. Raises OSError."""
    if isinstance(file, Path):
        return file.stat().st_size
    with ShownSource(file) as source:
        return source.size()


def opened(file: Place) -> "RealSource | ShownSource":
    """The file, open to be read, as a context manager. Raises OSError."""
    return RealSource(file) if isinstance(file, Path) else ShownSource(file)


class ShownSource:
    """A file of a disk in memory (segment_walk.Source), as it is when it is opened."""

    def __init__(self, path: ShownPath) -> None:
        content = path.disk.look(path.path)
        if not isinstance(content, bytes):
            raise OSError(errno.ENOENT, "not a plain file", str(path))
        self._content = content

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`."""
        return self._content[position : position + max(0, size)]

    def size(self) -> int:
        """Bytes in the file when it was opened."""
        return len(self._content)


class RealSource:
    """A file of this machine, to be read only (segment_walk.Source). Its size is taken once: a broker may be
    writing."""

    def __init__(self, path: Path) -> None:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by __exit__)
        self._size = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`, none after the size that was taken."""
        return os.pread(self._file.fileno(), max(0, min(size, self._size - position)), position)

    def size(self) -> int:
        """Bytes in the file when it was opened."""
        return self._size

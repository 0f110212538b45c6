"""Opening files of this machine to be read, and only read.

Owns descriptors. Must not know what a file is for.
"""

import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self


class RealSource:
    """A file of this machine, to be read only (impl.log.dump.Source). Its size is taken once: a broker may be
    writing."""

    def __init__(self, path: Path) -> None:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by __exit__)
        self._size = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
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

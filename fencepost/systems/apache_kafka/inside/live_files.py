"""Files of brokers that may still run: opened to be read only, and bounded.

Owns the bound. Must not know what is in a file.
"""

from pathlib import Path
from types import TracebackType
from typing import Self

from fencepost.traces.errors import TraceError


class ReadOnly:
    """A file as it was when it was opened (impl.log.dump.segment_walk.Source)."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._size = path.stat().st_size
        if self._size > most_bytes:
            raise TraceError(
                expected=f"at most {most_bytes:,} bytes", seen=f"{self._size:,}", where=str(path)
            )
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by __exit__)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`, none after the size that was taken."""
        self._file.seek(position)
        return self._file.read(max(0, min(size, self._size - position)))

    def size(self) -> int:
        """Bytes in the file when it was opened."""
        return self._size

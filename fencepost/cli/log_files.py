"""Which of Kafka's files a path means, and opening them to be read.

Owns the real side of impl/log/dump: directories, names, what kind a name says. Must not know what stands in a file or how it is shown.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import frozen

from fencepost.impl.log import layout
from fencepost.impl.log.dump import looks_like_log
from fencepost.traces.errors import EnvironmentError_

TRANSACTION_INDEX = ".txnindex"
SEGMENT_KINDS = {
    layout.LOG: "segment",
    layout.INDEX: "offset index",
    layout.TIME_INDEX: "time index",
    layout.SNAPSHOT: "producer snapshot",
    TRANSACTION_INDEX: "transaction index",
}
NAMED_KINDS = {
    layout.EPOCH_CHECKPOINT: "leader epochs",
    layout.HIGH_WATERMARKS: "high watermarks",
    layout.RECOVERY_POINTS: "recovery points",
    layout.LOG_STARTS: "log start offsets",
    layout.CLEANER_OFFSETS: "cleaner offsets",
    "partition.metadata": "partition metadata",
    "meta.properties": "broker metadata",
}
_PARTITION = re.compile(r".+-\d+(\.[0-9a-f]+-(delete|future|stray))?")
_ASIDE = (layout.CLEANED, layout.SWAP, layout.DELETED)


class RealSource:
    """A file of this machine, to be read only (impl.log.dump.Source). Its size is taken once: a broker may be writing."""

    def __init__(self, path: Path) -> None:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        self._file = open(path, "rb")  # noqa: SIM115 (closed by __exit__)
        self._size = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`, none after the size that was taken."""
        self._file.seek(position)
        return self._file.read(max(0, min(size, self._size - position)))

    def size(self) -> int:
        """Bytes in the file when it was opened."""
        return self._size


@frozen(kw_only=True)
class LogFile:
    """A file to dump. kind: one of the kinds above, or "" for what is none of Kafka's. base_offset: what the name says. aside: the name says that the
    file is on its way in or out (compaction, deletion). error: why a directory could not be listed, else empty."""

    path: Path
    kind: str
    base_offset: int | None = None
    aside: bool = False
    error: str = ""

    def sibling(self, kind: str) -> Path:
        """The file of another kind of the same segment."""
        return self.path.with_name(f"{self.path.name[: layout.DIGITS]}{kind}")


def files_of(path: Path) -> Iterator[LogFile]:
    """The files that a path means, in the order of their names: itself, those of a partition's directory, or of all partitions of a data directory.
    Raises EnvironmentError_ if there is nothing there or nothing of Kafka's in it."""
    if not path.exists():
        raise EnvironmentError_(
            expected="a log directory or a file of one", seen="nothing there", where=str(path)
        )
    if not path.is_dir():
        yield _of_any_name(path)
        return
    found = False
    for entry in sorted(path.iterdir()):
        for file in _partition(entry) if entry.is_dir() else (_of_name(entry),):
            if file.kind or file.error:
                found = True
                yield file
    if not found:
        raise EnvironmentError_(
            expected="a log directory or a file of one", seen="a directory without any", where=str(path)
        )


def _partition(directory: Path) -> list[LogFile]:
    """The files of a partition; nothing for a directory that is none (lost+found)."""
    if not _PARTITION.fullmatch(directory.name):
        return []
    try:
        return [_of_name(entry) for entry in sorted(directory.iterdir()) if not entry.is_dir()]
    except OSError as error:
        return [LogFile(path=directory, kind="", error=error.strerror or str(error))]


def _of_name(path: Path) -> LogFile:
    name = path.name
    suffix = next((known for known in _ASIDE if name.endswith(known)), "")
    digits, rest = name[: layout.DIGITS], name.removesuffix(suffix)[layout.DIGITS :]
    if len(digits) == layout.DIGITS and digits.isascii() and digits.isdigit() and rest in SEGMENT_KINDS:
        return LogFile(path=path, kind=SEGMENT_KINDS[rest], base_offset=int(digits), aside=bool(suffix))
    return LogFile(path=path, kind=NAMED_KINDS.get(name, ""))


def _of_any_name(path: Path) -> LogFile:
    """As its name says; else as its ending says; else as its first bytes say."""
    file = _of_name(path)
    if file.kind:
        return file
    if path.suffix in SEGMENT_KINDS:
        return LogFile(path=path, kind=SEGMENT_KINDS[path.suffix])
    with RealSource(path) as source:
        return LogFile(path=path, kind="segment" if looks_like_log(source) else "")

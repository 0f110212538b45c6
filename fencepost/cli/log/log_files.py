"""Which of Kafka's files a path names.

Owns the real side of impl/log/dump/dump: directories, names, which kind a name means; audit/source.py opens
the files. Must not know what a file contains or how it is shown.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from fencepost.audit.source import RealSource
from fencepost.impl.log import layout
from fencepost.impl.log.dump.dump import looks_like_log
from fencepost.traces.errors import EnvironmentError_

SEGMENT_KINDS = {
    layout.LOG: "segment",
    layout.INDEX: "offset index",
    layout.TIME_INDEX: "time index",
    layout.SNAPSHOT: "producer snapshot",
    layout.TRANSACTION_INDEX: "transaction index",
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
__all__ = ["LogFile", "RealSource", "files_of"]
SNAPSHOT_KIND = "metadata snapshot"
_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint(\.part|\.deleted)?")
"""End offset and epoch of a snapshot of __cluster_metadata (KIP-630): batches as in a segment, with
separate offsets."""
_PARTITION = re.compile(r".+-\d+(\.[0-9a-f]+-(delete|future|stray))?")
_ASIDE = (layout.CLEANED, layout.SWAP, layout.DELETED)


@frozen(kw_only=True)
class LogFile:
    """A file to dump."""

    path: Path
    # One of the kinds above, or "" for a file that is not Kafka's.
    kind: str
    # The base offset in its name.
    base_offset: int | None = None
    # The name says that the file is being created or removed (compaction, deletion).
    aside: bool = False
    # Why a directory could not be listed, else empty.
    error: str = ""

    def sibling(self, kind: str) -> Path:
        """The path of another kind of file of the same segment."""
        return self.path.with_name(f"{self.path.name[: layout.DIGITS]}{kind}")


def files_of(path: Path) -> Iterator[LogFile]:
    """The files of a path, in the order of their names: the file itself, those of a partition's directory, or
    of all partitions of a data directory. Raises EnvironmentError_ if there is nothing, or nothing of
    Kafka's."""
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
    """The files of a partition; nothing for another directory (lost+found)."""
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
    if _SNAPSHOT.fullmatch(name):
        return LogFile(path=path, kind=SNAPSHOT_KIND, aside=not name.endswith(".checkpoint"))
    return LogFile(path=path, kind=NAMED_KINDS.get(name, ""))


def _of_any_name(path: Path) -> LogFile:
    """The kind by the file's name, else by its ending, else by its first bytes."""
    file = _of_name(path)
    if file.kind:
        return file
    if path.suffix in SEGMENT_KINDS:
        return LogFile(path=path, kind=SEGMENT_KINDS[path.suffix])
    with RealSource(path) as source:
        return LogFile(path=path, kind="segment" if looks_like_log(source) else "")

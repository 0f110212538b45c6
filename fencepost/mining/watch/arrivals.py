"""What is in a watched folder: whole files to read once, and files of an application that grow.

Owns which names are input, and what a file is called for a person. Must not know what files hold.
"""

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from fencepost.application.event_files import SUFFIX as EVENTS
from fencepost.mining.inputs.walk import Walk
from fencepost.traces.errors import TraceError
from fencepost.traces.store import JOURNAL_FOLDER, part_of_file

LINES, PARQUET = ".jsonl", ".parquet"


@frozen(kw_only=True)
class Arrival:
    """A file in the folder."""

    # Its path.
    path: Path
    # The folder that it belongs to, and the file, as the caller would write them.
    source: str
    place: str
    size_bytes: int
    # When it was written, nanoseconds.
    modified_ns: int

    @property
    def grows(self) -> bool:
        """Whether lines are appended to it: it is read again when it has another size."""
        return self.path.suffix == EVENTS

    @property
    def version(self) -> int:
        """What differs if it has to be read again."""
        return self.size_bytes if self.grows else 0


@frozen(kw_only=True)
class Folder:
    """The watched folder."""

    # As the caller wrote it.
    named: str
    # Its path.
    root: Path

    def look(self) -> list[Arrival]:
        """What is in it and below it, each real file once, the oldest first. Names that begin with a dot or
        an underscore are skipped, notes and journals of campaigns, and what a file in `traces` stands for."""
        found = []
        runs: list[Path] = []
        try:
            for path in Walk().below(self.root, self._wanted):
                if path.suffix == EVENTS:
                    runs = [*runs, path.parent] if not _above(runs, path.parent) else runs
                if (arrival := self._arrival(path, runs)) is not None:
                    found.append(arrival)
        except TraceError:
            pass  # a folder that is gone again, or cannot be read, is looked at next time
        return sorted(found, key=lambda one: (one.modified_ns, one.place))

    def _wanted(self, path: Path) -> bool:
        if path.suffix not in (LINES, PARQUET, EVENTS) or path.is_dir():
            return False
        if any(name[0] in "._" for name in path.relative_to(self.root).parts):
            return False
        if path.suffix == PARQUET:
            return path.parent.name not in ("operations", "events") or part_of_file(path) is None
        if path.suffix == EVENTS:
            return True
        return not any((path.parent / name).is_dir() for name in ("traces", JOURNAL_FOLDER))

    def _arrival(self, path: Path, runs: list[Path]) -> Arrival | None:
        try:
            about = path.stat()
        except OSError:
            return None
        folder = path.parent
        if path.suffix == EVENTS:
            folder = next(iter(_above(runs, path.parent)))
        elif path.suffix == PARQUET and folder.name == "traces":
            folder = folder.parent
        return Arrival(
            path=path, source=self.name(folder), place=self.name(path),
            size_bytes=about.st_size, modified_ns=about.st_mtime_ns,
        )  # fmt: skip

    def name(self, path: Path) -> str:
        """A path in the folder as the caller would write it. path: in the folder, or above it."""
        return (
            str(Path(self.named) / path.relative_to(self.root))
            if path.is_relative_to(self.root)
            else str(path)
        )

    def relative(self, name: str) -> str:
        """A name as seen from the folder, however the caller wrote it. name: as `name` makes it."""
        return str(Path(name).relative_to(self.named)) if Path(name).is_relative_to(self.named) else name

    def path(self, name: str) -> Path:
        """The path of a name. name: as `name` makes it."""
        return self.root / self.relative(name)


def _above(runs: list[Path], folder: Path) -> list[Path]:
    """The folders of runs that a folder is in: files of events below such a folder belong to its run."""
    return [run for run in runs if folder.is_relative_to(run)]


def in_pieces(arrivals: list[Arrival], most_bytes: int) -> Iterator[list[Arrival]]:
    """The arrivals in pieces of bounded size, at least one file in each. most_bytes: of a piece."""
    piece: list[Arrival] = []
    for one in arrivals:
        if piece and sum(other.size_bytes for other in piece) + one.size_bytes > most_bytes:
            yield piece
            piece = []
        piece.append(one)
    if piece:
        yield piece

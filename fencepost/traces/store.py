"""A folder of traces: sealed parts, the journals next to them, and every finished run found once.

Owns the layout, which runs are there, reading one or all. Must not know how parts are made of journals
(sealing.py).

    DIR/traces/part-00000.parquet        a part exists from the moment its file in `traces` does
    DIR/operations/part-00000.parquet
    DIR/events/part-00000.parquet
    DIR/journal/worker-0.journal         finished runs that are not sealed yet, one file per worker

A file in `operations` or `events` with a number that `traces` does not have was left by a killed sealing: it
is not read, and the next sealing replaces it. A run that is in a part and in a journal (killed
between the two) is read from the part.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from attrs import define, field, frozen

from fencepost.traces.canonical_rows import Rows, known_events, left_out_in_words, trace_of
from fencepost.traces.digest import check_digest
from fencepost.traces.errors import TraceError
from fencepost.traces.journal import SUFFIX, Frame, JournalWriter, read_frames, scan
from fencepost.traces.parquet.row_groups import (
    DAMAGED,
    RowGroup,
    TablePart,
    check_size,
    groups_of,
    open_part,
    read_tables,
    unreadable,
)
from fencepost.traces.parquet.soundness import unsound
from fencepost.traces.schema import SCHEMAS, TABLES
from fencepost.traces.tables import Tables, only, place_of, rows_of_tables
from fencepost.traces.trace import Trace

JOURNAL_FOLDER = "journal"
_PART = re.compile(r"part-(\d{5,})\.parquet")


def part_at(path: Path, number: int) -> TablePart:
    """The places of the three files of part `number` of the folder `path`."""
    return _part(path, number, f"part-{number:05}.parquet")


def part_of_file(file: Path) -> TablePart | None:
    """The part to which a file in `traces` belongs; None if its name is that of no part. Others may write
    more digits than we do."""
    found = _PART.fullmatch(file.name)
    return _part(file.parent.parent, int(found[1]), file.name) if found else None


def _part(path: Path, number: int, name: str) -> TablePart:
    return TablePart(
        number=number,
        traces=path / "traces" / name,
        operations=path / "operations" / name,
        events=path / "events" / name,
    )


@frozen
class InGroup:
    """A run in a row group of a part."""

    group: RowGroup


@frozen
class InJournal:
    """A run in a frame of a journal."""

    journal: Path
    frame: Frame


@define
class TraceStore:
    """A folder of traces."""

    # The folder.
    path: Path
    # The place of each finished run, found on first use. `refresh` drops it, which is needed only if another
    # process writes to the folder.
    _places: dict[int, InGroup | InJournal] | None = field(default=None, init=False)

    @classmethod
    def create(cls, path: Path) -> Self:
        """The store at `path`, its folders made where they are missing."""
        for name in (*TABLES, JOURNAL_FOLDER):
            (path / name).mkdir(parents=True, exist_ok=True)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The store at `path`. Raises TraceError if there is none."""
        if not any((path / name).is_dir() for name in ("traces", JOURNAL_FOLDER)):
            missing = "a file" if path.exists() else "no such folder"
            seen = "a folder without traces/ or journal/" if path.is_dir() else missing
            raise TraceError(expected="a folder of traces", seen=seen, where=str(path))
        return cls(path)

    def writer(self, worker: int | str = 0) -> JournalWriter:
        """The journal of one worker, opened, its torn tail cut. Each process takes a different worker name.
        Raises TraceError."""
        self.refresh()
        return JournalWriter.open(self.path / JOURNAL_FOLDER / f"worker-{worker}{SUFFIX}")

    def parts(self) -> tuple[TablePart, ...]:
        """The sealed parts, by number."""
        found = map(part_of_file, (self.path / "traces").glob("part-*.parquet"))
        return tuple(sorted((part for part in found if part), key=lambda part: (part.number, part.traces)))

    def lost_parts(self) -> tuple[Path, ...]:
        """Operations of parts of which the file in `traces` is not there: it has gone, or was never made.
        Where a journal is left, its runs are not in a part yet, and none is lost."""
        known = {part.operations for part in self.parts()}
        found = (self.path / "operations").glob("part-*.parquet")
        return () if self.journals() else tuple(sorted(path for path in found if path not in known))

    def journals(self) -> tuple[Path, ...]:
        """The journals, by name."""
        return tuple(sorted((self.path / JOURNAL_FOLDER).glob(f"*{SUFFIX}")))

    def refresh(self) -> None:
        """Read the folder again on the next question."""
        self._places = None

    def places(self) -> dict[int, InGroup | InJournal]:
        """The place of each finished run, by trace id. Raises TraceError for an unreadable file."""
        if self._places is None:
            places: dict[int, InGroup | InJournal] = {}
            for part in self.parts():
                for group, trace_ids in zip(groups_of(part), trace_ids_of(part), strict=True):
                    for trace_id in trace_ids:
                        places.setdefault(trace_id, InGroup(group))
            for journal in self.journals():
                for frame in scan(journal).frames:
                    places.setdefault(frame.trace_id, InJournal(journal, frame))
            self._places = places
        return self._places

    def trace_ids(self) -> frozenset[int]:
        """Every finished run, sealed or not: what `--resume` need not run again. Raises TraceError."""
        return frozenset(self.places())

    def read(self, trace_id: int, tell: Callable[[str], None] | None = None) -> Trace:
        """One run. tell: gets a sentence for events of each unknown name, which are left out then. Raises
        TraceError if it is not here or cannot be read; without `tell`, also for such events."""
        place = self.places().get(trace_id)
        if place is None:
            raise TraceError(
                expected=f"trace {trace_id}", seen=f"{len(self.places())} other traces", where=str(self.path)
            )
        if isinstance(place, InJournal):
            rows, where = next(read_frames(place.journal, [place.frame])), str(place.journal)
        else:
            where = str(place.group.part.traces)
            tables = only(read_tables(place.group.part, place.group.index), trace_id)
            rows = next(_checked(tables, where=where))
        if tell is not None:
            rows, strange = known_events(rows)
            for name, count in strange.items():
                tell(left_out_in_words(name, count, place_of(where, trace_id)))
        return trace_of(rows, where=where)

    def __iter__(self) -> Iterator[Trace]:
        """Every run once: parts in order, then journals. Memory is bounded by a row group. Raises
        TraceError."""
        places = self.places()
        for part in self.parts():
            for group in groups_of(part):
                for rows in _checked(read_tables(part, group.index), where=str(part.traces)):
                    if places[rows.trace_id] == InGroup(group):
                        yield trace_of(rows, where=str(part.traces))
        for journal, frames in self.unsealed().items():
            for rows in read_frames(journal, frames):
                yield trace_of(rows, where=str(journal))

    def unsealed(self) -> dict[Path, list[Frame]]:
        """The runs that only a journal has, by journal, in the order they finished. Raises TraceError."""
        found: dict[Path, list[Frame]] = {}
        for place in self.places().values():
            if isinstance(place, InJournal):
                found.setdefault(place.journal, []).append(place.frame)
        return found


def _checked(tables: Tables, *, where: str) -> Iterator[Rows]:
    """The rows of each trace of tables. Raises TraceError for one that lacks rows or values, or whose digest
    does not agree."""
    wrong = unsound(tables)
    for reason in (*wrong.traces.values(), *wrong.nameless):
        raise TraceError(expected="whole traces", seen=reason, where=where)
    for rows in rows_of_tables(tables, where=where):
        check_digest(rows, where=place_of(where, rows.trace_id))
        yield rows


def trace_ids_of(part: TablePart) -> list[list[int]]:
    """The trace ids of each row group of a part, in order; a row without one has none. Raises TraceError."""
    with open_part(part.traces, "traces") as file:
        try:
            return [_ids_of(file, index, where=str(part.traces)) for index in range(file.num_row_groups)]
        except DAMAGED as error:
            raise unreadable(part.traces, error) from None


def _ids_of(file: Any, group: int, *, where: str) -> list[int]:
    """Of a row group that could be read as a whole."""
    about = file.metadata.row_group(group)
    check_size(about, SCHEMAS["traces"].names, where=f"{where}, row group {group}")
    found: list[int] = file.read_row_group(group, columns=["trace_id"]).column(0).drop_null().to_pylist()
    return found

"""Sealing: journals become Parquet parts, whole or not at all, and no run is lost or doubled whenever it is
killed.

Owns: the order of the file operations, the size of parts and row groups. Must not know: what a run means.

Steps, each safe to be killed after:

1. Leftovers of a killed sealing are removed: temporary names, and files in `operations` and `events` without
   one in `traces`.
2. Runs that no part has yet are read from the journals that no worker holds, in the order of their trace ids
   (so that the parts do not depend on how many workers there were).
3. A part is written under temporary names; its three files are synced and renamed, `traces` last. That rename
   is the moment the part exists.
4. When every run of the journals is in a part, the journals are removed. Killed before that, the next sealing
   finds those runs in the parts (step 2) and only removes the journals.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from attrs import define, field, frozen

from fencepost.traces.canonical_rows import Rows
from fencepost.traces.errors import EnvironmentError_, TraceError
from fencepost.traces.journal import Scan, lock, read_frames, scan
from fencepost.traces.parquet.row_groups import open_part
from fencepost.traces.parquet.writer import PartWriter
from fencepost.traces.schema import TABLES, Table
from fencepost.traces.store import JOURNAL_FOLDER, TraceStore, part_at
from fencepost.traces.tables import CHUNK_ROWS, Tables, tables_of

_COMMIT_ORDER: tuple[Table, ...] = ("operations", "events", "traces")


class SealingFiles:
    """The file operations of sealing, so that a test can be killed at each of them."""

    def create(self, path: Path) -> BinaryIO:
        """A new, empty, writable file; an old one of that name is replaced."""
        return path.open("wb")

    def sync(self, file: BinaryIO) -> None:
        """The file's bytes survive a power loss from here on."""
        file.flush()
        os.fsync(file.fileno())

    def rename(self, source: Path, target: Path) -> None:
        """Atomic; an existing target is replaced."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def sync_folder(self, path: Path) -> None:
        """The names in the folder survive a power loss from here on."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@frozen(kw_only=True)
class Sizes:
    """A row group ends with the trace that reaches `group_operations` or `group_events`, so a reader's memory
    is bounded by them and one trace."""

    # Target of a part's three files together, large enough for a scan, small enough to be a task.
    part_bytes: int = 32 * 1024 * 1024
    group_operations: int = 65_536
    group_events: int = 262_144


WHOLE = Sizes(part_bytes=1 << 62)
"""A part takes all runs that it is given."""


@frozen(kw_only=True)
class Sealed:
    """What a sealing did."""

    # Numbers of the new parts.
    parts: tuple[int, ...] = ()
    # Number of runs sealed.
    traces: int = 0
    # Number of runs that a journal held again.
    repeated: int = 0
    # Number of journals left alone because their worker is alive.
    busy: tuple[str, ...] = ()
    # Number of frames skipped because their checksum fails.
    damaged: int = 0


@define
class _Group:
    """Whole traces on their way into a row group."""

    # Not yet columns.
    rows: list[Rows] = field(factory=list)
    # Columns so far; counts: of both.
    tables: list[Tables] = field(factory=list)
    chunk_rows: int = 0
    operations: int = 0
    events: int = 0

    def add(self, rows: Rows) -> None:
        self.rows.append(rows)
        self.operations += len(rows.operations)
        self.events += len(rows.events)
        self.chunk_rows += 1 + len(rows.operations) + len(rows.events)
        if self.chunk_rows >= CHUNK_ROWS:
            self._make_columns()

    def _make_columns(self) -> None:
        self.tables.append(tables_of(self.rows))
        self.rows, self.chunk_rows = [], 0

    @property
    def empty(self) -> bool:
        return not (self.rows or self.tables)

    def joined(self) -> Tables:
        if self.rows:
            self._make_columns()
        joined = {table: pa.concat_tables([chunk.of(table) for chunk in self.tables]) for table in TABLES}
        return Tables(traces=joined["traces"], operations=joined["operations"], events=joined["events"])


@define
class _Sealer:
    """One sealing of one store."""

    store: TraceStore
    files: SealingFiles
    sizes: Sizes
    # Digest by trace id of every run in a part, kept up as parts are made.
    sealed: dict[int, str] = field(factory=dict)
    # Runs that were met again.
    repeated: int = 0

    def clean(self) -> None:
        """Step 1: remove what a killed sealing left."""
        whole = {part.traces.name for part in self.store.parts()}
        for table in TABLES:
            for path in sorted((self.store.path / table).iterdir()):
                if path.suffix == ".tmp" or (path.name.startswith("part-") and path.name not in whole):
                    self.files.remove(path)

    def load(self) -> int:
        """Read which runs are in parts; answers the number of the next part."""
        number = 0
        for part in self.store.parts():
            number = part.number + 1
            with open_part(part.traces, "traces") as file:
                columns = file.read(columns=["trace_id", "digest"]).to_pydict()
            self.sealed.update(zip(columns["trace_id"], columns["digest"], strict=True))
        return number

    def runs(self, journals: list[Path], scans: list[Scan]) -> Iterator[Rows]:
        """Step 2: each run that no part has, once, by trace id. Raises TraceError for two runs under one
        id."""
        entries = [
            (frame.trace_id, order, frame) for order, found in enumerate(scans) for frame in found.frames
        ]
        for trace_id, order, frame in sorted(
            entries, key=lambda entry: (entry[0], entry[1], entry[2].offset)
        ):
            rows = next(read_frames(journals[order], [frame]))
            digest = rows.digest
            if trace_id not in self.sealed:
                self.sealed[trace_id] = digest
                yield rows
            elif self.sealed[trace_id] == digest:
                self.repeated += 1
            else:
                raise TraceError(
                    expected=f"one run under trace id {trace_id}",
                    seen=f"two, with digests {self.sealed[trace_id]} and {digest}",
                    where=str(journals[order]),
                    hint="give each campaign a separate folder",
                )

    def write_part(self, number: int, runs: Iterator[Rows]) -> int:
        """Step 3: one part from as many runs as it takes; answers how many, 0 if there were none."""
        return write_part(self.store.path, number, runs, files=self.files, sizes=self.sizes)


def write_part(
    path: Path,
    number: int,
    runs: Iterator[Rows],
    *,
    mark: str = "",
    files: SealingFiles | None = None,
    sizes: Sizes = WHOLE,
) -> int:
    """Write part `number` of the folder `path` from as many runs as `sizes` allows, completely or not at all.
    Returns how many, and writes nothing for none.

    mark: part of the temporary names; processes that may write the same part at the same time have different
    ones.
    """
    files = files or SealingFiles()
    first = next(runs, None)
    if first is None:
        return 0
    part = part_at(path, number)
    suffix = f".{mark}.tmp" if mark else ".tmp"
    temporary = {table: part.of(table).with_name(f".{part.of(table).name}{suffix}") for table in TABLES}
    with ExitStack() as stack:
        sinks = {table: stack.enter_context(files.create(temporary[table])) for table in TABLES}
        with PartWriter.open(sinks) as writer:
            count = _write_groups(writer, chain([first], runs), sizes)
        for table in TABLES:
            files.sync(sinks[table])
    for table in _COMMIT_ORDER:
        files.rename(temporary[table], part.of(table))
        files.sync_folder(part.of(table).parent)
    return count


def _write_groups(writer: PartWriter, runs: Iterator[Rows], sizes: Sizes) -> int:
    count, group = 0, _Group()
    for rows in runs:
        group.add(rows)
        count += 1
        if group.operations >= sizes.group_operations or group.events >= sizes.group_events:
            writer.write(group.joined())
            group = _Group()
            if writer.bytes_written() >= sizes.part_bytes:
                break
    if not group.empty:
        writer.write(group.joined())
    return count


@contextmanager
def _sealing_alone(path: Path) -> Iterator[None]:
    """Hold the folder's sealing lock. Raises TraceError if another process seals it now."""
    descriptor = os.open(path / JOURNAL_FOLDER, os.O_RDONLY)
    try:
        if not lock(descriptor):
            raise TraceError(
                expected="to seal alone", seen="that another process is sealing", where=str(path)
            )
        yield
    finally:
        os.close(descriptor)


def _hold(stack: ExitStack, journals: tuple[Path, ...]) -> tuple[list[Path], tuple[str, ...]]:
    """(journals that are ours until `stack` closes, names of those with a live worker)."""
    ours, busy = [], []
    for journal in journals:
        descriptor = os.open(journal, os.O_RDWR)
        stack.callback(os.close, descriptor)
        if lock(descriptor):
            ours.append(journal)
        else:
            busy.append(journal.name)
    return ours, tuple(busy)


def seal(store: TraceStore, *, sizes: Sizes | None = None, files: SealingFiles | None = None) -> Sealed:
    """Make parts of every journal that no worker holds, then remove them. sizes, files: None for the
    defaults.

    Raises TraceError for an unreadable journal or part, and for two different runs under one trace id;
    EnvironmentError_ if the disk refuses. After any failure the folder has every run that it had before.
    """
    store = TraceStore.create(store.path)
    sealer = _Sealer(store, files or SealingFiles(), sizes or Sizes())
    try:
        with _sealing_alone(store.path), ExitStack() as stack:
            sealer.clean()
            ours, busy = _hold(stack, store.journals())
            scans = [scan(journal) for journal in ours]
            number = sealer.load()
            runs = sealer.runs(ours, scans)
            parts: list[int] = []
            traces = 0
            while count := sealer.write_part(number, runs):
                parts.append(number)
                traces += count
                number += 1
            for journal in ours:
                sealer.files.remove(journal)
            sealer.files.sync_folder(store.path / JOURNAL_FOLDER)
    except OSError as error:
        raise EnvironmentError_(
            expected="to write parts", seen=error.strerror or str(error), where=str(store.path)
        ) from None
    return Sealed(
        parts=tuple(parts),
        traces=traces,
        repeated=sealer.repeated,
        busy=busy,
        damaged=sum(len(found.damaged) for found in scans),
    )

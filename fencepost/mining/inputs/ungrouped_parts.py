"""Files that do not promise each trace whole within one row group, and row groups that are too large: which
traces they hold.

Owns: telling giant histories from small ones before anything is judged, and reading row groups of any size.
Must not know: Spark, judges.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, frozen

from fencepost.mining.inputs.splits import Split, Unreadable
from fencepost.mining.inputs.splits import Work as Found
from fencepost.traces.errors import TraceError
from fencepost.traces.parquet.row_groups import DAMAGED, TablePart, parquet_file, unreadable
from fencepost.traces.schema import SCHEMAS, TABLES, WHOLE_KEY, Table, check_schema
from fencepost.traces.store import TraceStore

GIANT_OPERATIONS = 1_000_000
"""A history of more is judged by slot ranges: as a whole it would need more than two gigabytes."""
RECORDS_OF_ONE = 5
"""Records that weigh as much as an operation: an operation may have thousands of them."""
BATCH_ROWS = 250_000
"""Rows that are read at once of a row group of any size."""
FOOTERS = 4
"""Footers that a process keeps. Each row group of a file is read by itself, and a footer describes all of
them: to read it again for each would take quadratic time. Four: the tables of a part, and the next one."""


CUT = "some of its rows may be in a row group that cannot be read"


@frozen(kw_only=True)
class UngroupedPart:
    """Row groups of a part in which a trace may be cut, or too large to be read at once."""

    source: str
    part: TablePart
    # By table.
    groups: dict[Table, tuple[int, ...]]
    # Trace ids that are in an earlier row group of whole traces, and are left out.
    repeated: tuple[int, ...] = ()


@frozen(kw_only=True)
class Place:
    """A row group of operations."""

    path: Path
    group: int


@frozen(kw_only=True)
class Giant:
    """One giant history."""

    source: str
    trace_id: int
    operations: int
    records: int
    # Row groups that hold its operations, in order.
    places: tuple[Place, ...]
    # Where its row of traces and its events are.
    loose: tuple[UngroupedPart, ...]

    @property
    def weight(self) -> int:
        """What it takes as a whole, in operations."""
        return max(self.operations, self.records // RECORDS_OF_ONE)

    @property
    def place(self) -> str:
        """What a person would look at."""
        return f"{self.places[0].path}, row groups from {self.places[0].group} on"


@frozen(kw_only=True)
class Prepared:
    """The work after giants and cut traces are separated."""

    # What can be judged by row group.
    found: Found
    giants: tuple[Giant, ...] = ()
    loose: tuple[UngroupedPart, ...] = ()
    # Traces that must be regrouped, with their operations, by source.
    small: dict[str, dict[int, int]] = {}  # noqa: RUF008 (frozen, never written)

    @property
    def regrouped(self) -> int:
        """Traces that must be regrouped."""
        return sum(map(len, self.small.values()))


@lru_cache(maxsize=FOOTERS)
def _footer(path: Path, table: Table, _: tuple[int, int]) -> pq.FileMetaData:
    """The footer of a file of a part, its schema checked. _: when the file was written, and its size. Raises
    TraceError."""
    with parquet_file(path) as file:
        promised = {**(file.schema_arrow.metadata or {}), WHOLE_KEY: b"true"}
        check_schema(file.schema_arrow.with_metadata(promised), table, where=str(path))
        return file.metadata


def _open(path: Path, table: Table, dictionary: tuple[str, ...] = ()) -> pq.ParquetFile:
    """A file of a part that need not promise anything of its row groups. Raises TraceError."""
    try:
        about = path.stat()
        footer = _footer(path, table, (about.st_mtime_ns, about.st_size))
        return parquet_file(path, dictionary=dictionary, footer=footer)
    except DAMAGED as error:
        raise unreadable(path, error) from None


def _promises(part: TablePart) -> bool:
    """Whether it says that its traces are whole within row groups. Raises TraceError where that cannot be
    read."""
    with _open(part.operations, "operations") as file:
        return bool((file.schema_arrow.metadata or {}).get(WHOLE_KEY) == b"true")


def batches_of(
    path: Path,
    table: Table,
    group: int,
    columns: list[str] | None = None,
    *,
    dictionary: tuple[str, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of a row group of any size, few at a time. dictionary: string columns to read as dictionaries.
    Raises TraceError, also for a null where none may be: some trace lacks a value, or a row."""
    names = columns or SCHEMAS[table].names
    with _open(path, table, dictionary) as file:
        try:
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names):
                yield _with_values(batch.select(names), table, where=f"{path}, row group {group}")
        except DAMAGED as error:
            raise unreadable(path, error) from None


def _with_values(batch: pa.RecordBatch, table: Table, *, where: str) -> pa.RecordBatch:
    """The rows, nullable where the table is, whatever their file allows. Raises TraceError for a null in
    another column."""
    fields = []
    for field in batch.schema:
        nullable = SCHEMAS[table].field(field.name).nullable
        if not nullable and batch.column(field.name).null_count:
            raise TraceError(
                expected=f"a value in the column {field.name} of {table}", seen="null", where=where
            )
        fields.append(field.with_nullable(nullable))
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def _records_in(path: Path, group: int) -> int:
    """Records of the operations of a row group, by its footer; an operation without any counts as one."""
    with _open(path, "operations") as file:
        row_group = file.metadata.row_group(group)
        columns = (row_group.column(at) for at in range(row_group.num_columns))
        return next((one.num_values for one in columns if one.path_in_schema.startswith("records.")), 0)


def _bounds(file: pq.ParquetFile, group: int) -> tuple[int, int] | None:
    """The lowest and highest trace id of a row group, by the footer; None if it does not say, or if a row has
    none."""
    known = file.metadata.row_group(group).column(file.schema_arrow.get_field_index("trace_id")).statistics
    if known is None or not known.has_min_max or known.null_count != 0:  # None: it does not say
        return None
    return int(str(known.min)), int(str(known.max))


def _counted(path: Path, group: int) -> dict[int, int]:
    """Operations by trace of a row group; without reading it where the footer says that there is one
    trace."""
    with _open(path, "operations") as file:
        bounds = _bounds(file, group)
        if bounds is not None and bounds[0] == bounds[1]:
            return {bounds[0]: file.metadata.row_group(group).num_rows}
    counts: dict[int, int] = defaultdict(int)
    for batch in batches_of(path, "operations", group, ["trace_id"]):
        ids, many = np.unique(batch.column(0).to_numpy(), return_counts=True)
        for trace_id, count in zip(ids.tolist(), many.tolist(), strict=True):
            counts[trace_id] += count
    return counts


def ids_within(path: Path, table: Table, group: int) -> tuple[int, int]:
    """The lowest and highest trace id that a row group may hold, as far as the footer says; also where its
    rows cannot be read. A row without a trace id may be of any trace."""
    with contextlib.suppress(TraceError), _open(path, table) as file:
        bounds = _bounds(file, group)
        if bounds is not None:
            return bounds
    limits = np.iinfo(np.int64)
    return int(limits.min), int(limits.max)


def _loose_of(source: str, part: TablePart) -> UngroupedPart:
    groups: dict[Table, tuple[int, ...]] = {}
    for table in TABLES:
        with _open(part.of(table), table) as file:
            groups[table] = tuple(range(file.metadata.num_row_groups))
    return UngroupedPart(source=source, part=part, groups=groups)


def _find_loose(inputs: list[Path]) -> tuple[list[UngroupedPart], list[Unreadable], set[str]]:
    """Parts that promise nothing; those of them that cannot be read; and the places of both."""
    loose, bad, places = [], [], set()
    for path in inputs:
        for part in TraceStore.open(path.absolute()).parts():
            try:
                if _promises(part):
                    continue
            except TraceError:
                continue  # the code that lists the splits reports what is wrong with it
            places.add(str(part.traces))
            try:
                loose.append(_loose_of(str(path), part))
            except TraceError as error:
                bad.append(Unreadable(source=str(path), place=str(part.traces), reason=str(error)))
    return loose, bad, places


def _too_large(split: Split, giant: int) -> bool:
    """Whether a row group of whole traces holds a giant one."""
    if split.group is None or split.group.operations <= giant:
        return False
    try:
        return max(_counted(split.group.part.operations, split.group.index).values(), default=0) > giant
    except TraceError:
        return False


def prepare(inputs: list[Path], found: Found, *, giant: int = GIANT_OPERATIONS) -> Prepared:
    """Separate what `found` can judge by row group, giant histories, and small traces to regroup. inputs: as
    named by the caller; giant: a trace with more operations is giant, and one with more than RECORDS_OF_ONE
    times as many records."""
    loose, bad, places = _find_loose(inputs)
    large = [split for split in found.splits if _too_large(split, giant)]
    for split in large:
        assert split.group is not None
        groups: dict[Table, tuple[int, ...]] = dict.fromkeys(TABLES, (split.group.index,))
        loose.append(
            UngroupedPart(source=split.source, part=split.group.part, groups=groups, repeated=split.repeated)
        )
        reason = "its trace id is in an earlier row group too, which is judged"
        bad += [
            Unreadable(source=split.source, place=split.place, reason=reason, trace_id=one)
            for one in split.repeated
        ]
    counts: dict[tuple[str, int], int] = defaultdict(int)
    records: dict[tuple[str, int], float] = defaultdict(float)
    where: dict[tuple[str, int], list[Place]] = defaultdict(list)
    torn: list[tuple[str, int, int]] = []
    for one in loose:
        path = one.part.operations
        for group in one.groups["operations"]:
            try:
                counted, held = _counted(path, group), _records_in(path, group)
            except TraceError as error:
                place = f"{path}, row group {group}"
                bad.append(Unreadable(source=one.source, place=place, reason=str(error)))
                torn.append((one.source, *ids_within(path, "operations", group)))
                continue
            for trace_id, count in counted.items():
                if trace_id in one.repeated:
                    continue
                counts[one.source, trace_id] += count
                records[one.source, trace_id] += held * count / sum(counted.values())
                where[one.source, trace_id].append(Place(path=path, group=group))
    weighty = {key for key, count in counts.items() if count > giant or records[key] > giant * RECORDS_OF_ONE}
    giants = [
        Giant(
            source=source,
            trace_id=trace_id,
            operations=count,
            records=int(records[source, trace_id]),
            places=tuple(where[source, trace_id]),
            loose=tuple(one for one in loose if one.source == source),
        )
        for (source, trace_id), count in sorted(counts.items())
        if (source, trace_id) in weighty
    ]
    for cut in [g for g in giants if any(s == g.source and a <= g.trace_id <= b for s, a, b in torn)]:
        giants.remove(cut)
        bad.append(Unreadable(source=cut.source, place=cut.place, reason=CUT, trace_id=cut.trace_id))
    small: dict[str, dict[int, int]] = defaultdict(dict)
    for (source, trace_id), count in sorted(counts.items()):
        if (source, trace_id) not in weighty:
            small[source][trace_id] = count
    _add_idle(loose, counts, small)
    kept = evolve(
        found,
        splits=tuple(split for split in found.splits if split not in large),
        unreadable=(*(one for one in found.unreadable if one.place not in places), *bad),
    )
    return Prepared(found=kept, giants=tuple(giants), loose=tuple(loose), small=dict(small))


def _add_idle(
    loose: list[UngroupedPart], counts: dict[tuple[str, int], int], small: dict[str, dict[int, int]]
) -> None:
    """Traces without any operation are small ones too."""
    for one in loose:
        for group in one.groups["traces"]:
            try:
                for batch in batches_of(one.part.traces, "traces", group, ["trace_id"]):
                    for trace_id in batch.column(0).to_numpy().tolist():
                        if (one.source, trace_id) not in counts and trace_id not in one.repeated:
                            small.setdefault(one.source, {})[trace_id] = 0
            except TraceError:
                continue  # its traces have no row: each of them is reported

"""The tables of a mining that triage reads, one file at a time.

Owns: how they are read, and counted without all of their rows in memory. Must not know what is counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.traces.tables import values_of

Row = Mapping[str, Any]
Healthy = Mapping[str, Mapping[str, int]]
"""Healthy traces by profile and feature; with the feature ALL all of a profile."""


def parts_of(folder: Path, *columns: str) -> Iterator[list[Row]]:
    """The rows of each file of a table, in order. folder: of the table; columns: those that are read; none:
    all. Each word of a file is in memory once, however many rows have it."""
    for path in sorted(folder.glob("*.parquet")):
        table = _coded(path, columns or tuple(pq.read_schema(path).names))
        values = map(values_of, table.columns)
        yield [dict(zip(table.column_names, row, strict=True)) for row in zip(*values, strict=True)]


def rows_of(folder: Path, *columns: str) -> Iterator[Row]:
    """The rows of a table. folder, columns: as of parts_of."""
    for part in parts_of(folder, *columns):
        yield from part


def _coded(path: Path, columns: tuple[str, ...]) -> Any:
    """Columns of a file, their words as dictionaries."""
    metadata = pq.read_metadata(path)
    leaves = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    chosen: dict[str, Any] = {"columns": list(columns), "use_threads": False, "partitioning": None}
    try:
        return pq.read_table(path, read_dictionary=leaves, **chosen)
    except pa.ArrowNotImplementedError:  # lists with more words than a file's dictionary holds
        return pq.read_table(path, **chosen)


def size_of(folder: Path) -> int:
    """Rows of a table, by its footers. folder: of the table."""
    return sum(int(pq.read_metadata(path).num_rows) for path in sorted(folder.glob("*.parquet")))


def healthy_of(folder: Path) -> Healthy:
    """The counts of `contrast`, those of all tasks added up. So more traces or tasks hardly make more of
    them. folder: of the table."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows_of(folder):
        counts[row["profile"]][row["feature"]] += row["traces"]
    return {profile: dict(by) for profile, by in sorted(counts.items())}

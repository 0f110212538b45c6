"""Rows of triage in this process: few bad traces are counted here, without Spark's fixed cost of many small
queries.

Owns: how the tables of a mining are read, counting in memory, and the size up to which that is done. Must not
know Spark, or what is counted.

docs/decisions/small-triage.md has the measurement.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from fencepost.mining.triage.grouping import Key, Labels
from fencepost.mining.triage.overrepresented import Healthy
from fencepost.mining.triage.tally import Described, Row, Tally
from fencepost.traces.tables import values_of

MOST_VALUES = 5_000_000
"""Values of the tables `evidence` and `spectra` that are counted in memory. A bad run of a campaign has a few
hundred. The decision has what so many cost here and on Spark."""


def values_in(*folders: Path) -> int:
    """Values of all columns of tables, elements of lists included, by their footers."""
    files = [pq.read_metadata(path) for folder in folders for path in sorted(folder.glob("*.parquet"))]
    return sum(
        int(file.row_group(group).column(column).num_values)
        for file in files
        for group in range(file.num_row_groups)
        for column in range(file.num_columns)
    )


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a table. Each word of a file is in memory once, however many rows have it."""
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.parquet")):
        table = _coded(path)
        columns = map(values_of, table.columns)
        rows += (dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True))
    return rows


def _coded(path: Path) -> Any:
    """A file of a table, its words as dictionaries."""
    metadata = pq.read_metadata(path)
    names = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    try:
        return pq.read_table(path, read_dictionary=names, use_threads=False, partitioning=None)
    except pa.ArrowNotImplementedError:  # lists with more words than a file's dictionary holds
        return pq.read_table(path, use_threads=False, partitioning=None)


def healthy_of(folder: Path) -> Healthy:
    """The counts of `contrast`, those of all tasks added up. So more traces or tasks hardly make more of
    them. folder: of the table."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(folder.glob("*.parquet")):
        table = _coded(path)
        columns = (values_of(table.column(name)) for name in ("profile", "feature", "traces"))
        for profile, feature, traces in zip(*columns, strict=True):
            counts[profile][feature] += traces
    return {profile: dict(by) for profile, by in sorted(counts.items())}


@frozen(eq=False)
class InMemory:
    """Rows of a table. rows: all of them."""

    rows: Sequence[Row]

    def count(
        self,
        columns: Sequence[str],
        keys: Callable[[Row], Iterable[Key]],
        *,
        least: int = 1,
        most: int | None = None,
    ) -> dict[Key, int]:
        """As in Counted."""
        found = Counter(key for row in self.rows for key in keys(row))
        kept = [(key, count) for key, count in found.items() if count >= least]
        if most is not None:
            kept = sorted(kept, key=lambda one: (-one[1], one[0]))[:most]
        return dict(kept)

    def described(self, labels: Labels, healthy: Healthy) -> list[Described]:
        """As in Counted."""
        found = tallied(self.rows, labels)
        return [one.described(label, healthy) for label, one in found.items()]


def tallied(rows: Iterable[Row], labels: Labels) -> dict[int, Tally]:
    """What bad traces are, by label.

    Args:
        rows: of `evidence`.
        labels: of the traces.
    """
    found: dict[int, Tally] = defaultdict(Tally)
    for row in rows:
        label, also = labels.of(row)
        found[label].add(row, also)
    return found

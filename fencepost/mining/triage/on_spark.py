"""Many bad traces, reduced by Spark: the functions of in_memory.py, each on a part of the rows, and their
counts added up.

Owns: how rows are spread and counts are brought together. Must not know: what is counted, or why.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from attrs import frozen

from fencepost.mining.triage.grouping import Key, Labels, groups_of
from fencepost.mining.triage.in_memory import tallied
from fencepost.mining.triage.overrepresented import Healthy
from fencepost.mining.triage.tally import Described, Row, Tally

Batches = Iterator[pa.RecordBatch]


@frozen(eq=False)
class OnSpark:
    """Rows of a table. frame: a DataFrame of it."""

    frame: Any

    def count(
        self,
        columns: Sequence[str],
        keys: Callable[[Row], Iterable[Key]],
        *,
        least: int = 1,
        most: int | None = None,
    ) -> dict[Key, int]:
        """As in Counted."""
        from pyspark.sql import functions as sql

        def counted(batches: Batches) -> Batches:
            found = Counter(key for row in _rows(batches) for key in keys(row))
            yield _batch(key=list(map(list, found)), traces=list(found.values()))

        parts = self.frame.select(*columns).mapInArrow(counted, "key array<string>, traces bigint")
        whole = parts.groupBy("key").agg(sql.sum("traces").alias("traces")).where(sql.col("traces") >= least)
        if most is not None:
            whole = whole.orderBy(sql.desc("traces"), "key").limit(most)
        return {tuple(row["key"]): int(row["traces"]) for row in whole.collect()}

    def described(self, labels: Labels, healthy: Healthy) -> list[Described]:
        """As in Counted. The tallies of a label meet on one executor, which describes it."""
        parts = self.frame.mapInArrow(partial(_tallied, labels), "label bigint, tally binary")

        def describe(tallies: pa.Table) -> pa.Table:  # PySpark reads the types of what it is given
            return _described(tallies, healthy)

        whole = parts.groupBy("label").applyInArrow(describe, "found binary")
        return [msgspec.json.decode(bytes(row["found"]), type=Described) for row in whole.collect()]

    def write_groups(self, uri: str, labels: Labels) -> None:
        """Write the table `groups`. uri: of its folder; labels: of the traces."""
        schema = "source string, trace_id bigint, anomaly string, bug bigint, also array<bigint>"
        rows = self.frame.select("source", "trace_id", "anomaly", "items").mapInArrow(
            partial(_grouped, labels), schema
        )
        rows.write.mode("overwrite").parquet(uri)


def _rows(batches: Batches) -> Iterator[Row]:
    for batch in batches:
        yield from batch.to_pylist()


def _batch(**columns: list[Any]) -> pa.RecordBatch:
    kinds = {"key": pa.list_(pa.string()), "traces": pa.int64(), "label": pa.int64(), "tally": pa.binary()}
    return pa.RecordBatch.from_pydict(
        {name: pa.array(column, kinds[name]) for name, column in columns.items()}
    )


def _tallied(labels: Labels, batches: Batches) -> Batches:
    found = tallied(_rows(batches), labels)
    yield _batch(label=list(found), tally=[one.to_json() for one in found.values()])


def _described(parts: pa.Table, healthy: Healthy) -> pa.Table:
    whole = Tally()
    texts: Any = parts.column("tally").to_pylist()
    for text in texts:
        whole.merge(Tally.from_json(text))
    found = whole.described(parts.column("label")[0].as_py(), healthy)
    return pa.table({"found": pa.array([msgspec.json.encode(found)], pa.binary())})


def _grouped(labels: Labels, batches: Batches) -> Batches:
    for batch in batches:
        yield groups_of(batch.to_pylist(), labels)

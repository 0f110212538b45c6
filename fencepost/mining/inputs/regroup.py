"""Small traces that are cut over row groups, regrouped once.

Owns: the two steps (scatter, gather) that bring each of them together as a folder of traces. Must not know:
Spark, judges. Rows of a trace keep the order of parts, row groups and rows; nothing of the input is changed.
Every step may be done again.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from fencepost.mining.inputs.splits import Unreadable, work_of
from fencepost.mining.inputs.ungrouped_parts import CUT, Prepared, UngroupedPart, batches_of, ids_within
from fencepost.traces.errors import TraceError
from fencepost.traces.parquet.writer import PartWriter
from fencepost.traces.schema import SCHEMAS, TABLES, Table
from fencepost.traces.store import part_at
from fencepost.traces.tables import Tables

BUCKET_OPERATIONS = 500_000
"""Operations of small traces that are brought together at once."""
GROUP_OPERATIONS = 65_536
"""Operations of a row group that regrouping writes, as sealing does."""


@frozen(kw_only=True)
class Scatter:
    """Take the small traces of one part's row groups apart."""

    loose: UngroupedPart
    # Trace id -> where it is gathered.
    buckets: dict[int, int]
    # Of the part, in order.
    number: int
    # Of this source.
    folder: Path

    def __call__(self) -> list[tuple[Unreadable, int, int]]:
        """Write the rows of each bucket; may be done again. What could not be read, with the lowest and
        highest trace id in it."""
        ids = np.array(sorted(self.buckets.keys() - set(self.loose.repeated)), np.int64)
        bucket_of = np.array([self.buckets[trace_id] for trace_id in ids.tolist()], np.int64)
        bad = []
        for table in TABLES:
            for group in self.loose.groups[table]:
                path = self.loose.part.of(table)
                try:
                    for count, batch in enumerate(batches_of(path, table, group)):
                        self._write(table, batch, f"{self.number:06}-{group:06}-{count:06}", ids, bucket_of)
                except TraceError as error:
                    place = f"{path}, row group {group}"
                    damaged = Unreadable(source=self.loose.source, place=place, reason=str(error))
                    bad.append((damaged, *ids_within(path, table, group)))
        return bad

    def _write(self, table: Table, batch: pa.RecordBatch, name: str, ids: Any, bucket_of: Any) -> None:
        mine = batch.column("trace_id").to_numpy()
        if not len(ids):
            return
        at = np.minimum(np.searchsorted(ids, mine), len(ids) - 1)
        bucket = np.where(ids[at] == mine, bucket_of[at], -1)
        for number in np.unique(bucket[bucket >= 0]).tolist():
            path = self.folder / table / f"{number:06}" / f"{name}.arrow"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = batch.filter(pa.array(bucket == number))
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
                writer.write(rows)


@frozen(kw_only=True)
class Gather:
    """Bring one bucket's traces together as a part of a folder of traces."""

    bucket: int
    # Where Scatter wrote.
    scattered: Path
    # The folder to write to.
    store: Path
    # Traces that are left out, because some of their rows may be missing.
    without: tuple[int, ...] = ()

    def __call__(self) -> list[Unreadable]:
        """Write the part; may be done again."""
        tables = Tables(**{table: self._sorted(table) for table in TABLES})
        ids = tables.traces.column("trace_id").to_numpy()
        mine = {table: tables.of(table).column("trace_id").to_numpy() for table in TABLES}
        sizes = np.searchsorted(mine["operations"], ids, side="right")
        cuts = [0, *(np.flatnonzero(np.diff(sizes // GROUP_OPERATIONS)) + 1).tolist(), len(ids)]
        part = part_at(self.store, self.bucket)
        for table in TABLES:
            part.of(table).parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            sinks: dict[Table, BinaryIO] = {
                table: stack.enter_context(part.of(table).open("wb")) for table in TABLES
            }
            writer = stack.enter_context(PartWriter.open(sinks))
            for start, stop in pairwise(cuts):
                low = ids[start] if start else np.iinfo(np.int64).min
                high = ids[stop] if stop < len(ids) else None
                pieces = {table: _between(tables.of(table), mine[table], low, high) for table in TABLES}
                writer.write(Tables(**pieces))
        return []

    def _sorted(self, table: Table) -> pa.Table:
        """All rows of the bucket by trace, otherwise in their order."""
        found = [SCHEMAS[table].empty_table()]
        for path in sorted((self.scattered / table / f"{self.bucket:06}").glob("*.arrow")):
            with pa.memory_map(str(path)) as source:
                found.append(pa.ipc.open_file(source).read_all().cast(SCHEMAS[table]))
        rows = pa.concat_tables(found)
        if self.without:
            cut = np.isin(rows.column("trace_id").to_numpy(), self.without)
            rows = rows.filter(pa.array(~cut))
        order = np.argsort(rows.column("trace_id").to_numpy(), kind="stable")
        return rows.take(order).combine_chunks()


def _between(rows: pa.Table, ids: Any, low: int, high: int | None) -> pa.Table:
    """The rows of trace ids from `low` to below `high`."""
    start = int(np.searchsorted(ids, low))
    stop = len(ids) if high is None else int(np.searchsorted(ids, high))
    return rows.slice(start, stop - start)


def buckets_of(traces: dict[int, int]) -> dict[int, int]:
    """Trace id -> bucket: consecutive traces up to BUCKET_OPERATIONS (and as many traces) share one."""
    damaged, bucket, load = {}, 0, 0
    for trace_id, operations in sorted(traces.items()):
        if load and load + operations + 1 > BUCKET_OPERATIONS:
            bucket, load = bucket + 1, 0
        damaged[trace_id] = bucket
        load += operations + 1
    return damaged


def regroup(
    prepared: Prepared, folder: Path, spread: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
) -> Prepared:
    """Bring small traces that are cut together, once, as folders of traces in `folder`; what was brought
    together before stays. The work with them in it."""
    found = prepared.found
    splits, bad = list(found.splits), list(found.unreadable)
    for number, (source, traces) in enumerate(sorted(prepared.small.items())):
        home = folder / "regrouped" / str(number)
        done = home / "unreadable.json"
        if not done.exists():
            buckets = buckets_of(traces)
            mine = [one for one in prepared.loose if one.source == source]
            scatters = [
                Scatter(loose=one, buckets=buckets, number=count, folder=home / "scattered")
                for count, one in enumerate(mine)
            ]
            torn = [one for many in spread(_call, scatters) for one in many]
            cut = {trace_id for trace_id in traces if any(low <= trace_id <= high for _, low, high in torn)}
            damaged = [one for one, _, _ in torn]
            damaged += [
                Unreadable(source=source, place=source, reason=CUT, trace_id=one) for one in sorted(cut)
            ]
            gathers = [
                Gather(
                    bucket=bucket,
                    scattered=home / "scattered",
                    store=home / "store",
                    without=tuple(sorted(cut)),
                )
                for bucket in sorted(set(buckets.values()))
            ]
            spread(_call, gathers)
            shutil.rmtree(home / "scattered", ignore_errors=True)
            done.write_bytes(msgspec.json.encode(damaged))
        known = {one.place for one in bad}
        damaged = msgspec.json.decode(done.read_bytes(), type=list[Unreadable])
        bad += [one for one in damaged if one.trace_id >= 0 or one.place not in known]
        whole = work_of([home / "store"])
        splits += [evolve(split, source=source) for split in whole.splits]
        bad += [evolve(one, source=source) for one in whole.unreadable]
    return evolve(prepared, found=evolve(found, splits=tuple(splits), unreadable=tuple(bad)))


def _call(step: Scatter | Gather) -> Any:
    return step()

"""Legal giant histories of one partition as Parquet, made with NumPy a million operations at a time, and the
same with known faults.

Operation k takes effect at moment 10 k: half appends, half strong reads of a few records near the end.
Clients take turns. Some appends are unknown though they were written, most of them are read. A million
operations are a row group, so that the history is cut over many, as files of others are.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve

from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.schema import RECORD_TYPE, SCHEMAS, WHOLE_KEY
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import Tables, tables_of
from fencepost.traces.trace import Claims, Trace

GROUP = 1_000_000
GROUPS_PER_PART = 10
RECORDS, BEHIND, UNKNOWN = 5, 50, 0.02
"""Records of a read, how far below the end it may begin, and the share of appends whose answer is lost."""
FAULTS = ("none", "stale_read", "phantom_record")

HEADER = Trace(trace_id=1, plan="", seed=1, software_version="bench", claims=Claims(dense=True))


def _schema(table: str) -> Any:
    """Not promising whole traces."""
    schema = SCHEMAS[table]  # type: ignore[index]
    return schema.with_metadata({**schema.metadata, WHOLE_KEY: b"false"})


def _group(
    start: int, size: int, clients: int, base: int, tail: Any, random: Any
) -> tuple[dict[str, Any], int, Any]:
    """Operations [start, start + size). base: the log's end before them; tail: values of its last records.
    Columns, the new end and tail."""
    appending = random.random(size) < 0.5
    offset = base + np.cumsum(appending) - appending
    moment = 10 * np.arange(start, start + size, dtype=np.int64)
    slack = 4 * clients
    values = np.concatenate((tail, (np.arange(start, start + size) * 1000)[appending]))
    lost = appending & (random.random(size) < UNKNOWN)
    position = np.maximum(base - len(tail), offset - RECORDS - random.integers(0, BEHIND, size))
    count = np.where(appending, 1, np.minimum(RECORDS, offset - position))
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(count, out=starts[1:])
    at = np.repeat(np.where(appending, offset, position) - starts[:-1], count) + np.arange(starts[-1])
    columns = {
        "appending": appending,
        "lost": lost,
        "op_id": np.arange(start, start + size),
        "process": np.arange(start, start + size) % clients,
        "invoke_time": moment - random.integers(0, slack + 1, size),
        "completion_time": moment + random.integers(0, slack + 1, size),
        "offset": np.where(appending, offset, position),
        "end": offset,
        "starts": starts,
        "record_offset": np.where(np.repeat(appending, count), -1, at),
        "record_value": values[at - (base - len(tail))],
    }
    return columns, base + int(appending.sum()), values[-(RECORDS + BEHIND) :]


def _words(codes: Any, *names: str) -> Any:
    """A column of strings out of few."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(pa.string())


def _records(columns: dict[str, Any], kind: Any) -> Any:
    """The records of each operation, as lists."""
    count = len(columns["record_value"])
    fields = {
        "topic": _words(np.zeros(count), "t"),
        "partition": pa.array(np.zeros(count, np.int64)),
        "offset": pa.array(columns["record_offset"]),
        "value": pa.array(columns["record_value"]),
        "leader_epoch": pa.array(np.full(count, -1, np.int64)),
    }
    structs = pa.StructArray.from_arrays(
        [fields[field.name] for field in RECORD_TYPE], fields=list(RECORD_TYPE)
    )
    return pa.ListArray.from_arrays(pa.array(columns["starts"].astype(np.int32)), structs, type=kind)


def _unsaid(field: Any, size: int) -> Any:
    """A column of which the history says nothing."""
    if pa.types.is_list(field.type):
        none = pa.array([], field.type.value_type)
        return pa.ListArray.from_arrays(pa.array(np.zeros(size + 1, np.int32)), none, type=field.type)
    if field.nullable:
        return pa.nulls(size, field.type)
    if pa.types.is_string(field.type):
        return _words(np.zeros(size), "")
    return pa.array(np.full(size, int(field.name == "trace_id"), np.int64)).cast(field.type)


def _table(columns: dict[str, Any]) -> Any:
    """The columns as rows of `operations`."""
    size, appending, lost = len(columns["op_id"]), columns["appending"], columns["lost"]
    told = {
        "op_id": pa.array(columns["op_id"]),
        "process": pa.array(columns["process"]),
        "function": _words(~appending, "append", "poll"),
        "outcome": _words(lost, "ok", "unknown"),
        "invoke_time": pa.array(columns["invoke_time"]),
        "completion_time": pa.array(columns["completion_time"], mask=lost),
        "topic": _words(np.zeros(size), "t"),
        "partition": pa.array(np.zeros(size, np.int64)),
        "acks": pa.array(np.full(size, -1, np.int64), mask=~appending),
        "offset": pa.array(columns["offset"], mask=lost),
        "end_offset": pa.array(columns["end"], mask=appending),
        "strong": pa.array(~appending),
    }
    schema = SCHEMAS["operations"]
    told["records"] = _records(columns, schema.field("records").type)
    arrays = [
        (told[field.name] if field.name in told else _unsaid(field, size)).cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=_schema("operations"))


def _bent(columns: dict[str, Any], fault: str) -> None:
    """Plant one fault into a row group: a value that nobody sent, or a read that begins after appends were
    acknowledged beyond its end."""
    reads = np.flatnonzero(~columns["appending"] & (np.diff(columns["starts"]) > 0))
    r = int(reads[len(reads) // 2])
    if fault == "phantom_record":
        columns["record_value"][columns["starts"][r]] = -77
    else:
        columns["invoke_time"][r] += 100_000
        columns["completion_time"][r] += 100_000


def in_memory(operations: int, *, clients: int = 10) -> Tables:
    """The history without files. One group: not for many more than ten million."""
    columns, _, _ = _group(0, operations, clients, 0, np.empty(0, np.int64), np.random.default_rng(1))
    return evolve(tables_of([rows_of(HEADER)]), operations=_table(columns))


def write(path: Path, operations: int, *, clients: int = 10, fault: str = "none", seed: int = 1) -> int:
    """Write the history; the bytes of its operations."""
    TraceStore.create(path)
    random = np.random.default_rng(seed)
    base, tail = 0, np.empty(0, np.int64)
    groups = [*range(0, operations, GROUP), operations]
    for number, first in enumerate(range(0, len(groups) - 1, GROUPS_PER_PART)):
        part, empty = part_at(path, number), tables_of([rows_of(HEADER)] if not number else [])
        for table in ("traces", "events"):
            pq.write_table(empty.of(table).cast(_schema(table)), part.of(table))
        with pq.ParquetWriter(part.operations, _schema("operations"), compression="zstd") as writer:
            for start, stop in pairwise(groups[first : first + GROUPS_PER_PART + 1]):
                columns, base, tail = _group(start, stop - start, clients, base, tail, random)
                if fault != "none" and start <= operations // 2 < stop:
                    _bent(columns, fault)
                writer.write_table(_table(columns), row_group_size=GROUP)
    return sum(file.stat().st_size for file in (path / "operations").glob("*.parquet"))

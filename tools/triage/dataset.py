"""The ground truth as one folder of traces: distinct bad runs among healthy ones, of which each may stand in
it often.

Owns: how they are mixed, and the list of which trace shows which bugs. Must not know groups.

    OUT/traces/      the folder that is mined
    OUT/truth.json   bugs by trace id, for bad traces; every other trace is healthy

Healthy runs are repeated with trace ids of their own and moved in time; bad ones never are. Which trace is
bad follows from the seed. Trace ids do not tell.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.traces.parquet.writer import PartWriter
from fencepost.traces.rows import rows_of
from fencepost.traces.schema import SCHEMAS, TABLES
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import Tables, tables_of
from fencepost.traces.trace import Trace
from tools.triage.runs import HEALTHY

TRACES_PER_GROUP = 200
GROUPS_PER_PART = 20
TIMES = {"operations": ("invoke_time", "completion_time"), "events": ("time",)}
MOVED_NS = 7_919_000
"""By how much each repetition of a healthy run is later than the one before."""


def mix(out: Path, keys: list[str], *, runs: int, one_in: int, seed: int) -> dict[int, list[str]]:
    """Write OUT/traces of at most `runs` bad traces of each key, and `one_in` - 1 times as many healthy ones;
    the bugs of each bad trace by its id."""
    rng = Random(seed)
    bad = [(key, trace) for key in keys for trace in list(TraceStore.open(out / "runs" / key))[:runs]]
    healthy = list(TraceStore.open(out / "runs" / HEALTHY))
    total = len(bad) * one_in
    places = sorted(rng.sample(range(total), len(bad)))
    rng.shuffle(bad)
    at = dict(zip(places, bad, strict=True))
    made = {number: tables_of([rows_of(trace)]) for number, trace in enumerate(healthy)}
    store = TraceStore.create(out / "traces")
    groups = [
        range(start, min(start + TRACES_PER_GROUP, total)) for start in range(0, total, TRACES_PER_GROUP)
    ]
    for number, first in enumerate(range(0, len(groups), GROUPS_PER_PART)):
        part = part_at(store.path, number)
        with ExitStack() as stack:
            temporary = {table: part.of(table).with_suffix(".tmp") for table in TABLES}
            sinks: Any = {table: stack.enter_context(temporary[table].open("wb")) for table in TABLES}
            writer = stack.enter_context(PartWriter.open(sinks))
            for ids in groups[first : first + GROUPS_PER_PART]:
                writer.write(_joined(list(_of(ids, at, made))))
        for table in ("operations", "events", "traces"):
            temporary[table].replace(part.of(table))
    truth = {trace_id: key.split("+") for trace_id, (key, _) in at.items()}
    (out / "truth.json").write_bytes(msgspec.json.encode(truth))
    return truth


def _of(ids: range, at: dict[int, tuple[str, Trace]], made: dict[int, Tables]) -> Iterator[Tables]:
    for trace_id in ids:
        if trace_id in at:
            yield _as(tables_of([rows_of(at[trace_id][1])]), trace_id, 0)
        else:
            yield _as(made[trace_id % len(made)], trace_id, trace_id // len(made) * MOVED_NS)


def _as(tables: Tables, trace_id: int, later_ns: int) -> Tables:
    """The same run under another id, later."""
    found = {}
    for table in TABLES:
        rows = tables.of(table)
        ids = pa.array([trace_id] * len(rows), pa.int64())
        rows = rows.set_column(rows.schema.get_field_index("trace_id"), SCHEMAS[table].field("trace_id"), ids)
        for name in TIMES.get(table, ()):
            moved: Any = pc.add(rows.column(name), later_ns)
            rows = rows.set_column(rows.schema.get_field_index(name), SCHEMAS[table].field(name), moved)
        found[table] = rows
    return Tables(traces=found["traces"], operations=found["operations"], events=found["events"])


def _joined(many: list[Tables]) -> Tables:
    whole = {table: pa.concat_tables([one.of(table) for one in many]).combine_chunks() for table in TABLES}
    return Tables(traces=whole["traces"], operations=whole["operations"], events=whole["events"])

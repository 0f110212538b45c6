"""Files of traces as others write them: rows cut into row groups and parts anywhere, nothing promised."""

from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.schema import SCHEMAS, TABLES, WHOLE_KEY
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import tables_of


def write_loose(path: Path, traces, rng: Random, *, parts: int, rows: int) -> None:
    """The traces' rows dealt out to `parts` parts: shuffled between traces, each trace's own in order; row
    groups of about `rows`."""
    TraceStore.create(path)
    tables = tables_of(rows_of(trace) for trace in traces)
    for table in TABLES:
        whole = tables.of(table)
        ids = whole.column("trace_id").to_pylist()
        order, left = [], {trace_id: [] for trace_id in ids}
        for row, trace_id in enumerate(ids):
            left[trace_id].append(row)
        while left:
            trace_id = rng.choice(sorted(left))
            order += left[trace_id][: rng.randrange(1, 4)]
            left[trace_id] = [row for row in left[trace_id] if row not in order]
            if not left[trace_id]:
                del left[trace_id]
        moved = whole.take(pa.array(order, pa.int64()))
        cuts = [0, *sorted(rng.randrange(len(order) + 1) for _ in range(parts - 1)), len(order)]
        schema = SCHEMAS[table].with_metadata({**SCHEMAS[table].metadata, WHOLE_KEY: b"false"})
        for number, (start, stop) in enumerate(pairwise(cuts)):
            part = part_at(path, number).of(table)
            pq.write_table(moved.slice(start, stop - start).cast(schema), part, row_group_size=rows)

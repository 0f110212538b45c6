"""A folder of traces by the million, of which every verdict is known: recorded runs multiplied, some of them perturbed.

Seeds of the default swarm are run once and judged. Each copy of them has trace ids of its own and is moved in time by an amount of its own, so that no two
copies are alike. In one trace of `EVERY` an operation is bent so that the plain check convicts it; which anomaly it then names stands in the trace's profile
(`perturbed-ANOMALY`), and every other trace keeps its recorded verdict, which is Ok. Parts are written one after another and come into place
whole: called again, it goes on where it was.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

from fencepost.campaign.run import run
from fencepost.campaign.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.traces.digest import digest_of
from fencepost.traces.operations import Function
from fencepost.traces.parquet import PartWriter
from fencepost.traces.rows import rows_of
from fencepost.traces.schema import SCHEMAS, TABLES
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import Tables, tables_of
from fencepost.traces.trace import Trace

EVERY = 100
PERTURBED = "perturbed-"
COPIES_PER_GROUP, GROUPS_PER_PART = 8, 16
TIMES = {"operations": ("invoke_time", "completion_time"), "events": ("time",)}
PHANTOM = 10**15
"""A value that no client sends."""


@frozen(kw_only=True)
class Recorded:
    """Runs with the verdict Ok, and of each one perturbed form with its profile."""

    healthy: tuple[Trace, ...]
    perturbed: tuple[Trace, ...]


def _phantom(trace: Trace, rng: Random) -> Trace | None:
    """A record that nobody sent, in one read."""
    reads = [n for n, op in enumerate(trace.operations) if op.function is Function.POLL and op.records]
    if not reads:
        return None
    n = rng.choice(reads)
    record, *others = trace.operations[n].records
    bent = evolve(trace.operations[n], records=(evolve(record, value=PHANTOM), *others))
    return evolve(trace, operations=(*trace.operations[:n], bent, *trace.operations[n + 1 :]))


def _inversion(trace: Trace, rng: Random) -> Trace | None:
    """An append that began after all others were acknowledged though it stands below them."""
    appends = [
        n
        for n, op in enumerate(trace.operations)
        if op.function is Function.APPEND and op.offset == 0 and op.acks == -1
    ]
    if not appends:
        return None
    n, late = rng.choice(appends), max(op.completion_time or op.invoke_time for op in trace.operations) + 1
    bent = evolve(trace.operations[n], invoke_time=late, completion_time=late + 1)
    return evolve(trace, operations=(*trace.operations[:n], bent, *trace.operations[n + 1 :]))


def _perturbed(trace: Trace, number: int) -> Trace | None:
    """The trace bent, if the plain check of logs convicts it then. The model of a run is not asked about what its clients say."""
    bent = (_phantom, _inversion)[number % 2](trace, Random(number))
    if bent is None:
        return None
    verdict = judge(bent, ("log",))[0]
    return (
        evolve(bent, profile=f"{PERTURBED}{verdict.anomaly}")
        if verdict.decision is Decision.ILLEGAL
        else None
    )


def record(count: int) -> Recorded:
    """Run seeds from 0 on until `count` are healthy and can be bent."""
    healthy: list[Trace] = []
    perturbed: list[Trace] = []
    seed = 0
    while len(healthy) < count:
        trace, number = run(swarm(seed)), len(healthy)
        seed += 1
        if combine(judge(trace)).decision is not Decision.OK:
            continue
        bent = _perturbed(trace, number)
        if bent is not None:
            healthy.append(evolve(trace, trace_id=number, digest=digest_of(trace)))
            perturbed.append(evolve(bent, trace_id=number))
    return Recorded(healthy=tuple(healthy), perturbed=tuple(perturbed))


def _moved(tables: Tables, copy: int, count: int) -> Tables:
    """One copy: trace ids from copy * count on, times moved by an amount of its own."""
    found = {}
    for table in TABLES:
        rows = tables.of(table)
        for name in ("trace_id", *TIMES.get(table, ())):
            by = copy * count if name == "trace_id" else copy * 7_919_000
            index = rows.schema.get_field_index(name)
            moved: Any = pa.compute.add(rows.column(name), pa.scalar(by, pa.int64()))  # type: ignore[attr-defined]
            rows = rows.set_column(index, SCHEMAS[table].field(name), moved)
        found[table] = rows
    return Tables(**found)


def _joined(many: list[Tables]) -> Tables:
    """One after another."""
    return Tables(
        **{table: pa.concat_tables([one.of(table) for one in many]).combine_chunks() for table in TABLES}
    )


def _copies(recorded: Recorded, first: int, stop: int) -> Iterator[Tables]:
    """The copies [first, stop), each with its share of perturbed traces."""
    count = len(recorded.healthy)
    plain, bent = (
        [tables_of([rows_of(trace)]) for trace in some] for some in (recorded.healthy, recorded.perturbed)
    )
    whole = _joined(plain)
    for copy in range(first, stop):
        strange = {n for n in range(count) if _is_bent(copy, n, count)}
        some = (
            _joined([bent[n] if n in strange else one for n, one in enumerate(plain)]) if strange else whole
        )
        yield _moved(some, copy, count)


def _is_bent(copy: int, n: int, count: int) -> bool:
    """One trace of EVERY, each time another of those recorded."""
    return (copy * count + n) % EVERY == copy % EVERY


def write(path: Path, traces: int, recorded: Recorded) -> dict[str, int]:
    """Write what is missing of the folder; rows by table, traces by anomaly known to be in it, and parts."""
    store, count = TraceStore.create(path), len(recorded.healthy)
    copies, per_part = -(-traces // count), COPIES_PER_GROUP * GROUPS_PER_PART
    for number, first in enumerate(range(0, copies, per_part)):
        part = part_at(store.path, number)
        if part.traces.exists():
            continue
        with ExitStack() as stack:
            temporary = {table: part.of(table).with_suffix(".tmp") for table in TABLES}
            sinks: Any = {table: stack.enter_context(temporary[table].open("wb")) for table in TABLES}
            writer = stack.enter_context(PartWriter.open(sinks))
            stop = min(first + per_part, copies)
            ready = _copies(recorded, first, stop)
            while many := list(islice(ready, COPIES_PER_GROUP)):
                writer.write(_joined(many))
        for table in ("operations", "events", "traces"):
            temporary[table].replace(part.of(table))  # type: ignore[index]
    base = tables_of(rows_of(trace) for trace in recorded.healthy)
    known = {table: base.of(table).num_rows * copies for table in TABLES}
    for copy in range(copies):
        for n in filter(lambda n: _is_bent(copy, n, count), range(count)):
            profile = recorded.perturbed[n].profile
            known[profile] = known.get(profile, 0) + 1
    return known | {"parts": -(-copies // per_part)}

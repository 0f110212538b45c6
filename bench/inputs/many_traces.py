"""A folder of traces by the million, of which every verdict is known: recorded runs multiplied, some of them
perturbed.

Seeds of a profile of the swarm that plan many operations are run once and judged. Each copy of them has trace
ids of its own and is moved in time by an amount of its own, so that no two copies are alike. In one trace of
`EVERY` an operation is bent so that the plain check convicts it; which anomaly it then names stands in the
trace's profile (`perturbed-ANOMALY`), and every other trace keeps its recorded verdict, which is Ok. Parts
are written one after another and come into place whole: called again, it goes on where it was.
"""

from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve, frozen

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.simulated.run import run
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Function
from fencepost.traces.parquet.writer import PartWriter
from fencepost.traces.schema import SCHEMAS, TABLES, Table
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import Tables, tables_of
from fencepost.traces.trace import Trace

EVERY = 100
LEAST_OPERATIONS = 190
"""Planned operations of a run that is recorded: the swarm plans 30 to 240, and so recorded ones have about
200 on average."""
PERTURBED = "perturbed-"
COPIES_PER_GROUP, GROUPS_PER_PART = 8, 13
"""Of 40 recorded runs: row groups and parts as large as campaigns seal them (traces/sealing.py)."""
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
    """The trace bent, if the plain check of logs convicts it then. The model of a run is not asked about what
    its clients say."""
    bent = (_phantom, _inversion)[number % 2](trace, Random(number))
    if bent is None:
        return None
    verdict = judge(bent, ("log",))[0]
    return (
        evolve(bent, profile=f"{PERTURBED}{verdict.anomaly}")
        if verdict.decision is Decision.ILLEGAL
        else None
    )


def record(count: int, profile: str = "default") -> Recorded:
    """Run seeds of a profile from 0 on until `count` are healthy and can be bent."""
    healthy: list[Trace] = []
    perturbed: list[Trace] = []
    seed = 0
    while len(healthy) < count:
        plan, number = swarm(seed, profile), len(healthy)
        seed += 1
        if len(plan.operations) < LEAST_OPERATIONS:
            continue
        trace = run(plan)
        if combine(judge(trace)).decision is not Decision.OK:
            continue
        bent = _perturbed(trace, number)
        if bent is not None:
            # No digest: copies are moved in time.
            healthy.append(evolve(trace, trace_id=number, digest=""))
            perturbed.append(evolve(bent, trace_id=number, digest=""))
    return Recorded(healthy=tuple(healthy), perturbed=tuple(perturbed))


def _moved(rows: pa.Table, table: Table, copies: npt.NDArray[np.int64], count: int) -> pa.Table:
    """Rows of copies (of each row: which one): trace ids from copy * count on, times moved by an amount of
    the copy's own."""
    for name in ("trace_id", *TIMES.get(table, ())):
        by = pa.array(copies * (count if name == "trace_id" else 7_919_000))
        index = rows.schema.get_field_index(name)
        moved: Any = pa.compute.add(rows.column(name), by)  # type: ignore[attr-defined]
        rows = rows.set_column(index, SCHEMAS[table].field(name), moved)
    return rows


def _joined(many: list[Tables], table: Table) -> pa.Table:
    """One after another."""
    return pa.concat_tables([one.of(table) for one in many]).combine_chunks()


@frozen(kw_only=True)
class _Copier:
    """plain, bent: each recorded run, and its perturbed form, as tables; whole: all plain ones; starts: where
    each begins in it, by table."""

    plain: list[Tables]
    bent: list[Tables]
    whole: dict[Table, pa.Table]
    starts: dict[Table, list[int]]

    @classmethod
    def of(cls, recorded: Recorded) -> Self:
        """Of these runs."""
        plain, bent = (
            [tables_of([rows_of(trace)]) for trace in some] for some in (recorded.healthy, recorded.perturbed)
        )
        whole = {table: _joined(plain, table) for table in TABLES}
        starts = {table: [0, *accumulate(one.of(table).num_rows for one in plain)] for table in TABLES}
        return cls(plain=plain, bent=bent, whole=whole, starts=starts)

    def copies(self, first: int, stop: int) -> Tables:
        """The copies [first, stop), each with its share of perturbed traces, as one row group."""
        return Tables(**{table: self._rows(table, first, stop) for table in TABLES})

    def _rows(self, table: Table, first: int, stop: int) -> pa.Table:
        count, starts, pieces, of = len(self.plain), self.starts[table], [], []
        for copy in range(first, stop):
            at = 0
            for n in [*(n for n in range(count) if _is_bent(copy, n, count)), count]:
                pieces.append(self.whole[table].slice(starts[at], starts[n] - starts[at]))
                if n < count:
                    pieces.append(self.bent[n].of(table))
                at = n + 1
                of += [copy] * (len(pieces) - len(of))
        joined = pa.concat_tables(pieces).combine_chunks()
        return _moved(joined, table, np.repeat(of, [piece.num_rows for piece in pieces]), count)


def _is_bent(copy: int, n: int, count: int) -> bool:
    """One trace of EVERY, each time another of those recorded."""
    return (copy * count + n) % EVERY == copy % EVERY


def write(path: Path, traces: int, recorded: Recorded) -> dict[str, int]:
    """Write what is missing of the folder; rows by table, traces by anomaly known to be in it, and parts."""
    store, count, copier = TraceStore.create(path), len(recorded.healthy), _Copier.of(recorded)
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
            for begin in range(first, stop, COPIES_PER_GROUP):
                writer.write(copier.copies(begin, min(begin + COPIES_PER_GROUP, stop)))
        for table in ("operations", "events", "traces"):
            temporary[table].replace(part.of(table))  # type: ignore[index]
    base = tables_of(rows_of(trace) for trace in recorded.healthy)
    known = {table: base.of(table).num_rows * copies for table in TABLES}
    for copy in range(copies):
        for n in filter(lambda n: _is_bent(copy, n, count), range(count)):
            profile = recorded.perturbed[n].profile
            known[profile] = known.get(profile, 0) + 1
    return known | {"parts": -(-copies // per_part)}

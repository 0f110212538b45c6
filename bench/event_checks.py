"""The event checks over columns against the plain code and against reading the same columns, in processor
time of one process.

    python bench/event_checks.py [--traces 4000] [--recorded 40] [--plain 80] [--repeat 3] [--spark]

The input is real: `--recorded` healthy seeds are run once and their traces repeated under new trace ids
(bench/many_traces.py). Reading, columns and screens see all row groups; the plain code, which takes many
times as long, the first `--plain` traces. The best of `--repeat` counts. Ratios within one run are what
matters; `--spark` adds Spark's own `noop` scan of the same columns (wall time on one core).
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen
from many_traces import record, write
from mine import scan

from fencepost.checkers import conformance, invariants
from fencepost.checkers.events.table import (
    EventTables,
    judge_conformance,
    judge_invariants,
    suspicious_of_conformance,
    suspicious_of_invariants,
    unmapped_traces,
)
from fencepost.checkers.judges import SHOWN_COLUMNS
from fencepost.mining.judge import CODED
from fencepost.traces.parquet import groups_of, read_group
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.store import TraceStore
from fencepost.traces.tables import Tables, rows_of_tables, traces_of_tables
from fencepost.traces.trace import Trace


@frozen(kw_only=True)
class Line:
    """One row of the report: what was done, seconds, over how many traces and events."""

    what: str
    seconds: float
    traces: int
    events: int


def best(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Processor seconds of the fastest of `repeat` runs, and what the last one answered."""
    seconds, answer = [], None
    for _ in range(repeat):
        start = time.process_time()
        answer = work()
        seconds.append(time.process_time() - start)
    return min(seconds), answer


def read(path: Path) -> list[Tables]:
    """All row groups, the columns that the event checks read."""
    return [
        Tables(
            traces=read_group(part.traces, "traces", group.index),
            operations=read_group(part.operations, "operations", group.index, columns=list(SHOWN_COLUMNS)),
            events=read_group(part.events, "events", group.index, dictionary=CODED["events"]),
        )
        for part in TraceStore(path).parts()
        for group in groups_of(part)
    ]


def headers_of(tables: Tables) -> list[Trace]:
    """The traces without operations and events, as `mine` has them anyway."""
    none = {name: SCHEMAS[name].empty_table() for name in ("operations", "events")}
    return list(traces_of_tables(Tables(traces=tables.traces, **none)))


def first(tables: Tables, traces: int) -> Tables:
    """The first traces of a row group."""
    last = tables.traces.column("trace_id").to_numpy()[:traces][-1]
    events = tables.events.column("trace_id").to_numpy()
    return Tables(
        traces=tables.traces.slice(0, traces),
        operations=tables.operations.slice(0, 0),
        events=tables.events.slice(0, int(np.searchsorted(events, last, side="right"))),
    )


def plain_lines(tables: Tables, headers: list[Trace], repeat: int) -> list[Line]:
    """Decoding and judging one trace at a time. (Without operations: what HW-MONO costs is left out in favour
    of the plain code.)"""
    traces, events = tables.traces.num_rows, tables.events.num_rows
    tables = evolve(tables, operations=SCHEMAS["operations"].empty_table())

    def decoded() -> list[Trace]:
        assert sum(1 for _ in rows_of_tables(tables)) == traces
        return list(traces_of_tables(tables))

    seconds, made = best(decoded, 1)
    lines = [Line(what="plain: decoding", seconds=seconds, traces=traces, events=events)]
    for name, judge in (("invariants", invariants.judge), ("conformance", conformance.judge)):
        seconds, _ = best(lambda judge=judge: [judge(trace) for trace in made], repeat)  # type: ignore[misc]
        lines.append(Line(what=f"plain: {name}", seconds=seconds, traces=traces, events=events))
    assert len(headers) >= traces
    return lines


def column_lines(groups: list[Tables], repeat: int) -> tuple[list[Line], str]:
    """Columns, screens, and whole checks with what they leave to the plain code."""
    headers = [headers_of(tables) for tables in groups]
    traces, events = sum(map(len, headers)), sum(tables.events.num_rows for tables in groups)

    def made() -> list[EventTables]:
        many = [
            EventTables(tables=tables, headers=some) for tables, some in zip(groups, headers, strict=True)
        ]
        assert all(one.columns for one in many)
        return many

    def anew() -> list[EventTables]:
        """With their columns, and nothing decoded yet."""
        for one in many:
            one.decoded.clear()
            one.operations.clear()
        return many

    many = made()
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("columns: of events", made),
        ("columns: screen of invariants", lambda: [suspicious_of_invariants(one) for one in many]),
        ("columns: screen of conformance", lambda: [suspicious_of_conformance(one) for one in many]),
        ("columns: invariants", lambda: [judge_invariants(one) for one in anew()]),
        ("columns: conformance", lambda: [judge_conformance(one) for one in anew()]),
    ]
    lines, suspicious = [], []
    for what, step in steps:
        seconds, answer = best(step, repeat + 1)
        lines.append(Line(what=what, seconds=seconds, traces=traces, events=events))
        if "screen" in what:
            suspicious.append(sum(int(marked.sum()) for marked in answer))
    unmapped = sum(int(unmapped_traces(one)[1].sum()) for one in many)
    told = (
        f"suspicious: invariants {suspicious[0]}, conformance {suspicious[1]} of {traces} traces "
        f"({unmapped} without replica events)"
    )
    return lines, told


def spark_seconds(path: Path, repeat: int) -> float:
    """Spark's scan of the same columns, wall time on one core."""
    from fencepost.mining.spark.session import session

    columns = {"operations": SHOWN_COLUMNS, "events": tuple(SCHEMAS["events"].names)}
    with session("local[1]") as spark:
        times = []
        for _ in range(repeat + 1):
            start = time.perf_counter()
            scan(spark, path, columns)
            times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=int, default=4_000)
    parser.add_argument("--recorded", type=int, default=40)
    parser.add_argument("--plain", type=int, default=80, help="traces that the plain code judges")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--spark", action="store_true", help="Spark's noop scan too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        path = Path(folder) / "traces"
        recorded = record(options.recorded)
        rows = write(path, options.traces, evolve(recorded, perturbed=recorded.healthy))
        rows["traces"] = -(-options.traces // options.recorded) * options.recorded
        print(
            f"{rows['traces']} traces, {rows['operations']} operations, {rows['events']} events, "
            f"{os.cpu_count()} cores"
        )
        seconds, groups = best(lambda: read(path), options.repeat)
        scanned = Line(what="read (PyArrow)", seconds=seconds, traces=rows["traces"], events=rows["events"])
        lines = [scanned]
        if options.spark:
            lines.append(
                evolve(scanned, what="read (Spark noop)", seconds=spark_seconds(path, options.repeat))
            )
        some = first(groups[0], options.plain)
        lines += plain_lines(some, headers_of(some), options.repeat)
        by_column, told = column_lines(groups, options.repeat)
    per_read = scanned.seconds / scanned.events
    print(f"{'':<32} {'us/trace':>9} {'traces/s':>9} {'M events/s':>10} {'x read':>7}")
    for line in (*lines, *by_column):
        print(
            f"{line.what:<32} {line.seconds / line.traces * 1e6:>9.1f} {line.traces / line.seconds:>9.0f}"
            f" {line.events / line.seconds / 1e6:>10.2f} {line.seconds / line.events / per_read:>7.2f}"
        )
    print(told)


if __name__ == "__main__":
    main()

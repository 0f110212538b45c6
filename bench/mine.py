"""`mine` against Spark's own `noop` scan of the same columns, in one session, as a ratio.

    python bench/mine.py [--traces 20000] [--recorded 40] [--master local[*]] [--repeat 3] [--checks log]

The input is real: `--recorded` healthy seeds are run once and their traces repeated under new trace ids until there are `--traces`. Both
sides are run once to warm up (JVM, Python workers, compiled kernels), then `--repeat` times; the best of each counts. A row is a row
of the tables that the checks read: operations for `log`, operations and events for the default checks.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from fencepost.campaign.run import run
from fencepost.campaign.swarm import swarm
from fencepost.checkers.judges import CHECKS, DEFAULT_CHECKS
from fencepost.mining.mine import mine
from fencepost.mining.session import session
from fencepost.traces.parquet import PartWriter
from fencepost.traces.rows import rows_of
from fencepost.traces.schema import SCHEMAS, TABLES
from fencepost.traces.sealing import Sizes
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import Tables, tables_of


def shifted(tables: Tables, by: int) -> Tables:
    """The same traces under trace ids larger by `by`."""
    moved = {}
    for table in TABLES:
        rows = tables.of(table)
        ids = pa.chunked_array([pa.array(rows.column("trace_id").to_numpy() + by)])
        moved[table] = rows.set_column(
            rows.schema.get_field_index("trace_id"), SCHEMAS[table].field("trace_id"), ids
        )
    return Tables(traces=moved["traces"], operations=moved["operations"], events=moved["events"])


def joined(many: list[Tables]) -> Tables:
    """Tables one after another."""
    found = {
        table: pa.concat_tables([tables.of(table) for tables in many]).combine_chunks() for table in TABLES
    }
    return Tables(traces=found["traces"], operations=found["operations"], events=found["events"])


def generate(path: Path, traces: int, recorded: int) -> dict[str, int]:
    """Write the input; answers rows by table."""
    store, sizes = TraceStore.create(path), Sizes()
    base = tables_of([rows_of(run(swarm(seed))) for seed in range(recorded)])
    per_group = max(1, sizes.group_events // max(1, base.events.num_rows))
    repeats, number, done = -(-traces // recorded), 0, 0
    while done < repeats:
        part = part_at(store.path, number)
        with ExitStack() as stack:
            writer = PartWriter.open(
                {table: stack.enter_context(part.of(table).open("wb")) for table in TABLES}
            )
            while done < repeats and writer.bytes_written() < sizes.part_bytes:
                some = range(done, min(done + per_group, repeats))
                writer.write(joined([shifted(base, repeat * recorded) for repeat in some]))
                done = some.stop
            writer.close()
        number += 1
    return {table: base.of(table).num_rows * repeats for table in TABLES} | {"parts": number}


def scan(spark: Any, path: Path, columns: dict[str, tuple[str, ...]]) -> None:
    """Spark reads the columns and throws the rows away."""
    for table, names in columns.items():
        spark.read.parquet(str(path / table)).select(*names).write.format("noop").mode("overwrite").save()


def best(work: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest of `repeat` runs after one that does not count."""
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def columns_read(checks: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The columns that judging by `checks` reads, by table."""
    columns: dict[str, tuple[str, ...]] = {"traces": tuple(SCHEMAS["traces"].names)}
    columns["operations"] = tuple(
        sorted({name for check in checks for name in CHECKS[check].operation_columns})
    )
    if any(CHECKS[check].reads_events for check in checks):
        columns["events"] = tuple(SCHEMAS["events"].names)
    return columns


def compare(spark: Any, path: Path, rows: dict[str, int], checks: tuple[str, ...], repeat: int) -> None:
    """One line: the scan, mining, and their ratio."""
    columns = {table: names for table, names in columns_read(checks).items() if names}
    columns.setdefault("operations", ("trace_id", "op_id"))
    counted = sum(rows[table] for table in columns if table != "traces")
    out = path.parent / "out"

    def judged() -> None:
        shutil.rmtree(out, ignore_errors=True)
        summary = mine([path], out, spark=spark, checks=checks)
        assert sum(summary.traces.values()) == rows["traces"]

    scanned, mined = best(lambda: scan(spark, path, columns), repeat), best(judged, repeat)
    print(
        f"{'+'.join(checks):<28} {counted / 1e6:>7.2f} {counted / scanned / 1e6:>11.2f} {counted / mined / 1e6:>11.2f}"
        f" {rows['traces'] / mined:>11.0f} {mined / scanned:>7.2f}"
    )


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--recorded", type=int, default=40)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--checks", action="append", help="checks of one line, by commas (may be repeated)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        path = Path(folder) / "traces"
        rows = generate(path, options.traces, options.recorded)
        size = sum(file.stat().st_size for file in path.rglob("*.parquet"))
        print(
            f"{rows['traces']} traces ({options.recorded} recorded seeds, repeated), {rows['operations']} operations,"
            f" {rows['events']} events, {rows['parts']} parts, {size / 1e6:.0f} MB, master {options.master}"
        )
        print(
            f"{'checks':<28} {'M rows':>7} {'scan Mrow/s':>11} {'mine Mrow/s':>11} {'traces/s':>11} {'ratio':>7}"
        )
        with session(options.master) as spark:
            for checks in options.checks or ["log", ",".join(DEFAULT_CHECKS)]:
                compare(spark, path, rows, tuple(checks.split(",")), options.repeat)


if __name__ == "__main__":
    main()

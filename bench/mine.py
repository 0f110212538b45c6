"""`mine` against Spark's own `noop` scan of the same columns, in one session, as a ratio: many small traces,
or giant histories.

    python bench/mine.py [--traces 10000] [--recorded 40] [--profile transactions] [--folder KEPT]
    [--master local[*]] [--repeat 3] [--checks log,transactions,exactly_once] [--no-triage]
    python bench/mine.py --giant 10000000 [--giant 1000000] [--fault stale_read]

Small ones are recorded runs, multiplied, of which every verdict is known (many_traces.py); `--folder` keeps
them, and goes on where it was. Giant ones are made with NumPy (giant_histories.py). Both sides are run once
to warm up (JVM, Python workers, compiled kernels), then `--repeat` times; the fastest counts (`--repeat 0`:
once, and that counts). Processor seconds are of driver, JVM and workers: on a machine that others use too
they say more than seconds. Triage reads events too, which the scan for `log` does not; `--no-triage` compares
the same columns. Memory is resident; what processes share counts in each. A row is a row of the
tables that the checks read: operations for `log`, operations and events for the default checks. What is known
to be in the input must be found, or this fails.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import giant_histories
import many_traces
from attrs import evolve
from process_tree import Cost, cost_of

from fencepost.checkers.judges import CHECKS, DEFAULT_CHECKS
from fencepost.mining.mine import mine
from fencepost.mining.results.summary import Summary
from fencepost.mining.spark.session import session
from fencepost.traces.schema import SCHEMAS


def scan(spark: Any, path: Path, columns: dict[str, tuple[str, ...]]) -> None:
    """Spark reads the columns and throws the rows away."""
    for table, names in columns.items():
        spark.read.parquet(str(path / table)).select(*names).write.format("noop").mode("overwrite").save()


def best(work: Callable[[], object], repeat: int) -> Cost:
    """The fastest of `repeat` runs after one that warms up; without any, that one. Memory is the most that
    any of them had."""
    costs = [cost_of(work) for _ in range(repeat + 1)]
    fastest = min(costs[1:] or costs, key=lambda cost: cost.seconds)
    return evolve(fastest, workers=max(cost.workers for cost in costs), jvm=max(cost.jvm for cost in costs))


def columns_read(checks: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The columns that judging by `checks` reads, by table."""
    columns: dict[str, tuple[str, ...]] = {"traces": tuple(SCHEMAS["traces"].names)}
    columns["operations"] = tuple(
        sorted({name for check in checks for name in CHECKS[check].operation_columns})
    )
    if any(CHECKS[check].reads_events for check in checks):
        columns["events"] = tuple(SCHEMAS["events"].names)
    return columns


def compare(
    spark: Any,
    path: Path,
    rows: int,
    checks: tuple[str, ...],
    repeat: int,
    sound: Callable[[Summary], bool],
    giant: int,
    triage: bool = True,
) -> None:
    """One line: the scan, mining, their ratio, and memory. rows: that the checks read; sound: of a summary,
    does it say what is known?"""
    columns = {table: names for table, names in columns_read(checks).items() if names}
    columns.setdefault("operations", ("trace_id", "op_id"))
    out = path.parent / "out"

    def judged() -> None:
        shutil.rmtree(out, ignore_errors=True)
        summary = mine([path], out, spark=spark, checks=checks, giant=giant, triage=triage)
        if not sound(summary):
            raise SystemExit(f"what is known of the input was not found: {summary.to_json()}")

    scanned, mined = best(lambda: scan(spark, path, columns), repeat), best(judged, repeat)
    print(
        f"{'+'.join(checks):<28} {rows / 1e6:>8.2f} {scanned.seconds:>7.2f} {mined.seconds:>7.2f} "
        f"{mined.seconds / scanned.seconds:>6.2f}"
        f" {scanned.processor:>7.1f} {mined.processor:>7.1f} {mined.processor / scanned.processor:>6.2f}"
        f" {mined.workers / 2**20:>12.0f} {mined.jvm / 2**20:>8.0f}",
        flush=True,
    )


HEADING = f"""{"":<37} {"seconds":^22} {"processor seconds":^22} {"memory, MiB":^21}
{"checks":<28} {"M rows":>8} {"scan":>7} {"mine":>7} {"ratio":>6} {"scan":>7} {"mine":>7} {"ratio":>6} \
{"workers":>12} {"JVM":>8}"""


def small(options: argparse.Namespace, folder: Path) -> None:
    """Many small traces."""
    path = folder / "traces"
    known = many_traces.write(path, options.traces, many_traces.record(options.recorded, options.profile))
    bent = {
        name[len(many_traces.PERTURBED) :]: count
        for name, count in known.items()
        if name.startswith(many_traces.PERTURBED)
    }
    size = sum(file.stat().st_size for file in path.rglob("*.parquet"))
    of_each = [f"{known[table] / known['traces']:.0f} {table}" for table in ("operations", "events")]
    print(
        f"{known['traces']} traces ({options.recorded} recorded seeds of {options.profile}, multiplied; "
        f"{sum(bent.values())} perturbed), of {' and '.join(of_each)} on average,"
        f" {known['parts']} parts, {size / 1e6:.0f} MB, master {options.master}\n{HEADING}"
    )

    def sound(summary: Summary) -> bool:
        by_profile = summary.statistics["profile"]
        found = {name: by_profile.get(f"{many_traces.PERTURBED}{name}", {}).get(name, 0) for name in bent}
        whole = sum(summary.traces.values()) == known["traces"]
        return whole and (
            "log" not in summary.checks
            or (found == bent and sum(summary.illegal.values()) == sum(bent.values()))
        )

    with session(options.master) as spark:
        for checks in options.checks or ["log", ",".join(DEFAULT_CHECKS)]:
            names = tuple(checks.split(","))
            rows = sum(known[table] for table in columns_read(names) if table != "traces")
            compare(spark, path, rows, names, options.repeat, sound, 10**9, options.triage)


def giants(options: argparse.Namespace, folder: Path) -> None:
    """One giant history after another."""
    print(f"giant histories, fault {options.fault}, master {options.master}\n{HEADING}")

    def sound(summary: Summary) -> bool:
        wanted = [] if options.fault == "none" else [options.fault]
        return summary.giants == 1 and (
            list(summary.anomalies) == wanted or (bool(wanted) and set(wanted) <= set(summary.anomalies))
        )

    with session(options.master) as spark:
        for operations in options.giant:
            path = folder / f"giant-{operations}-{options.fault}"
            if not (path / "traces").exists():
                giant_histories.write(path, operations, fault=options.fault)
            compare(spark, path, operations, ("log",), options.repeat, sound, operations // 2)
            if options.folder is None:
                shutil.rmtree(path)


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--recorded", type=int, default=40)
    parser.add_argument("--profile", default="default", help="of the swarm, for the recorded seeds")
    parser.add_argument("--folder", type=Path, help="where the input is kept for the next time")
    parser.add_argument(
        "--giant", type=int, action="append", help="operations of a giant history (may be repeated)"
    )
    parser.add_argument("--fault", choices=giant_histories.FAULTS, default="none", help="of giant histories")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--checks", action="append", help="checks of one line, by commas (may be repeated)")
    parser.add_argument("--no-triage", dest="triage", action="store_false", help="small ones are not grouped")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        (giants if options.giant else small)(options, folder)


if __name__ == "__main__":
    main()

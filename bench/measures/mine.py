"""`mine` against Spark's own `noop` scan of the same columns, in one session; and triage, against mining
without it.

Small traces are recorded runs, multiplied, of which every verdict is known (inputs/many_traces.py). Giant
histories are made with NumPy (inputs/giant_histories.py). --folder keeps both, and goes on where it was.
What is known to be in the input must be found, or this fails. Figures are of driver, JVM and workers
together; on a machine that others use too, processor time says more than wall time. Memory is resident;
what processes share counts in each. A row is a row of the tables that the checks read. The judges, the JVM
and the Python workers are warm: from a small input, for small traces.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.costs import whole
from bench.harness import Case, wanted
from bench.inputs import giant_histories, many_traces
from fencepost.checkers.judges import CHECKS, DEFAULT_CHECKS
from fencepost.mining.mine import mine
from fencepost.mining.results.summary import Summary
from fencepost.mining.spark.session import session
from fencepost.traces.schema import SCHEMAS

WARM = 400
"""Traces of the input that warms."""
Sound = Callable[[Summary], bool]
"""Does a summary say what is known of the input?"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--traces", type=int, default=10_000, help="small ones [default: 10000; quick: 100]")
    parser.add_argument("--recorded", type=int, default=40, help="runs that they are copies of [quick: 2]")
    parser.add_argument("--profile", default="default", help="of the swarm, for the recorded runs")
    parser.add_argument(
        "--giant", type=int, action="append", help="operations of a giant history, again and again"
    )
    parser.add_argument("--fault", choices=giant_histories.FAULTS, default="none", help="in giant histories")
    parser.add_argument("--checks", action="append", help="checks of one case, with commas, again and again")
    parser.add_argument("--folder", type=Path, help="where the input is kept for the next time")
    parser.add_argument("--master", default="local[*]")


def columns_read(checks: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The columns that judging by `checks` reads, by table."""
    names = sorted({name for check in checks for name in CHECKS[check].operation_columns})
    columns = {"traces": tuple(SCHEMAS["traces"].names), "operations": tuple(names) or ("trace_id", "op_id")}
    if any(CHECKS[check].reads_events for check in checks):
        columns["events"] = tuple(SCHEMAS["events"].names)
    return columns


def scan(spark: Any, path: Path, checks: tuple[str, ...]) -> None:
    """Spark reads the columns and throws the rows away."""
    for table, names in columns_read(checks).items():
        spark.read.parquet(str(path / table)).select(*names).write.format("noop").mode("overwrite").save()


def mined(spark: Any, path: Path, checks: tuple[str, ...], sound: Sound, **options: Any) -> None:
    """Mine, and find what is known."""
    shutil.rmtree(path.parent / "out", ignore_errors=True)
    summary = mine([path], path.parent / "out", spark=spark, checks=checks, **options)
    if not sound(summary):
        raise SystemExit(f"what is known of the input was not found: {summary.to_json()}")


def small(asked: argparse.Namespace, spark: Any, folder: Path) -> Iterator[Case]:
    """Many small traces: each set of checks against the scan, and triage against mining without."""
    path, traces = folder / "traces", 100 if asked.quick else asked.traces
    recorded = many_traces.record(2 if asked.quick else asked.recorded, asked.profile)
    known = many_traces.write(path, traces, recorded)
    warming = folder / "warm" / "traces"
    if not asked.quick:
        many_traces.write(warming, WARM, recorded)
    start = len(many_traces.PERTURBED)
    bent = {name[start:]: n for name, n in known.items() if name.startswith(many_traces.PERTURBED)}

    def sound(summary: Summary) -> bool:
        profiles = summary.statistics["profile"]
        found = {name: profiles.get(f"{many_traces.PERTURBED}{name}", {}).get(name, 0) for name in bent}
        exact = found == bent and sum(summary.illegal.values()) == sum(bent.values())
        return sum(summary.traces.values()) == known["traces"] and ("log" not in summary.checks or exact)

    lines = asked.checks or ["log", ",".join(DEFAULT_CHECKS)][asked.quick :]
    for checks in [tuple(line.split(",")) for line in lines]:
        name = f"{known['traces']:,} traces, {'+'.join(checks)}"
        rows = sum(known[table] for table in columns_read(checks) if table != "traces")
        sides = {
            "mine": partial(mined, spark, path, checks, sound, giant=10**9),
            "mine without triage": partial(mined, spark, path, checks, sound, giant=10**9, triage=False),
            "Spark's scan": partial(scan, spark, path, checks),
        }
        if not asked.quick:
            mined(spark, warming, checks, bool, giant=10**9)
            scan(spark, warming, checks)
        yield Case(name=name, sides=sides, per=rows, unit="row", clock=whole, warm=False)


def giants(asked: argparse.Namespace, spark: Any, folder: Path, operations: int) -> Iterator[Case]:
    """One giant history, by the log check."""
    path = folder / f"giant-{operations}-{asked.fault}" / "traces"
    if not (path / "traces").exists():
        giant_histories.write(path, operations, fault=asked.fault)
    expected = {asked.fault} - {"none"}

    def sound(summary: Summary) -> bool:
        found = set(summary.anomalies)
        return summary.giants == 1 and bool(found) == bool(expected) and found >= expected

    sides = {
        "mine": partial(mined, spark, path, ("log",), sound, giant=operations // 2),
        "Spark's scan": partial(scan, spark, path, ("log",)),
    }
    name = f"giant of {operations:,}, fault {asked.fault}"
    warm = not asked.quick
    yield Case(name=name, sides=sides, per=operations, unit="operation", clock=whole, warm=warm)
    if asked.folder is None:
        shutil.rmtree(path)


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """Small traces, then giants; with --giant only these."""
    sizes = asked.giant or ([20_000] if asked.quick else [1_000_000])
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as made, session(asked.master) as spark:
        folder = asked.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        if not asked.giant and not (asked.only and wanted(asked, "giant")):
            yield from small(asked, spark, folder)
        for operations in sizes:
            yield from giants(asked, spark, folder, operations)

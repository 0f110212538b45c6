"""Which settings of Spark matter to `mine`: each against our own, as ratios of seconds and of processor
seconds.

    python bench/mine_settings.py --folder KEPT [--traces 20000] [--rounds 3] [--checks log] [--only NAME ...]

Every measurement is a process of its own, from the start of the JVM to the end of the session, as a person's
is. A round measures ours, then each setting, then goes on to the next round, so that a machine that gets
busier does not favour one; the median of the rounds' ratios counts, and ours against itself (`ours again`)
says what is noise. Input is what bench/mine.py makes; `--folder` keeps it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import many_traces
from attrs import frozen
from process_tree import cost_of

from fencepost.checkers.judges import DEFAULT_CHECKS


@frozen(kw_only=True)
class Variant:
    """What differs from ours: settings of Spark, variables of the environment, constants of fencepost.mining
    (module.NAME)."""

    settings: dict[str, str] = {}  # noqa: RUF008 (frozen, never written)
    environment: dict[str, str] = {}  # noqa: RUF008
    constants: dict[str, int] = {}  # noqa: RUF008


def _set(name: str, value: str) -> Variant:
    return Variant(settings={name: value})


def _java(options: str) -> Variant:
    return _set("spark.driver.defaultJavaOptions", options)


VARIANTS = {
    "ours again": Variant(),
    "JVM: both compilers": _java("-XX:TieredStopAtLevel=4"),
    "JVM: parallel collector": _java("-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"),
    "JVM: serial collector": _java("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    "driver memory 512m": _set("spark.driver.memory", "512m"),
    "driver memory 4g": _set("spark.driver.memory", "4g"),
    "off-heap memory 1g": Variant(
        settings={"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"}
    ),
    "Python workers not reused": _set("spark.python.worker.reuse", "false"),
    "UI on": _set("spark.ui.enabled", "true"),
    "speculation on": _set("spark.speculation", "true"),
    "broadcasts not compressed": _set("spark.broadcast.compress", "false"),
    "Arrow batches of 1,000": _set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000"),
    "partitions of 32 MiB": _set("spark.sql.files.maxPartitionBytes", str(32 << 20)),
    "8 shuffle partitions": _set("spark.sql.shuffle.partitions", "8"),
    "adaptive execution off": _set("spark.sql.adaptive.enabled", "false"),
    "vectorized reader off": _set("spark.sql.parquet.enableVectorizedReader", "false"),
    "Parquet codec zstd": _set("spark.sql.parquet.compression.codec", "zstd"),
    "no wait for locality": _set("spark.locality.wait", "0"),
    "one thread per library": Variant(
        environment=dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    ),
    "glibc arenas: 2": Variant(environment={"MALLOC_ARENA_MAX": "2"}),
    "Arrow: system allocator": Variant(environment={"ARROW_DEFAULT_MEMORY_POOL": "system"}),
    "a task for each row group": Variant(constants={"mine.FEW_TASKS": 10_000}),
    "two tasks": Variant(constants={"mine.FEW_TASKS": 2, "mine.TASK_BYTES": 1 << 40}),
}


def _measured(options: argparse.Namespace, variant: Variant) -> dict[str, float]:
    """In a process of its own."""
    told = {"settings": variant.settings, "constants": variant.constants}
    command = [sys.executable, __file__, "--folder", str(options.folder), "--checks", options.checks]
    done = subprocess.run(
        [*command, "--once", json.dumps(told)],
        env={**os.environ, **variant.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def once(options: argparse.Namespace) -> None:
    """Mine, and print what it cost as JSON."""
    import importlib

    from fencepost.mining.mine import mine
    from fencepost.mining.spark.engine import QUICK_JAVA
    from fencepost.mining.spark.session import session

    told = json.loads(options.once)
    for name, value in told["constants"].items():
        module, constant = name.split(".")
        found = importlib.import_module(f"fencepost.mining.{module}")
        assert hasattr(found, constant), name
        setattr(found, constant, value)

    def work() -> None:
        with (
            tempfile.TemporaryDirectory() as out,
            session("local[*]", settings={**QUICK_JAVA, **told["settings"]}) as spark,
        ):
            mine(
                [options.folder / "traces"],
                Path(out) / "out",
                spark=spark,
                checks=tuple(options.checks.split(",")),
            )

    cost = cost_of(work)
    print(
        json.dumps(
            {"seconds": cost.seconds, "processor": cost.processor, "MiB": (cost.workers + cost.jvm) / 2**20}
        )
    )


def main() -> None:
    """Measure in rounds, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the input is kept")
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--recorded", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--checks", default=",".join(DEFAULT_CHECKS))
    parser.add_argument("--only", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        once(options)
        return
    many_traces.write(options.folder / "traces", options.traces, many_traces.record(options.recorded))
    _measured(options, Variant())  # compiled kernels, files in memory
    ratios: dict[str, list[tuple[float, ...]]] = {name: [] for name in options.only}
    for _ in range(options.rounds):
        ours = _measured(options, Variant())
        print(
            f"ours: {ours['seconds']:.1f} s, {ours['processor']:.1f} processor s, {ours['MiB']:.0f} MiB",
            flush=True,
        )
        for name in options.only:
            found = _measured(options, VARIANTS[name])
            told = tuple(found[what] / ours[what] for what in ("seconds", "processor", "MiB"))
            print(f"  {name}: {' '.join(f'{ratio:.2f}' for ratio in told)}", flush=True)
            ratios[name].append(told)
    print(f"{'':<30} {'seconds':>8} {'processor':>10} {'memory':>8}")
    for name, many in ratios.items():
        seconds, processor, memory = (statistics.median(column) for column in zip(*many, strict=True))
        print(f"{name:<30} {seconds:>8.2f} {processor:>10.2f} {memory:>8.2f}")


if __name__ == "__main__":
    main()

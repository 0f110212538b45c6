"""What triage costs on top of judging: `mine` with and without it on the same traces, in one session.

    python bench/triage.py [--traces 10000] [--traces 100000] [--recorded 40] [--folder KEPT] [--master
    local[*]]

Traces are those of bench/mine.py: recorded runs, multiplied, one in a hundred perturbed. All checks.
Processor seconds are of driver, JVM and workers together; the difference is what triage costs, in tasks and
after them. Both are run once to warm up. Memory is the most that Python workers and JVM had.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import many_traces
from process_tree import Cost, cost_of

from fencepost.mining.mine import mine
from fencepost.mining.spark.session import session


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=int, action="append", help="may be repeated [default: 10000]")
    parser.add_argument("--recorded", type=int, default=40)
    parser.add_argument("--folder", type=Path, help="where the input is kept for the next time")
    parser.add_argument("--master", default="local[*]")
    options = parser.parse_args()
    heading = (
        "traces",
        "judging, CPU s",
        "with triage",
        "triage / judging",
        "bugs",
        "workers MiB",
        "JVM MiB",
    )
    print(" ".join(f"{word:>16}" for word in heading), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-bench-") as temporary,
        session(options.master) as spark,
    ):
        recorded = many_traces.record(options.recorded)
        for count in options.traces or [10_000]:
            path = (options.folder or Path(temporary)) / str(count)
            many_traces.write(path / "traces", count, recorded)
            out, bugs = path / "out", [0]

            def cost(triage: bool, path: Path = path, out: Path = out, bugs: list[int] = bugs) -> Cost:
                def mined() -> None:
                    shutil.rmtree(out, ignore_errors=True)
                    bugs[0] = len(mine([path / "traces"], out, spark=spark, triage=triage).bugs.bugs)

                return cost_of(mined)

            if count == (options.traces or [10_000])[0]:
                cost(False), cost(True)
            plain, whole = cost(False), cost(True)
            ratio = (whole.processor - plain.processor) / plain.processor
            cells = (
                f"{count:,}",
                f"{plain.processor:.1f}",
                f"{whole.processor:.1f}",
                f"{ratio:.2f}",
                str(bugs[0]),
                f"{whole.workers / 2**20:.0f}",
                f"{whole.jvm / 2**20:.0f}",
            )
            print(" ".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

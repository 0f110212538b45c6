"""The explorer against TLC, in one run, on configurations of our own that TLC ends within a minute or two,
with as many workers each.

    python bench/model.py [--quick] [--workers 1,2] [--repeat 1] [--only WORD] [--json FILE]

Each measurement has a process of its own. Seconds are wall clock from asking to the answer, and processor
time beside it: starting the JVM and the explorer's workers included, loading our compiled kernels excluded
(told at the end; compiling them, once for a machine, is told if it was needed). Memory is the peak of
resident memory: of the Java process; of the exploring process and, with workers, as often that of the largest
worker. Both look at all invariants, and find as many distinct states, or the bench fails. With symmetry,
states that differ only in the names of what is alike count as one; the specifications have no symmetry set,
so that is compared with TLC without it.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from attrs import asdict, frozen
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from fencepost.model.comparison.sameness import spec_of
from fencepost.model.controller.state import Constants as Control
from fencepost.model.explore import Limits, explore
from fencepost.model.group.state import Constants as Groups
from fencepost.model.registry import model_of
from fencepost.model.replication.state import Constants as Data
from fencepost.model.replication.system import Replication
from fencepost.model.tlc import RunOptions, check

CONFIGURATIONS: tuple[Any, ...] = (
    Data(replicas=2, epochs=2),
    Data(replicas=3, epochs=1),
    Data(replicas=2, epochs=3),
    Data(replicas=2, epochs=1, crashes=2, losses=1, drop={"broker_epoch_fencing"}),
    Data(replicas=3, epochs=1, crashes=1),
    Data(replicas=3, epochs=2),
    Control(sessions=2, writes=1),
    Control(epochs=1, deletions=1, shutdowns=1),
    Groups(members=2, generations=2, brokers=1),
    Groups(members=2, generations=1, commits=2, epochs=1),
)
QUICK = (*CONFIGURATIONS[:2], CONFIGURATIONS[6], CONFIGURATIONS[8])
LIMITS = Limits(states=50_000_000)


@frozen
class Measured:
    """The best of some runs; warm_s: what loading (or compiling) kernels took before."""

    outcome: str
    distinct: int
    wall_s: float
    cpu_s: float
    memory_mb: int
    warm_s: float = 0.0


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak_mb(who: int) -> int:
    return resource.getrusage(who).ru_maxrss // (1 << 20 if sys.platform == "darwin" else 1 << 10)


def ours(constants: Any, workers: int, symmetry: bool) -> Measured:
    """Our explorer, in this process and its workers."""
    started = time.perf_counter()
    explore(Replication(Data(replicas=2)), symmetry=True)
    warm_s = time.perf_counter() - started
    model = model_of(constants)
    system = model.system(constants, model.invariants)
    started, cpu_s = time.perf_counter(), _cpu_s()
    result = explore(system, LIMITS, workers=workers, symmetry=symmetry)
    wall_s = time.perf_counter() - started
    memory_mb = _peak_mb(resource.RUSAGE_SELF)
    memory_mb += workers * _peak_mb(resource.RUSAGE_CHILDREN) if workers > 1 else 0
    return Measured(str(result.outcome), result.distinct, wall_s, _cpu_s() - cpu_s, memory_mb, warm_s)


def tlc(constants: Any, workers: int) -> Measured:
    """TLC."""
    started, cpu_s = time.perf_counter(), _cpu_s()
    result = check(spec_of(constants), RunOptions(workers=workers))
    wall_s = time.perf_counter() - started
    peak_mb = _peak_mb(resource.RUSAGE_CHILDREN)
    return Measured(str(result.outcome), result.distinct, wall_s, _cpu_s() - cpu_s, peak_mb)


def measure(repeat: int, what: Callable[..., Measured], *arguments: Any) -> Measured:
    """The fastest of some runs, each in a new process."""
    runs = []
    for _ in range(repeat):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
            runs.append(executor.submit(what, *arguments).result())
    return min(runs, key=lambda run: run.wall_s)


def words(constants: Any) -> str:
    """A configuration in a few words: the bounds that are not as by default."""
    model = model_of(constants)
    bounds = ", ".join(
        f"{name} {getattr(constants, name)}"
        for name, default in model.bounds.items()
        if getattr(constants, name) != default
    )
    dropped = f", without {', '.join(sorted(constants.drop))}" if constants.drop else ""
    return f"{model.name}: {bounds or 'as by default'}{dropped}"


@frozen
class Row:
    """One configuration with one number of workers."""

    configuration: str
    workers: int
    tlc: Measured
    plain: Measured
    symmetric: Measured

    @property
    def agrees(self) -> bool:
        """A violation ends both early, at other states."""
        whole = self.tlc.outcome == "holds"
        return self.plain.outcome == self.tlc.outcome and (
            not whole or self.plain.distinct == self.tlc.distinct
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """As the table shows it."""
        return (
            self.configuration,
            str(self.workers),
            self.tlc.outcome if self.agrees else f"{self.plain.outcome}, TLC: {self.tlc.outcome}",
            f"{self.plain.distinct:,}"
            if self.agrees
            else f"{self.plain.distinct:,}, TLC: {self.tlc.distinct:,}",
            f"{self.tlc.wall_s:.1f} ({self.tlc.cpu_s:.0f})",
            f"{self.plain.wall_s:.1f} ({self.plain.cpu_s:.0f})",
            f"{self.tlc.wall_s / self.plain.wall_s:.1f}",
            f"{self.symmetric.wall_s:.1f} ({self.symmetric.cpu_s:.0f})",
            f"{self.symmetric.distinct:,}",
            f"{self.tlc.wall_s / self.symmetric.wall_s:.1f}",
            f"{self.tlc.memory_mb:,} / {self.plain.memory_mb:,} / {self.symmetric.memory_mb:,}",
        )


HEADINGS = (
    "configuration", "workers", "outcome", "distinct", "TLC s (CPU)", "explorer s (CPU)", "TLC/explorer",
    "with symmetry s (CPU)", "states", "TLC/symmetry", "MB: TLC / explorer / symmetry",
)  # fmt: skip


def rows_of(arguments: argparse.Namespace) -> list[Row]:
    """Measure, one after the other."""
    chosen = [one for one in (QUICK if arguments.quick else CONFIGURATIONS) if arguments.only in words(one)]
    counts = [int(word) for word in arguments.workers.split(",")]
    rows = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=len(chosen) * len(counts))
        for constants in chosen:
            for workers in counts:
                plain = measure(arguments.repeat, ours, constants, workers, False)
                symmetric = measure(arguments.repeat, ours, constants, workers, True)
                theirs = measure(arguments.repeat, tlc, constants, workers)
                rows.append(Row(words(constants), workers, theirs, plain, symmetric))
                progress.advance(task)
                if arguments.json:
                    arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return rows


def main() -> int:
    """Print the table, as Markdown where it goes to a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="four small ones only")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", default="", help="configurations whose words contain this")
    parser.add_argument("--json", type=Path, help="write the measurements there, after each row")
    arguments = parser.parse_args()
    rows = rows_of(arguments)
    if sys.stdout.isatty():
        table = Table(*HEADINGS)
        for row in rows:
            table.add_row(*row.cells)
        Console().print(table)
    else:
        print("| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS), sep="\n")
        for row in rows:
            print("| " + " | ".join(row.cells) + " |")
    warm_s = [one.warm_s for row in rows for one in (row.plain, row.symmetric)]
    print(
        f"\nkernels: {max(warm_s, default=0.0):.1f} s the first time, {min(warm_s, default=0.0):.1f} s once "
        f"compiled"
    )
    differ = [row.configuration for row in rows if not row.agrees]
    if differ:
        print(f"the two do not agree: {'; '.join(differ)}")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())

"""The explorer against TLC, in one run, on configurations of our own that TLC ends within a minute, with as many workers each.

    python bench/model.py [--quick] [--workers 1,2] [--repeat 1]

Seconds are wall clock from asking to the answer: starting the JVM and the explorer's processes included, compiling our kernels (once for a
machine) excluded and told. Both look at all invariants, and find as many distinct states, or the bench fails. With symmetry, states that differ only in
the names of replicas count as one; the specification has no symmetry set, so that is compared with TLC without it.
"""

import argparse
import sys
import time

from attrs import frozen
from rich.console import Console
from rich.table import Table

from fencepost.model.explore import Limits, explore
from fencepost.model.replication import Replication
from fencepost.model.replication_state import Constants
from fencepost.model.tla.sameness import spec_of
from fencepost.model.tlc import RunOptions, check

CONFIGURATIONS = (
    Constants(replicas=2, epochs=2),
    Constants(replicas=3, epochs=1),
    Constants(replicas=2, epochs=3),
    Constants(replicas=2, epochs=1, crashes=2, losses=1, drop={"broker_epoch_fencing"}),
    Constants(replicas=3, epochs=1, crashes=1),
    Constants(replicas=3, epochs=2),
)
QUICK = CONFIGURATIONS[:2]
LIMITS = Limits(states=50_000_000)


@frozen
class Timed:
    """The best of some runs."""

    outcome: str
    distinct: int
    seconds: float


def ours(constants: Constants, workers: int, *, symmetry: bool, repeat: int) -> Timed:
    """Our explorer."""
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        result = explore(Replication(constants), LIMITS, workers=workers, symmetry=symmetry)
        best = min(best, time.perf_counter() - started)
    return Timed(str(result.outcome), result.distinct, best)


def tlc(constants: Constants, workers: int, repeat: int) -> Timed:
    """TLC."""
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        result = check(spec_of(constants), RunOptions(workers=workers))
        best = min(best, time.perf_counter() - started)
    return Timed(str(result.outcome), result.distinct, best)


def words(constants: Constants) -> str:
    """A configuration in a few words."""
    crashes = f", {constants.crashes} crashes, {constants.losses} lost" if constants.crashes else ""
    dropped = f", without {', '.join(sorted(constants.drop))}" if constants.drop else ""
    return f"{constants.replicas} replicas, epochs 0..{constants.epochs}{crashes}{dropped}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the two smallest only")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(width=150)
    started = time.perf_counter()
    explore(Replication(Constants(replicas=2)), workers=1, symmetry=True)
    console.print(f"kernels compiled or loaded in {time.perf_counter() - started:.1f} s")
    table = Table(
        *("configuration", "workers", "outcome", "distinct", "TLC s", "explorer s", "TLC/explorer"),
        *("with symmetry s", "states", "TLC/symmetry"),
    )
    differ = False
    for constants in QUICK if arguments.quick else CONFIGURATIONS:
        for workers in (int(word) for word in arguments.workers.split(",")):
            theirs = tlc(constants, workers, arguments.repeat)
            plain = ours(constants, workers, symmetry=False, repeat=arguments.repeat)
            reduced = ours(constants, workers, symmetry=True, repeat=arguments.repeat)
            whole = theirs.outcome == "holds"
            differ |= plain.outcome != theirs.outcome or (whole and plain.distinct != theirs.distinct)
            table.add_row(
                words(constants),
                str(workers),
                plain.outcome
                if plain.outcome == theirs.outcome
                else f"{plain.outcome}, TLC: {theirs.outcome}",
                f"{plain.distinct:,}"
                if plain.distinct == theirs.distinct
                else f"{plain.distinct:,}, TLC: {theirs.distinct:,}",
                f"{theirs.seconds:.1f}",
                f"{plain.seconds:.1f}",
                f"{theirs.seconds / plain.seconds:.1f}",
                f"{reduced.seconds:.1f}",
                f"{reduced.distinct:,}",
                f"{theirs.seconds / reduced.seconds:.1f}",
            )
    console.print(table)
    if differ:
        console.print("[red]the two do not agree[/red]")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())

"""One way to measure, whatever is measured: a subject and its peers take turns in one run.

A measure is a generator of cases. The harness runs a case when it is yielded, so a `with` around the `yield`
keeps what the case needs. Each turn runs every side once, in order: what else the machine does then meets all
of them. A figure is the median of the turns with the least and the most; a ratio is the median of the turns'
own ratios. The first turn is left out, because it compiles and fills caches.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from time import gmtime, strftime
from types import ModuleType
from typing import Any

from attrs import asdict, frozen
from rich.console import Console
from rich.table import Table

from bench.costs import Cost, here

TOP = Path(__file__).parents[1]
TURNS = 3
MEASURES = {
    "simulator": "a fixed run of the simulated cluster, and what judging adds",
    "judges": "our judges against Porcupine, on the same histories (Go)",
    "log_check": "the log check from columns against reading the columns",
    "transactions": "the checks of transactions, by size of the history",
    "mine": "mine against Spark's scan: small traces, giant histories, triage (Java)",
    "watch": "watch behind a history that is written at a rate (Java)",
    "log": "the log against plain file calls, record batches against two clients",
    "events": "the judge of an application's own lines against decoding them as JSON",
    "audit": "audit against reading the same files, with memory",
    "fixture": "an embedded cluster until its first record, against other test clusters",
    "throughput": "records into a partition, embedded and Apache Kafka (Maven)",
    "proxy": "an application with the proxy and without, against Apache Kafka (Maven)",
    "explorer": "the model explorer against TLC (Java)",
    "viewer": "how fast a page is drawn (Chromium)",
}
ALL_MEASURES = "all"
"""The name that runs each of them."""
AS_BEFORE = (
    "import sys; sys.path.insert(0, sys.argv[1]); import bench; sys.path.insert(0, sys.argv[2]);"
    "from bench.harness import main; main(sys.argv[3:])"
)
"""The measures of this tree with the package of another one."""


@frozen(kw_only=True)
class Case:
    """One row group: the same work by several sides."""

    # What is worked on.
    name: str
    # Work of one turn, by who does it; the first is the subject, the others are its peers.
    sides: Mapping[str, Callable[[], Any]]
    # Units of work in a turn.
    per: int = 1
    # One of them.
    unit: str = "turn"
    # Done before each side's turn, and not counted.
    before: Callable[[], Any] = lambda: None
    # How a turn is measured.
    clock: Callable[[Callable[[], Any]], Cost] = here
    # How many turns, where the measure must say; 0: as the command says.
    turns: int = 0
    # Whether a first turn is left out.
    warm: bool = True


@frozen(kw_only=True)
class Measured:
    """A case with what each side's turns cost."""

    case: Case
    costs: dict[str, list[Cost]]

    def ratio(self, peer: str, what: str) -> float:
        """Cost of the subject over that of a peer. what: cpu_s or wall_s."""
        subject = next(iter(self.costs))
        pairs = zip(self.costs[subject], self.costs[peer], strict=True)
        return statistics.median(
            getattr(mine, what) / max(getattr(other, what), 1e-9) for mine, other in pairs
        )

    def row(self) -> dict[str, Any]:
        """As JSON."""
        sides = {side: [asdict(cost) for cost in costs] for side, costs in self.costs.items()}
        return {"case": self.case.name, "per": self.case.per, "unit": self.case.unit, "sides": sides}


def run(case: Case, turns: int) -> Measured:
    """All turns of a case."""
    costs: dict[str, list[Cost]] = {side: [] for side in case.sides}
    for turn in range(-int(case.warm), case.turns or turns):
        for side, work in case.sides.items():
            case.before()
            cost = case.clock(work)
            if turn >= 0:
                costs[side].append(cost)
    return Measured(case=case, costs=costs)


# ---- what is shown


def header(asked: argparse.Namespace) -> dict[str, Any]:
    """Where and when: figures of two machines, commits or loads are not compared."""
    git = ["git", "-C", str(TOP), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "date": strftime("%Y-%m-%d %H:%M UTC", gmtime()),
        "machine": f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}",
        "commit": commit or "unknown",
        "load": round(os.getloadavg()[0], 1),
        "turns": asked.turns,
        "quick": asked.quick,
    }


def _spread(values: list[float]) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.4g} ({low:.4g} to {high:.4g})" if len(values) > 1 else f"{middle:.4g}"


def _more(costs: list[Cost]) -> str:
    names = dict.fromkeys(name for cost in costs for name in cost.more)
    words = []
    for name in names:
        values = [cost.more[name] for cost in costs if name in cost.more]
        numbers = [value for value in values if isinstance(value, int | float)]
        words.append(f"{name} {_spread(numbers)}" if len(numbers) == len(values) else f"{name} {values[-1]}")
    return "; ".join(words)


def table(name: str, rows: list[Measured]) -> Table:
    """A line for each side of each case."""
    made = Table("case", "side", "CPU s", "wall s", "CPU each", "CPU x", "wall x", "MiB", "more", title=name)
    for one in rows:
        for number, (side, costs) in enumerate(one.costs.items()):
            each = statistics.median(cost.cpu_s for cost in costs) / one.case.per * 1e6
            mib = max(cost.mib for cost in costs)
            ratios = [f"{one.ratio(side, what):.2f}" if number else "" for what in ("cpu_s", "wall_s")]
            made.add_row(
                "" if number else one.case.name, side, _spread([cost.cpu_s for cost in costs]),
                _spread([cost.wall_s for cost in costs]), f"{each:,.3g} us a {one.case.unit}", *ratios,
                f"{mib:,.0f}" if mib else "", _more(costs),
            )  # fmt: skip
    return made


# ---- a tree before


def against(asked: argparse.Namespace, argv: list[str]) -> list[Measured]:
    """The same measure with this tree's package and with that of another tree, in turn: each turn is a
    process of its own."""
    trees = {"this tree": TOP, str(asked.before): asked.before.absolute()}
    flags = [word for word in argv if word not in ("--before", str(asked.before), f"--before={asked.before}")]
    found: dict[tuple[str, str], Measured] = {}
    for _ in range(asked.turns):
        for name, path in trees.items():
            command = [sys.executable, "-P", "-c", AS_BEFORE, str(TOP), str(path)]
            done = subprocess.run(
                [*command, *flags, "--turns", "1", "--json", "-"],
                stdout=subprocess.PIPE, text=True, check=True,
                env={**os.environ, "PYTHONPATH": str(path)},  # what is started from there, too
            )  # fmt: skip
            for row in json.loads(done.stdout)["rows"]:
                for side, costs in row["sides"].items():
                    case = Case(name=f"{row['case']}, {side}", sides={}, per=row["per"], unit=row["unit"])
                    one = found.setdefault(
                        (row["case"], side), Measured(case=case, costs={tree: [] for tree in trees})
                    )
                    one.costs[name] += [Cost(**cost) for cost in costs]
    return list(found.values())


# ---- the command


def _parser(module: ModuleType, name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m bench {name}", description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sizes, one turn: does it run?")
    parser.add_argument(
        "--turns", type=int, help=f"turns of each case [default: {getattr(module, 'TURNS', TURNS)}; quick: 1]"
    )
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every turn there (- for the screen)")
    parser.add_argument(
        "--before", type=Path, metavar="TREE", help="compare with the package of another tree"
    )
    if hasattr(module, "arguments"):
        module.arguments(parser)
    return parser


def wanted(asked: argparse.Namespace, name: str) -> bool:
    """Whether --only names this case; a measure looks before it makes what the case needs."""
    return asked.only in name


def measured(module: ModuleType, asked: argparse.Namespace) -> Iterator[Measured]:
    """Every case of a measure that was asked for, as it is done."""
    for case in module.measure(asked):
        if wanted(asked, case.name):
            yield run(case, asked.turns)


def skipped(what: str, why: str) -> None:
    """Say that a side or a case is left out."""
    print(f"skipped: {what}, {why}", file=sys.stderr)


def every(options: list[str]) -> int:
    """All measures, each in a process of its own. options: those that every measure has."""
    if any(word.startswith("--json") for word in options):
        print("expected one measure with --json, saw all: they would write the same file", file=sys.stderr)
        return 2
    codes = [subprocess.call([sys.executable, "-m", "bench", name, *options], cwd=TOP) for name in MEASURES]
    return next((code for code in codes if code), 0)


def main(argv: list[str] | None = None) -> int:
    """`python -m bench NAME [OPTIONS]`: measure, print, and write the turns where --json says. Without a
    name: list what there is. Returns 2 for a name that is no measure, and for all of them the first code
    that is not 0."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == [ALL_MEASURES]:
        return every(argv[1:])
    if not argv or argv[0] not in MEASURES:
        there = {**MEASURES, ALL_MEASURES: "each of them, one after the other"}
        names = "\n".join(f"  {name:<14}{words}" for name, words in there.items())
        known = argv[:1] in ([], ["--help"], ["-h"])
        seen = "" if known else f"expected a name of the list, saw {argv[0]}\n"
        print(f"{seen}usage: python -m bench NAME [OPTIONS], or NAME --help\n\n{names}")
        return 0 if known else 2
    name = argv[0]
    module = import_module(f"bench.measures.{name}")
    asked = _parser(module, name).parse_args(argv[1:])
    asked.turns = asked.turns or (1 if asked.quick else getattr(module, "TURNS", TURNS))
    if hasattr(module, "instead") and module.instead(asked):
        return 0
    where = header(asked)
    screen = Console(width=180, stderr=str(asked.json) == "-")
    screen.print(" | ".join(f"{key}: {value}" for key, value in where.items()))
    rows = against(asked, argv) if asked.before else list(measured(module, asked))
    screen.print(table(name, rows))
    if asked.json:
        text = json.dumps({"measure": name, **where, "rows": [row.row() for row in rows]}, indent=1) + "\n"
        sys.stdout.write(text) if str(asked.json) == "-" else asked.json.write_text(text, encoding="utf-8")
    return 0

"""`python -m tools.speed [NAME[:CASES]]... [--minutes N]`: measures of bench/ into docs/results/speed.md.

Owns the page. Each measure is a process of its own, and what it found is kept in out/speed; a run goes on
with what was not measured at this commit. `judges:5 clients` measures the cases of `judges` whose names
contain these words. Run it alone on a machine: it does not know what else runs there.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import rich_click as click

from bench.harness import MEASURES
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode
from fencepost.traces.whole_file import write_whole
from tools import program
from tools.ledger import TOP
from tools.program import FAILED, OK, SKIPPED, Done

KEPT = TOP / "out" / "speed"
PAGE = TOP / "docs" / "results" / "speed.md"
MINUTES = 20
"""Longer runs are seldom alone on a machine."""
DEFAULT = ("log_check", "judges:log, 5 clients", "events", "simulator", "mine", "log", "audit", "fixture")
OPENING = """# Speed

What the judges, the simulator and the log cost, against a named peer in the same run.
`make measure NAME=speed` measures anew and writes this page; `python -m bench NAME --help` says what each
measure does. Each figure is processor time: the median of the turns, with their range in brackets. *Times*
is the subject's over the peer's: below 1, the subject is the faster one.
"""


def file_of(name: str) -> Path:
    """Where what was measured is kept. name: NAME or NAME:CASES."""
    return KEPT / f"{''.join(letter if letter.isalnum() else '_' for letter in name)}.json"


def _commit() -> str:
    git = ["git", "-C", str(TOP), "describe", "--always", "--dirty"]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()


def measured(name: str, deadline: float) -> Done:
    """Measure, unless that was done at this commit.

    Args:
        name: NAME or NAME:CASES.
        deadline: of the monotonic clock; what is not finished then is not kept.
    """
    path = file_of(name)
    if path.is_file() and json.loads(path.read_text())["commit"] == _commit():
        return Done(case=name, why="measured before, at this commit")
    left = deadline - time.monotonic()
    if left <= 0:
        return Done(case=name, outcome=SKIPPED, why="no time is left")
    measure, _, cases = name.partition(":")
    draft = path.with_suffix(".draft")
    KEPT.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "bench",
        measure,
        "--json",
        str(draft),
        *(["--only", cases] if cases else []),
    ]
    try:
        done = subprocess.run(command, cwd=TOP, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return Done(
            case=name, outcome=SKIPPED, why=f"not finished in the {left / 60:.0f} minutes that were left"
        )
    if done.returncode:
        return Done(case=name, outcome=FAILED, why=f"exit code {done.returncode}")
    draft.replace(path)
    return Done(case=name, outcome=OK)


def page(kept: Iterable[Mapping[str, Any]]) -> str:
    """The page of what is kept."""
    parts = [OPENING]
    for one in sorted(kept, key=lambda one: list(MEASURES).index(one["measure"])):
        parts.append(f"## {one['measure']}\n")
        says = MEASURES[one["measure"]]
        parts.append(f"{says[0].upper()}{says[1:]}. {one['date']}, {one['commit']}, {one['machine']}.\n")
        units = " or ".join(dict.fromkeys(f"µs a {row['unit']}" for row in one["rows"]))
        parts.append(f"| case | subject, {units} | peer | times |\n|---|---:|---:|---:|")
        for row in one["rows"]:
            parts += _lines(row)
        parts.append("")
    return "\n".join(parts)


def _lines(row: Mapping[str, Any]) -> Iterable[str]:
    (name, subject), *peers = row["sides"].items()
    for peer, costs in peers:
        pairs = zip(subject, costs, strict=True)
        ratios = [mine["cpu_s"] / max(other["cpu_s"], 1e-9) for mine, other in pairs]
        mine, other = (f"{side} {_cost(row, of)}" for side, of in ((name, subject), (peer, costs)))
        yield f"| {row['case']} | {mine} | {other} | {_spread(ratios)} |"


def _cost(row: Mapping[str, Any], costs: Iterable[Mapping[str, float]]) -> str:
    return _spread([cost["cpu_s"] / row["per"] * 1e6 for cost in costs])


def _spread(values: list[float]) -> str:
    middle = statistics.median(values)
    if len(values) == 1:
        return f"{middle:.3g}"
    return f"{middle:.3g} ({min(values):.3g}..{max(values):.3g})"


@click.command()
@click.argument("names", nargs=-1, metavar="NAME[:CASES]...")
@click.option("--minutes", default=MINUTES, show_default=True, type=click.IntRange(1), help="Time for all.")
def command(names: tuple[str, ...], minutes: int) -> ExitCode:
    """Measure, and write docs/results/speed.md."""
    wanted = names or DEFAULT
    for name in wanted:
        if name.partition(":")[0] not in MEASURES:
            raise click.UsageError(f"expected names out of {', '.join(MEASURES)}, saw {name}")
    deadline = time.monotonic() + minutes * 60

    def keep(done: Done) -> None:
        kept = [json.loads(file.read_text()) for file in sorted(KEPT.glob("*.json"))]
        if done.outcome == OK and kept:
            write_whole(PAGE, page(kept))

    cases = {name: lambda name=name: measured(name, deadline) for name in wanted}
    return program.run_cases(cases, (), Output(), keep=keep)


if __name__ == "__main__":
    program.run(command, "speed")

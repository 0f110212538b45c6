"""How small plans become: for each planted bug the plan of the lowest seed of the swarm that shows it, before
and after shrinking.

    python bench/shrink.py [BUG[:SEED] ... | --all] [--seeds 400] [--seconds 60] [--jobs 1] [--record FILE]

Seeds are tried from 0 (or SEED) until one shows the bug by a name that is the bug's own; that plan is shrunk.
Without names: a few bugs that are soon found; --all begins each bug at the seed that
docs/explanation/track-record.md says. A bug that no seed shows is told as such. With --record every bug that
is done is kept there, and not done again. Seconds are wall time, runs are candidates that were run and
judged.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from fencepost.campaign.bugs import BUGS, PlantedBug
from fencepost.campaign.run.run import run
from fencepost.campaign.shrink.oracle import ShownAnomaly, target_of
from fencepost.campaign.shrink.shrink import shrink
from fencepost.campaign.shrink.workers import Workers
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine

SOON_FOUND = ("KAFKA-532", "KAFKA-6082", "KIP-101", "KAFKA-5634", "KAFKA-3978")
RECORD = Path(__file__).parents[1] / "docs" / "explanation" / "track-record.md"
COLUMNS_RECORDED = 9
COLUMNS = (
    "bug",
    "seed",
    "anomaly",
    "operations",
    "faults",
    "brokers",
    "partitions",
    "runs",
    "seconds",
    "to the end",
)


def recorded() -> list[str]:
    """Each planted bug, with the seed that showed it last: seeds needed are counted from 1."""
    rows = (line.split("|") for line in RECORD.read_text(encoding="utf-8").splitlines())
    needed = {row[1].strip(): row[3].strip().replace(",", "") for row in rows if len(row) == COLUMNS_RECORDED}
    return [f"{bug}:{int(needed[bug]) - 1}" if needed.get(bug, "").isdecimal() else bug for bug in BUGS]


def lowest(bug: PlantedBug, seeds: range) -> tuple[int, ShownAnomaly] | None:
    """The first seed that shows the bug by a name of its own."""
    for seed in seeds:
        plan = swarm(seed, bug.profile, (bug.bug,))
        found = combine(judge(run(plan))).findings
        names = [finding.anomaly for finding in found if finding.anomaly in bug.anomalies]
        if names:
            return seed, target_of(plan, anomaly=names[0])
    return None


def measured(bug: PlantedBug, seeds: range, seconds: float, jobs: int) -> dict[str, Any]:
    """One row: a pair of numbers is before and after."""
    found = lowest(bug, seeds)
    if found is None:
        return {"bug": bug.bug, "seed": f"none of {len(seeds)}"}
    seed, shown = found
    plan = swarm(seed, bug.profile, (bug.bug,))
    workers = Workers(target=shown.target, jobs=jobs, seconds=seconds)
    try:
        result = shrink(plan, workers)
    finally:
        workers.close()
    if result.interrupted:
        raise KeyboardInterrupt
    small = result.plan
    return {
        "bug": bug.bug,
        "seed": seed,
        "anomaly": result.anomaly,
        "operations": [len(plan.operations), len(small.operations)],
        "faults": [len(plan.faults), len(small.faults)],
        "brokers": [plan.cluster.brokers, small.cluster.brokers],
        "partitions": [sum(t.partitions for t in p.cluster.topics) for p in (plan, small)],
        "runs": result.runs,
        "seconds": round(result.wall_s, 1),
        "to the end": result.finished,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """The table, and the medians after shrinking."""
    table = Table(box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column)
    for row in rows:
        cells = (row.get(column, "") for column in COLUMNS)
        table.add_row(
            *(" -> ".join(map(str, cell)) if isinstance(cell, list) else str(cell) for cell in cells)
        )
    console = Console(width=160)
    console.print(table)
    done = [row for row in rows if "operations" in row]
    if done:
        operations, faults = (median(row[name][1] for row in done) for name in ("operations", "faults"))
        console.print(f"median of {len(done)}: {operations:g} operations, {faults:g} faults")


def main() -> None:
    """Measure, keep, show."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("bugs", nargs="*")
    parser.add_argument("--all", action="store_true", help="the whole zoo: a quarter of an hour")
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if options.record is not None and options.record.exists():
        rows = json.loads(options.record.read_text())
    for named in recorded() if options.all else options.bugs or SOON_FOUND:
        bug, _, first = named.partition(":")
        if bug in {row["bug"] for row in rows}:
            continue
        seeds = range(int(first or 0), int(first or 0) + options.seeds)
        rows.append(measured(BUGS[bug], seeds, options.seconds, options.jobs))
        if options.record is not None:
            partial = options.record.with_suffix(".partial")
            partial.write_text(json.dumps(rows, indent=1))
            partial.replace(options.record)
    show(rows)


if __name__ == "__main__":
    main()

"""The table of docs/results/real-systems.md: what the campaigns of the record came to, and what every finding
of them was.

Owns the table, between two marks of the page, and the explanations: of single runs (explained.toml), and of
known defects by what a run recorded (known.py). Must not run anything. A finding in a row that is no control
counts as unexplained until somebody has found out what it was.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

from attrs import frozen

from fencepost.campaign.driver.ledger import verdicts_of
from fencepost.campaign.workers.results import RunResult
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import FencepostError
from fencepost.traces.store import TraceStore
from tools.ledger import TOP
from tools.page import Place
from tools.real_record.known import said_of
from tools.real_record.rows import Row

PLACE = Place(
    page=TOP / "docs" / "results" / "real-systems.md",
    mark="<!-- measured by make measure NAME=real-record -->",
)
EXPLAINED = Path(__file__).parent / "explained.toml"
HEAD = (
    "| system | plans | runs | findings | too weak or undecided | seconds a run, median and most |",
    "|---|---|---:|---|---:|---:|",
)
UNEXPLAINED = "**not explained yet**"
Explanations = Mapping[tuple[str, int], str]
"""By row and seed."""


@frozen(kw_only=True)
class Sum:
    """What one row came to."""

    row: Row
    results: tuple[RunResult, ...]

    @property
    def findings(self) -> tuple[RunResult, ...]:
        """The runs with a finding, by seed."""
        found = (one for one in self.results if one.decision is Decision.ILLEGAL)
        return tuple(sorted(found, key=lambda one: one.seed))

    @property
    def weak(self) -> int:
        """Runs that prove nothing."""
        return sum(one.decision not in (Decision.OK, Decision.ILLEGAL) for one in self.results)

    def line(self) -> str:
        """Its line of the table."""
        counts = Counter(one.anomaly or "unnamed" for one in self.findings)
        shown = ", ".join(f"`{name}` {count}" for name, count in sorted(counts.items())) or "none"
        if self.row.control:
            shown = f"in {len(self.findings)}: {shown}" if counts else "**not found**"
        spent = [one.wall_ms / 1000 for one in self.results]
        time = f"{median(spent):.1f}, {max(spent):.1f}"
        cells = (self.row.system, self.row.plans, len(self.results), shown, self.weak, time)
        return f"| {' | '.join(map(str, cells))} |"


def sums_of(folder: Path, rows: Iterable[Row]) -> tuple[Sum, ...]:
    """What the rows came to that were run in this folder; the others are left out."""
    found = []
    for row in rows:
        results = tuple(verdicts_of(folder / row.name).values())
        if results:
            found.append(Sum(row=row, results=results))
    return tuple(found)


def explanations(path: Path = EXPLAINED) -> Explanations:
    """What findings were. path: the file. Raises FencepostError for one that says nothing."""
    found = {}
    for one in tomllib.loads(path.read_text(encoding="utf-8")).get("finding", []):
        if not one.get("says"):
            raise FencepostError(
                expected="an explanation in `says`", seen=f"none for {one.get('row')}", where=str(path)
            )
        found.update({(one["row"], seed): one["says"] for seed in one["seeds"]})
    return found


def known_defects(folder: Path, sums: Iterable[Sum], explained: Explanations) -> Explanations:
    """Explanations of findings that are a known defect of the system, by what their runs recorded.

    Parameters:
      folder: of the record.
      sums: of its rows.
      explained: findings that have an explanation already.
    Returns: both together.
    """
    found = dict(explained)
    for row, one in unexplained(sums, explained):
        trace = TraceStore.open(folder / row.name).read(one.seed)
        if says := said_of(trace, one.findings):
            found[row.name, one.seed] = says
    return found


def unexplained(sums: Iterable[Sum], known: Explanations) -> list[tuple[Row, RunResult]]:
    """Findings that nobody has explained; those of controls have to be there, and need no explanation."""
    return [
        (each.row, one)
        for each in sums
        if not each.row.control
        for one in each.findings
        if (each.row.name, one.seed) not in known
    ]


def table(sums: Iterable[Sum], known: Explanations) -> list[str]:
    """The lines: the table, and below it each finding outside of the controls."""
    sums = tuple(sums)
    lines = [*HEAD, *(each.line() for each in sums)]
    seeds: dict[tuple[str, str], list[int]] = {}
    for each in sums:
        for one in () if each.row.control else each.findings:
            says = known.get((each.row.name, one.seed), UNEXPLAINED)
            seeds.setdefault((f"`{one.anomaly}` of {each.row.name}", says), []).append(one.seed)
    explained = [
        f"- {of}, seed{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}: {says}"
        for (of, says), found in seeds.items()
    ]
    return [*lines, *([""] if explained else []), *explained]

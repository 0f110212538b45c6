"""`python -m tools.track_record FOLDER`: what `campaign bugs hunt --out FOLDER` measured, as the table of
docs/results/track-record.md.

Owns the table between the two marks of that page; writes nothing else. Must not measure: a bug that is not in
the record keeps the row that the page has, so that one bug can be measured anew by itself; one that is in
neither has no row.
"""

from pathlib import Path

import msgspec
import rich_click as click

from fencepost.bugs import BUGS
from fencepost.campaign.hunting.swarm_hunt import RECORD, Hunt
from fencepost.traces.errors import FencepostError
from tools import program
from tools.ledger import TOP
from tools.page import Place

PAGE = TOP / "docs" / "results" / "track-record.md"
PLACE = Place(page=PAGE, mark="<!-- measured by make measure NAME=track-record -->")
HEAD = ("| bug | seeds needed | found as |", "|---|---:|---|")


def _needed(hunt: Hunt) -> str:
    """Of one range the first seed that showed it; of several their median, and in how many it was found."""
    if len(hunt.ranges) > 1:
        found = sum(needed is not None for needed in hunt.ranges)
        median = "not in most" if hunt.median is None else f"{hunt.median:,}"
        return f"{median} ({found}/{len(hunt.ranges)})"
    return f"not in {hunt.seeds_tried:,}" if hunt.seeds_needed is None else f"{hunt.seeds_needed:,}"


def _row(hunt: Hunt) -> str:
    found_as = f"{hunt.anomaly} (injected)" if BUGS[hunt.bug].injected else hunt.anomaly
    return "| " + " | ".join((hunt.bug, _needed(hunt), found_as)) + " |"


def rows_of(table: str) -> dict[str, str]:
    """The rows that a table has, by bug."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return {line.split("|")[1].strip(): line for line in lines}


def updated(table: str, hunts: list[Hunt]) -> list[str]:
    """The table's lines with the rows of these hunts, in the order of `fencepost campaign bugs list`."""
    rows = rows_of(table) | {hunt.bug: _row(hunt) for hunt in hunts if hunt.bug in BUGS}
    return [*HEAD, *(rows[bug] for bug in BUGS if bug in rows)]


@click.command("track_record", help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write the table into the page. Raises FencepostError without a record."""
    record = folder / RECORD
    if not record.exists():
        raise FencepostError(
            expected="the record of `fencepost campaign bugs hunt`",
            seen="none",
            where=str(record),
            hint="hunt with --out",
        )
    hunts = msgspec.json.decode(record.read_bytes(), type=list[Hunt])
    PLACE.write_table(updated(PLACE.read(), hunts))


if __name__ == "__main__":
    program.run(command, "track_record")

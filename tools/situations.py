"""`python -m tools.situations FOLDER`: in how many runs of the campaign in FOLDER each situation arose, for
docs/results/situations.md.

Owns the table between the two marks of that page. Must not know how a mark is recognised, or run anything.
"""

from collections import Counter
from collections.abc import Collection
from pathlib import Path

import rich_click as click

from fencepost.campaign.driver.ledger import Ledger
from fencepost.campaign.swarm.mark_weights import marks_possible
from fencepost.campaign.swarm.profiles import GENERAL, PROFILES
from fencepost.campaign.workers.results import RunResult
from fencepost.traces.errors import FencepostError
from tools import program
from tools.ledger import TOP
from tools.page import Place

PAGE = TOP / "docs" / "results" / "situations.md"
PLACE = Place(page=PAGE, mark="<!-- measured by make measure NAME=situations -->")


def lines_of(results: Collection[RunResult], possible: Collection[str]) -> list[str]:
    """The table, the rarest first.

    Args:
        results: of all runs.
        possible: the marks that they could reach.
    """
    reached = Counter(mark for result in results for mark in result.marks)
    convicted = sum(result.convicted for result in results)
    counts = sorted((reached[mark], mark) for mark in possible)
    return [
        f"{len(results):,} healthy runs; {convicted} with a finding.",
        "",
        "| situation | runs |",
        "|---|---:|",
        *(f"| `{mark}` | {count:,} |" for count, mark in counts),
    ]


@click.command("situations", help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write the table into the page. Raises FencepostError for a folder without runs."""
    results = Ledger.open(folder).earlier.values()
    if not results:
        raise FencepostError(
            expected="the runs of `fencepost campaign --out`", seen="none", where=str(folder)
        )
    PLACE.write_table(lines_of(results, marks_possible(PROFILES[GENERAL])))


if __name__ == "__main__":
    program.run(command, "situations")

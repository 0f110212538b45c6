"""What other people's clients do with our brokers, in a table: docs/reference/clients.md (`make measure
NAME=clients`).

    python -m tools.clients [NAME[@VERSION] ...] [--json FILE] [--docs docs/reference/clients.md]

Each client is built in the user's cache, run against an embedded cluster of three brokers, and every cell is
a check that reads back and compares (fencepost/torture/abilities). A library that this machine cannot build
is skipped by name, with what is missing. Exit code 1 if a cell failed.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import fencepost.kafka
from fencepost.torture.abilities.table import ABILITIES, Cell, try_all
from fencepost.torture.building import build, missing
from fencepost.torture.libraries import Wanted, libraries, wanted
from fencepost.traces.errors import FencepostError
from tools.page import Place

MARKS = {"ok": "yes", "failed": "**no**", "absent": "–"}
ALSO = ("kafka-clients@3.9.2",)
"""Rows of `make measure NAME=clients` in addition to the newest version of each library: Java 3.9 is the last
line that
ZooKeeper's brokers came with."""
MARK = "<!-- table -->"


def row_of(library: Wanted) -> list[Cell]:
    """All cells of a library."""

    def progress(cell: Cell) -> None:
        print(f"{library} {cell.ability}: {cell.outcome} {cell.why}", file=sys.stderr, flush=True)

    built = build(library)
    with fencepost.kafka.cluster() as kafka:
        return try_all(built, kafka, progress=progress)[1]


def lines_of(library: Wanted, cells: list[Cell] | str) -> list[str]:
    """The row, and a line for each cell that failed; for a library that was skipped, a line with the
    reason."""
    if isinstance(cells, str):
        return [f"- {library}: skipped: {cells}"]
    marks = " | ".join(MARKS[cell.outcome] for cell in cells)
    failed = [f"- {library}: {cell.ability}: {cell.why}" for cell in cells if cell.outcome == "failed"]
    return [f"| {library}: {library.library.title} | {marks} |", *failed]


def page_of(rows: Mapping[str, list[str]]) -> str:
    """The table, then what failed or was skipped, in the order of NAME@VERSION."""
    lines = ["| client | " + " | ".join(ability.name for ability in ABILITIES) + " |"]
    lines.append("|---" * (len(ABILITIES) + 1) + "|")
    sorted_lines = [line for name in sorted(rows) for line in rows[name]]
    lines += [line for line in sorted_lines if line.startswith("|")]
    notes = [line for line in sorted_lines if line.startswith("-")]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def rows_of(page: str) -> dict[str, list[str]]:
    """The lines of a page that was written before, by NAME@VERSION."""
    rows: dict[str, list[str]] = {}
    for line in page.splitlines():
        name = line[2:].partition(":")[0]
        if line[:2] in ("| ", "- ") and "@" in name:
            rows.setdefault(name, []).append(line)
    return rows


def main() -> None:
    """Try every client, or those that are named; of those that are not, a page keeps the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", help="NAME[@VERSION]; all by default")
    parser.add_argument("--json", type=Path, help="write every cell here")
    parser.add_argument("--docs", type=Path, help="put the table between this page's marks")
    options = parser.parse_args()
    results: dict[str, list[Cell] | str] = {}
    fresh: dict[str, list[str]] = {}
    for name in options.clients or (*libraries(), *ALSO):
        library = wanted(name)
        try:
            results[str(library)] = missing(library) or row_of(library)
        except FencepostError as error:
            results[str(library)] = str(error)
        fresh[str(library)] = lines_of(library, results[str(library)])
    print(page_of(fresh))
    if options.docs is not None:
        place = Place(page=options.docs, mark=MARK)
        try:
            kept = rows_of(place.read()) if options.clients else {}
            place.write(page_of({**kept, **fresh}))
        except FencepostError as error:
            sys.exit(str(error))
    if options.json is not None:
        content = {
            name: cells
            if isinstance(cells, str)
            else {cell.ability: [cell.outcome, cell.why] for cell in cells}
            for name, cells in results.items()
        }
        options.json.write_text(json.dumps(content, indent=1))
    failed = (cells for cells in results.values() if not isinstance(cells, str))
    sys.exit(int(any(cell.outcome == "failed" for cells in failed for cell in cells)))


if __name__ == "__main__":
    main()

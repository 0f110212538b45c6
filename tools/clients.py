"""What other people's clients do with our brokers, in a table: docs/reference/clients.md (`make measure
NAME=clients`).

    python -m tools.clients [NAME[@VERSION] ...] [--docs docs/reference/clients.md]

Each client is built in the user's cache, run against an embedded cluster of three brokers, and every cell is
a check that reads back and compares (fencepost/torture/abilities). A library that this machine cannot build
is skipped by name, with what is missing. Exit code 1 if a cell failed.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import rich_click as click

import fencepost.kafka
from fencepost.console.output import Output
from fencepost.torture.abilities.ability_table import Cell, try_all
from fencepost.torture.building import build, missing
from fencepost.torture.libraries import Wanted, libraries, wanted
from fencepost.traces.errors import ExitCode, FencepostError
from tools import program
from tools.page import Place
from tools.program import FAILED, OK, SKIPPED, Done, run_cases

ALSO = ("kafka-clients@3.9.2",)
"""Rows of `make measure NAME=clients` in addition to the newest version of each library: Java 3.9 is the last
line that
ZooKeeper's brokers came with."""
MARK = "<!-- table -->"


def row_of(library: Wanted, output: Output) -> list[Cell]:
    """All cells of a library."""

    def progress(cell: Cell) -> None:
        output.note(f"{library} {cell.ability}: {cell.outcome} {cell.why}")

    built = build(library)
    with fencepost.kafka.cluster() as kafka:
        return try_all(built, kafka, progress=progress)[1]


def lines_of(library: Wanted, cells: list[Cell] | str) -> list[str]:
    """The row, and a line for each cell that failed; for a library that was skipped, a line with the
    reason."""
    if isinstance(cells, str):
        return [f"- {library}: skipped: {cells}"]
    names = [", ".join(c.ability for c in cells if c.outcome == outcome) for outcome in (FAILED, "absent")]
    works = sum(cell.outcome == "ok" for cell in cells)
    failed = [f"- {library}: {cell.ability}: {cell.why}" for cell in cells if cell.outcome == FAILED]
    return [f"| {library}: {library.library.title} | {works} | {' | '.join(names)} |", *failed]


def page_of(rows: Mapping[str, list[str]]) -> str:
    """The table, then what failed or was skipped, in the order of NAME@VERSION."""
    lines = ["| client | works | does not | is not there |", "|---|---:|---|---|"]
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


def tried(name: str, rows: dict[str, list[str]], output: Output) -> Done:
    """What became of a client. rows: gets its lines."""
    library = wanted(name)
    try:
        cells = missing(library) or row_of(library, output)
    except FencepostError as error:
        cells = str(error)
    rows[str(library)] = lines_of(library, cells)
    if isinstance(cells, str):
        return Done(case=name, outcome=SKIPPED, why=cells)
    failed = ", ".join(cell.ability for cell in cells if cell.outcome == FAILED)
    return Done(case=name, outcome=FAILED if failed else OK, why=failed)


@click.command("clients", help=__doc__)
@click.argument("clients", nargs=-1, metavar="[NAME[@VERSION]]...")
@click.option("--docs", type=click.Path(path_type=Path), help="put the table between this page's marks")
def command(clients: tuple[str, ...], docs: Path | None) -> ExitCode:
    """Try every client, or those that are named; of those that are not, a page keeps the rows."""
    output, rows = Output(), dict[str, list[str]]()
    cases = {name: partial(tried, name, rows, output) for name in clients or (*libraries(), *ALSO)}
    code = run_cases(cases, (), output)
    output.say(page_of(rows))
    if docs is not None:
        place = Place(page=docs, mark=MARK)
        place.write(page_of({**(rows_of(place.read()) if clients else {}), **rows}))
    return code


if __name__ == "__main__":
    program.run(command, "clients")

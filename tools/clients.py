"""What other people's clients do with our brokers, in a table: docs/clients.md (`make clients`).

    python -m tools.clients [NAME[@VERSION] ...] [--json FILE] [--docs docs/clients.md]

Each client is built in the user's cache, run against an embedded cluster of three brokers, and every cell is a
check that reads back and compares (fencepost/torture/abilities). A library that this machine cannot build is
skipped by name, with what is missing. Exit code 1 if a cell failed.
"""

import argparse
import json
import sys
from pathlib import Path

import fencepost.kafka
from fencepost.torture.abilities.table import ABILITIES, Cell, try_all
from fencepost.torture.building import build, missing
from fencepost.torture.libraries import Wanted, libraries, wanted
from fencepost.traces.errors import FencepostError

MARKS = {"ok": "yes", "failed": "**no**", "absent": "–"}


def row_of(library: Wanted) -> tuple[str, list[Cell]]:
    """All cells of a library."""

    def progress(cell: Cell) -> None:
        print(f"{library} {cell.ability}: {cell.outcome} {cell.why}", file=sys.stderr, flush=True)

    built = build(library)
    with fencepost.kafka.cluster() as kafka:
        return try_all(built, kafka, progress=progress)


def page_of(rows: dict[str, tuple[str, list[Cell]]], skipped: dict[str, str]) -> str:
    """The table, and what failed and why."""
    lines = ["| client | " + " | ".join(ability.name for ability in ABILITIES) + " |"]
    lines.append("|---" * (len(ABILITIES) + 1) + "|")
    for name, (version, cells) in rows.items():
        marks = " | ".join(MARKS[cell.outcome] for cell in cells)
        lines.append(f"| {name} {version} | {marks} |")
    failed = [(name, cell) for name, (_, cells) in rows.items() for cell in cells if cell.outcome == "failed"]
    lines.append("")
    lines += [f"- {name}, {cell.ability}: {cell.why}" for name, cell in failed]
    lines += [f"- {name} was skipped: {why}" for name, why in skipped.items()]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Try every client, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", help="NAME[@VERSION]; all by default")
    parser.add_argument("--json", type=Path, help="write every cell here")
    parser.add_argument("--docs", type=Path, help="put the table between this page's marks")
    options = parser.parse_args()
    rows: dict[str, tuple[str, list[Cell]]] = {}
    skipped: dict[str, str] = {}
    for name in options.clients or libraries():
        try:
            library = wanted(name)
            lacks = missing(library)
            if lacks:
                skipped[name] = lacks
                continue
            rows[library.library.title] = row_of(library)
        except FencepostError as error:
            skipped[name] = str(error)
    page = page_of(rows, skipped)
    print(page)
    if options.docs is not None:
        text = options.docs.read_text()
        before, _, rest = text.partition("<!-- table -->\n")
        _, _, after = rest.partition("<!-- end -->")
        options.docs.write_text(f"{before}<!-- table -->\n{page}<!-- end -->{after}")
    if options.json is not None:
        content = {
            name: {"version": version, "cells": {cell.ability: [cell.outcome, cell.why] for cell in cells}}
            for name, (version, cells) in rows.items()
        }
        options.json.write_text(json.dumps({"clients": content, "skipped": skipped}, indent=1))
    sys.exit(1 if any(cell.outcome == "failed" for _, cells in rows.values() for cell in cells) else 0)


if __name__ == "__main__":
    main()

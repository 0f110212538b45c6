"""TLC's answers, as the tables in answers/ record them.

Owns the reading of these tables. Must not know mutants, nor import a model's rules.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from fencepost.model.tla.variants import Row, dropped, of_controller, of_group, of_replication

PAGES = {
    "group": (of_group, "group.md"),
    "controller": (of_controller, "controller.md"),
    "replication": (of_replication, "replication.md"),
}
"""By model: its variants, and the page with its table."""
SIZES = ("small", "medium")


@frozen(kw_only=True)
class Answer:
    """What TLC found for some constants. -1: not counted, or no counterexample."""

    row: Row
    result: str
    steps: int
    distinct: int
    depth: int

    @property
    def compared(self) -> tuple[object, ...]:
        """As `Seen.compared` of the comparison."""
        return self.result, self.steps, self.distinct, self.depth


def answers(model: str, most_states: int) -> list[Answer]:
    """The answers for this model with at most so many states, smallest first. Raises ValueError if the tables
    have none of the variants."""
    variants, page = PAGES[model]
    recorded = list(_recorded(Path(__file__).parent / "answers" / page))
    found: dict[tuple[Any, ...], Answer] = {}
    for size in SIZES:
        for row in variants(size):
            for columns, cells in recorded:
                bounds = (_bound(column, getattr(row.constants, column)) for column in columns[:-1])
                name = (*bounds, dropped(row.constants))
                if name in cells:
                    found[name] = _answer(row, cells[name])
    kept = [one for one in found.values() if 0 <= one.distinct <= most_states]
    if not kept:
        raise ValueError(f"{page} has no answer of TLC with at most {most_states} states")
    return sorted(kept, key=lambda one: one.distinct)


def _bound(name: str, value: int) -> str:
    return f"0..{value}" if name == "epochs" else str(value)


def _answer(row: Row, told: dict[str, str]) -> Answer:
    def number(column: str, without: int) -> int:
        text = told[column].replace(",", "")
        return int(text) if text else without

    return Answer(
        row=row,
        result=told["result"],
        steps=number("steps", 0),
        distinct=number("distinct states", -1),
        depth=number("depth", -1),
    )


def _recorded(page: Path) -> Iterator[tuple[tuple[str, ...], dict[tuple[str, ...], dict[str, str]]]]:
    """Each table on which both sides agree: the columns of its bounds, and its rows by these."""
    headings: tuple[str, ...] = ()
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for line in [*page.read_text(encoding="utf-8").splitlines(), ""]:
        cells = tuple(cell.strip() for cell in line.split("|")[1:-1])
        if "dropped" in cells and "distinct states" in cells:
            headings, rows = cells, {}
        elif not cells and rows:
            bounds = headings[: headings.index("dropped") + 1]
            yield tuple(name.replace(" ", "_") for name in bounds), rows
            headings, rows = (), {}
        elif headings and len(cells) == len(headings) and cells[-1] == "yes":
            rows[cells[: headings.index("dropped") + 1]] = dict(zip(headings, cells, strict=True))

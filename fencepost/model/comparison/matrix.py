"""The matrix of variants for which the explorer and TLC are compared, as a table.

Owns the format of a row, and which rows a table already has. Must not know the variants, or how the
comparison is made.
"""

from pathlib import Path

from attrs import define, field

from fencepost.model.comparison.sameness import Comparison, Seen
from fencepost.model.registry import Model
from fencepost.model.tla.variants import Row, dropped
from fencepost.traces.errors import FencepostError

FOUND = ("dropped", "result", "invariant", "steps", "distinct states", "depth", "explorer s", "TLC s", "same")


def headings(model: Model) -> tuple[str, ...]:
    """The bounds that distinguish rows of this model, and the columns of results."""
    return (*(name.replace("_", " ") for name in model.columns), *FOUND)


@define
class Sheet:
    """The table so far."""

    headings: tuple[str, ...]
    # In the order of completion, one cell per heading.
    rows: list[tuple[str, ...]] = field(factory=list)

    @classmethod
    def read(cls, path: Path, headings: tuple[str, ...]) -> "Sheet":
        """Read the table in a file.

        Args:
            path: the file.
            headings: the expected headings.

        Returns:
            the table; empty if there is no such file.

        Raises:
            FencepostError: if the file has another table.
        """
        if not path.is_file():
            return cls(headings)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise FencepostError(expected="a table", seen=str(error), where=str(path)) from None
        cells = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines if line]
        if not cells or cells[0] != headings or any(len(row) != len(headings) for row in cells[2:]):
            raise FencepostError(
                expected=f"a table with the columns {', '.join(headings)}",
                seen="another text",
                where=str(path),
                hint="another file, or no --resume",
            )
        return cls(headings, list(cells[2:]))

    def has(self, model: Model, row: Row) -> bool:
        """Whether the table has this variant.

        Args:
            model: the model.
            row: the variant.

        Returns:
            whether it has.
        """
        name = (*_bounds(model, row), dropped(row.constants))
        return any(found[: len(name)] == name for found in self.rows)

    @property
    def same(self) -> bool:
        """Whether the explorer and TLC agreed on every row."""
        return all(found[-1] == "yes" for found in self.rows)

    @property
    def text(self) -> str:
        """As Markdown."""
        rows = (self.headings, ("---",) * len(self.headings), *self.rows)
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def words(model: Model, row: Row) -> str:
    """The variant in a few words.

    Args:
        model: the model.
        row: the variant.

    Returns:
        the text.
    """
    bounds = (
        f"{name.replace('_', ' ')} {cell}"
        for name, cell in zip(model.columns, _bounds(model, row), strict=True)
    )
    return f"{', '.join(bounds)}, {dropped(row.constants)}"


def cells(model: Model, row: Row, comparison: Comparison) -> tuple[str, ...]:
    """One row of the table. If the two sides differ, a cell has both values, the explorer's first.

    Args:
        model: the model.
        row: the variant.
        comparison: the result.

    Returns:
        one cell per heading.
    """

    def both(field: str) -> str:
        one, other = (_cell(getattr(seen, field)) for seen in (comparison.explorer, comparison.tlc))
        return one if one == other else f"{one} / {other}"

    return (
        *_bounds(model, row),
        dropped(row.constants),
        both("result"),
        both("invariant"),
        both("steps") if comparison.explorer.result == "violated" else "",
        both("distinct"),
        both("depth"),
        _seconds(comparison.explorer),
        _seconds(comparison.tlc),
        "yes" if comparison.same else "NO",
    )


def brief(model: Model, found: tuple[str, ...]) -> tuple[str, ...]:
    """A row for a terminal: the bounds that differ from the defaults in one cell, then the results.

    Args:
        model: the model.
        found: one cell per heading, from `cells`.

    Returns:
        the shorter row.
    """
    bounds_end = len(model.columns)
    named = zip(model.columns, found[:bounds_end], strict=True)
    bounds = [f"{name} {cell}" for name, cell in named if cell != _bound(name, model.bounds[name])]
    return (", ".join(bounds) or "as by default", *found[bounds_end:])


def _bounds(model: Model, row: Row) -> tuple[str, ...]:
    return tuple(_bound(name, getattr(row.constants, name)) for name in model.columns)


def _bound(name: str, value: int) -> str:
    """Epochs are counted from 0."""
    return f"0..{value}" if name == "epochs" else str(value)


def _cell(value: object) -> str:
    return (f"{value:,}" if value >= 0 else "") if isinstance(value, int) else str(value)


def _seconds(seen: Seen) -> str:
    return f"{seen.seconds:.1f}"

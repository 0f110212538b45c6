"""The matrix of variants that the explorer and TLC are compared on, as a table.

Owns: how a row reads. Must not know which variants there are, nor how the comparison is made.
"""

from fencepost.model.registry import Model
from fencepost.model.tla.sameness import Comparison, Seen
from fencepost.model.tla.variants import Row, dropped

FOUND = ("dropped", "result", "invariant", "steps", "distinct states", "depth", "explorer s", "TLC s", "same")


def headings(model: Model) -> tuple[str, ...]:
    """The bounds of this model that tell rows apart, and what was found."""
    return (*(name.replace("_", " ") for name in model.columns), *FOUND)


def words(model: Model, row: Row) -> str:
    """The variant in a few words."""
    bounds = (
        f"{name.replace('_', ' ')} {cell}"
        for name, cell in zip(model.columns, _bounds(model, row), strict=True)
    )
    return f"{', '.join(bounds)}, {dropped(row.constants)}"


def cells(model: Model, row: Row, comparison: Comparison) -> tuple[str, ...]:
    """One line of the table; where the two differ, both values, the explorer's first."""

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


def _bounds(model: Model, row: Row) -> tuple[str, ...]:
    """Epochs are counted from 0."""
    return tuple(
        f"0..{getattr(row.constants, name)}" if name == "epochs" else str(getattr(row.constants, name))
        for name in model.columns
    )


def _cell(value: object) -> str:
    return (f"{value:,}" if value >= 0 else "") if isinstance(value, int) else str(value)


def _seconds(seen: Seen) -> str:
    return f"{seen.seconds:.1f}"

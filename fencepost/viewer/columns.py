"""Rows as columns, texts by number, runs of values: what keeps a page's data small.

Owns: the encodings that page/data.js reads. Must not know what is encoded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from fencepost.report.spoken import shown

LARGEST_EXACT = 2**53 - 1
"""JavaScript's numbers are exact up to here (Number.MAX_SAFE_INTEGER); what is larger travels as a text."""


@define
class Texts:
    """Each text once; the rest of the data names it by its number."""

    known: dict[str, int] = field(factory=dict)
    # Gives the words in which a page says a text, such as names for numbers.
    said: Callable[[str], str] = str

    def number(self, text: str) -> int:
        """The number of a text."""
        return self.known.setdefault(self.said(text), len(self.known))

    @property
    def all(self) -> list[str]:
        """All texts in the order of their numbers."""
        return list(self.known)


def exact(value: int) -> int | str:
    """An integer that JavaScript reads without loss."""
    return value if -LARGEST_EXACT <= value <= LARGEST_EXACT else str(value)


def values_as_run(values: Sequence[int]) -> Any:
    """[first, count] for first, first + 1, ..., as a client's values mostly are; otherwise [[value, ...]]."""
    first = values[0] if values else 0
    consecutive = all(value == first + index for index, value in enumerate(values))
    if consecutive and exact(first) == first and exact(first + len(values)) == first + len(values):
        return [first, len(values)]
    return [[exact(value) for value in values]]


def columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Rows as one list per column.

    Parameters: names: of the columns. rows: as many cells each.
    """
    found: dict[str, list[Any]] = {name: [] for name in names}
    lists = list(found.values())
    for row in rows:
        assert len(row) == len(lists), f"a row of {len(row)} cells for {len(lists)} columns"
        for cells, cell in zip(lists, row, strict=True):
            cells.append(cell)
    return found


def visible(value: Any) -> Any:
    """The same lists and objects, with escapes for invisible characters in every text and field name: JSON
    cannot hold a lone surrogate, and a name that changes the direction of writing is unreadable."""
    if isinstance(value, str):
        return value if value.isprintable() else shown(value)
    if isinstance(value, Mapping):
        return {visible(key): visible(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [one if isinstance(one, int) else visible(one) for one in value]
    return value

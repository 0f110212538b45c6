"""Tables that fit: a command's rows in 60 columns, in 80, or in the number that COLUMNS gives.

Owns the layout. If all columns fit, none is narrower than its longest word. Otherwise each row becomes a
paragraph with one line per cell. Must not know the content.
"""

from textwrap import wrap
from typing import Any

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fencepost.report.spoken import shown

GAP = 2
"""Blanks between two columns."""
SHORT = 24
"""A column of at most this width is not broken to give a longer one more space: "6 of 23" stays on one
line."""


def table(*columns: str, title: str | None = None) -> Table:
    """A plain table.

    Args:
        columns: the headings; a column with a heading that starts with > is aligned to the right.
        title: the title of the table.

    Returns:
        the table, without rows.
    """
    made = Table(
        title=title,
        show_header=any(columns),
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
    )
    for column in columns:
        made.add_column(
            Text(column.lstrip(">")), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    return made


def add_row(to: Table, *cells: object, style: str = "") -> None:
    """Add a row of plain cells. Markup in them is not interpreted, and unprintable characters are escaped.

    Args:
        to: the table.
        cells: the cells; they are converted into text.
        style: the style of the row.
    """
    to.add_row(
        *(cell if isinstance(cell, Text) else Text(lines_shown(str(cell))) for cell in cells), style=style
    )


def lines_shown(text: str) -> str:
    """Text of one or several lines with unprintable characters escaped: a name in a trace may contain
    characters that change the direction of writing, or move the cursor."""
    return text if text.isprintable() else "\n".join(map(shown, text.split("\n")))


def fitted(wide: Table, console: Console) -> RenderableType:
    """The table `wide` in the width of `console`, or its rows as paragraphs if the columns do not fit."""
    sizes = [_measured(console, column) for column in _cells(wide)]
    room = console.width - GAP * (len(sizes) - 1)
    if sum(size.maximum for size in sizes) <= room:
        return wide
    if sum(size.minimum for size in sizes) > room:
        return _paragraphs(wide, console.width)
    widths = [size.maximum if size.maximum <= SHORT else size.minimum for size in sizes]
    if sum(widths) > room:
        widths = [size.minimum for size in sizes]
    for _ in range(room - sum(widths)):  # what is left goes where it is needed most
        lacks = [size.maximum - width for size, width in zip(sizes, widths, strict=True)]
        widths[lacks.index(max(lacks))] += 1
    for column, width in zip(wide.columns, widths, strict=True):
        column.width = width
    return wide


def _cells(wide: Table) -> list[list[Text]]:
    """The texts of each column, its heading first."""
    return [[_text(column.header), *map(_text, column.cells)] for column in wide.columns]


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


def _measured(console: Console, cells: list[Text]) -> Measurement:
    measured = [Measurement.get(console, console.options.update_width(10_000), cell) for cell in cells]
    return Measurement(max(one.minimum for one in measured), max(one.maximum for one in measured))


def _paragraphs(wide: Table, width: int) -> Text:
    """Each row: its first cell, then a line or more for each other one. No word is broken: a path is
    copied."""
    headings, *rows = zip(*_cells(wide), strict=True)
    lines = [Text(str(wide.title), style="bold")] if wide.title else []
    for row, kept in zip(rows, wide.rows, strict=True):
        said = [row[0].plain]
        for heading, cell in zip(headings[1:], row[1:], strict=True):
            if cell.plain:
                words = f"{heading.plain}: {cell.plain}" if heading.plain else cell.plain
                said += wrap(words, width, initial_indent="  ", subsequent_indent="    ", **_WHOLE)
        lines.append(Text("\n".join(said), style=str(kept.style or "")))
    return Text("\n").join(lines)


_WHOLE: Any = {"break_long_words": False, "break_on_hyphens": False}

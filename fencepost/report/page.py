"""A page of results: headings, tables, bars and pictures in one HTML file that needs no network and runs no script.

Owns what a page is made of and how it looks (templates/page.html.j2). Must not know what is told, nor where it came from. All text is escaped.
"""

from attrs import frozen
from markupsafe import Markup

from fencepost.report.templating import render


@frozen(kw_only=True)
class Table:
    """columns: headings; the first is of words, the others of numbers. rows: as many cells. share: of each row, 0 to
    1, drawn as a bar (empty: no bars). shades: of each cell, 0 to 1 (empty: none). links: of each row, the anchor of an
    example ("" for none)."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    share: tuple[float, ...] = ()
    shades: tuple[tuple[float, ...], ...] = ()
    links: tuple[str, ...] = ()


@frozen(kw_only=True)
class Example:
    """One finding told at length. facts: (name, words); proof: a line per convicting operation or event; pictures: SVG
    elements of report/, which are escaped already. anchor: what a table's row links to; watch: a page of the viewer, by
    its name in the same folder ("" for none)."""

    heading: str
    facts: tuple[tuple[str, str], ...]
    proof: tuple[str, ...]
    pictures: tuple[str, ...] = ()
    anchor: str = ""
    watch: str = ""


@frozen(kw_only=True)
class Page:
    """Everything on it, in order. lead: what it comes to, in a sentence; good: whether that is good news."""

    title: str
    lead: str
    good: bool
    tables: tuple[Table, ...] = ()
    examples: tuple[Example, ...] = ()

    def html(self) -> str:
        """The file."""
        pictures = [[Markup(svg) for svg in example.pictures] for example in self.examples]
        return render("page.html", page=self, pictures=pictures)

"""A page of results: headings, tables and figures in one HTML file that needs no network.

Owns what a page is made of and how it looks (templates/page.html.j2). Must not know what is on it, nor where
it came from. All text is escaped. Figures are drawn by Plotly's script, which is put into the page; the
content-security policy names it and the few lines that call it by their hashes, and nothing else may run.
"""

from attrs import frozen
from markupsafe import Markup

from fencepost.report.figure import WITHOUT_LIBRARY, Figure, library
from fencepost.report.templating import data_as_text, hash_of, render

DRAW = """for (const place of document.querySelectorAll("[data-figure]")) {
  const { data, layout } = JSON.parse(place.nextElementSibling.textContent);
  place.textContent = "";
  Plotly.newPlot(place, data, layout, { responsive: true, displaylogo: false });
}
document.documentElement.dataset.ready = "true";
"""
"""Each figure's data are in the element that follows its place."""


@frozen(kw_only=True)
class Table:
    """columns: headings; the first is of words, the others of numbers. rows: as many cells. share: of each
    row, 0 to 1, drawn as a bar (empty: no bars). shades: of each cell, 0 to 1 (empty: none). links: of each
    row, the anchor of an example ("" for none)."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    share: tuple[float, ...] = ()
    shades: tuple[tuple[float, ...], ...] = ()
    links: tuple[str, ...] = ()


@frozen(kw_only=True)
class Example:
    """One finding at length."""

    heading: str
    # (name, words)
    facts: tuple[tuple[str, str], ...]
    # a line for each convicting operation or event
    proof: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    # what a table's row links to
    anchor: str = ""
    # a page of the viewer, by its name in the same folder; "" for none
    watch: str = ""


@frozen(kw_only=True)
class Page:
    """Everything on it, in order. lead: the result in a sentence; good: whether that is good news."""

    title: str
    lead: str
    good: bool
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    examples: tuple[Example, ...] = ()
    # what kind of examples these are
    examples_heading: str = "The smallest example of each anomaly"

    def html(self) -> str:
        """The file."""
        wanted = bool(self.figures) or any(example.figures for example in self.examples)
        scripts = (library(), DRAW) if wanted and library() else ()
        policy = " ".join(f"'{hash_of(script)}'" for script in scripts) or "'none'"
        return render(
            "page.html",
            page=self,
            policy=Markup(policy),
            scripts=[Markup(script) for script in scripts],
            missing=WITHOUT_LIBRARY if wanted and not scripts else "",
            data_of=lambda figure: Markup(data_as_text(figure.as_json())),
        )

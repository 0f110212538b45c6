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
    """A table of a page."""

    heading: str
    # Column headings.
    columns: tuple[str, ...]
    # As many cells as columns in each.
    rows: tuple[tuple[str, ...], ...]
    # A sentence below the heading.
    note: str = ""
    # A share from 0 to 1 for each row, drawn as a bar; (): no bars.
    share: tuple[float, ...] = ()
    # A shade from 0 to 1 for each cell; (): none.
    shades: tuple[tuple[float, ...], ...] = ()
    # The anchor of an example for each row, "" for none.
    links: tuple[str, ...] = ()

    @property
    def wordy(self) -> tuple[bool, ...]:
        """Whether each column has words in it, and not numbers alone."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        return tuple(any(char.isalpha() for cell in column for char in cell) for column in columns)


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
    """Everything on a page, in order."""

    title: str
    # The result in a sentence.
    lead: str
    # Whether the result is good news.
    good: bool
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    examples: tuple[Example, ...] = ()
    # Which kind of examples these are.
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

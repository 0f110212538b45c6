"""Figures on a page: what Plotly draws, as plain data, and its script out of the installed package.

Owns where the library's script comes from, the look that all figures share, and that no text of a trace
becomes markup. Must not know what is drawn, or where a figure is on a page.

Plotly understands a few tags in texts, so every text passes through `text_of`.
"""

from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from fencepost.report.event_words import printable

WITHOUT_LIBRARY = "The figures are left out: they are drawn by Plotly (pip install plotly)."
GREY = "rgba(128, 128, 128, 0.35)"
TEXT: Final = {"family": "system-ui, sans-serif", "size": 12}
LONGEST_TEXT = 300
"""Letters of a text that is shown when a mark is pointed at: more would hide the figure."""

Values = dict[str, Any]


@frozen(kw_only=True)
class Figure:
    """A drawing, before it is one."""

    # what it shows, in a sentence; read out where it cannot be seen
    title: str
    # Plotly's traces: JSON values only, every text made by `text_of`
    data: tuple[Values, ...]
    # Plotly's layout
    layout: Values

    def as_json(self) -> Values:
        """What the page's script hands to Plotly."""
        return {"data": self.data, "layout": self.layout}


def text_of(text: str) -> str:
    """A text of a trace as Plotly may show it: bounded, printable, and never a tag."""
    return escape(printable(text, LONGEST_TEXT), quote=False)


@cache
def library() -> str:
    """Plotly's script as its package brings it; "" where the package is not installed."""
    found = find_spec("plotly")
    for folder in (found.submodule_search_locations if found else None) or ():
        script = Path(folder) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script.read_text(encoding="utf-8")
    return ""


def axis(title: str = "", **more: Any) -> Values:
    """An axis that is readable on light and on dark.

    Args:
        title: of the axis.
        more: further values, as Plotly takes them.
    """
    return {
        "title": {"text": title, "standoff": 6},
        "gridcolor": GREY,
        "zerolinecolor": GREY,
        "linecolor": GREY,
        "automargin": True,
        **more,
    }


def layout(height: int, **more: Any) -> Values:
    """What all figures share. height: in pixels; the width is the page's."""
    return {
        "height": height,
        "margin": {"l": 60, "r": 40, "t": 24, "b": 40},
        "modebar": {"orientation": "v"},  # in the margin: above the figure it would cover the legend
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "font": TEXT,
        "hoverlabel": {"align": "left"},
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        **more,
    }

"""What a page shows of text that came from elsewhere."""

import pytest

from fencepost.report.event_words import printable
from fencepost.report.report_page import Page, Table

NAMES = ("stop\x00", "crash\u202etxt.exe", "<script>", "\x1b[31m", "\ud800")


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_reach_the_page_escaped(name: str) -> None:
    """Rule: NUL, signs that turn the direction of writing, escapes of a terminal and half surrogates
    never stand in a page as they are."""
    faults = Table(heading=name, columns=("fault", "traces"), rows=((name, "3"),), note=name)
    html = Page(title="Mined", lead=name, good=True, tables=(faults,)).html()
    assert name not in html and not set("\x00\u202e\x1b\ud800") & set(html)
    assert html.count(printable(name).replace("<", "&lt;").replace(">", "&gt;")) >= 4
    html.encode()

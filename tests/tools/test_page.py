"""tools/page: a measured table is written between its two marks, and nowhere else."""

import re
from pathlib import Path

import pytest

from fencepost.traces.errors import FencepostError
from tools.page import END, Place

MARK = "<!-- measured -->"


def place(tmp_path: Path, text: str) -> Place:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return Place(page=page, mark=MARK)


def test_only_what_is_between_the_marks_is_written(tmp_path: Path) -> None:
    """Rule: twice is the same as once; a later pair of marks stays."""
    rest = f"\nafter\n<!-- other -->\nkept\n{END}\n"
    where = place(tmp_path, f"before\n{MARK}\nold\n{END}{rest}")
    for _ in range(2):
        where.write("new\n")
        assert where.page.read_text(encoding="utf-8") == f"before\n{MARK}\nnew\n{END}{rest}"
        assert where.read() == "new\n"


def test_a_table_says_where_and_when_it_was_measured(tmp_path: Path) -> None:
    """Rule: the date, the commit and the computer stand after the table once, and are no part of what is
    read."""
    where = place(tmp_path, f"{MARK}\n{END}\n")
    for _ in range(2):
        where.write_table(["| a |", "|---|", "| 1 |"])
        text = where.page.read_text(encoding="utf-8")
        said = r"\nLast measured on \d{4}-\d\d-\d\d at [\w-]+; \d+ processors, \w+, Python 3\.\d+\.\d+\.\n"
        assert len(re.findall(said, text)) == 1
        assert where.read() == "\n| a |\n|---|\n| 1 |\n"


@pytest.mark.parametrize("text", ["no marks\n", f"{MARK}\nno end\n", f"{END}\n{MARK}\n"])
def test_a_page_without_marks_is_refused(tmp_path: Path, text: str) -> None:
    """Rule: one sentence with the mark and the page; the page stays as it was."""
    where = place(tmp_path, text)
    for work in (where.read, lambda: where.write("new\n")):
        with pytest.raises(FencepostError, match=r"page\.md: expected <!-- measured --> and <!-- end --> "):
            work()
    assert where.page.read_text(encoding="utf-8") == text

"""Pages are as long as a reader has time: a task, an explanation, a cell of a table."""

import re
from pathlib import Path

import pytest

from fencepost import __version__

DOCS = Path(__file__).parents[2] / "docs"
MOST = {"how-to": 700, "explanation": 1000}
"""Words of a page, without what is typed and printed."""
IN_ALL = 70_000
"""Words of all pages together: who adds one shortens another."""
CHANGES = 80
"""Lines of a version, and of what is not released yet."""


def words(text: str) -> int:
    """The words of a page, without blocks of code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return sum(len(line.split()) for line in text.splitlines() if not line.startswith("    "))


PAGES = [page for folder in MOST for page in sorted((DOCS / folder).glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_no_longer_than_its_kind(page: Path) -> None:
    """Rule: a task has at most 700 words, an explanation 1,000."""
    assert words(page.read_text(encoding="utf-8")) <= MOST[page.parent.name]


def test_all_pages_together_can_be_kept_true() -> None:
    """Rule: README, the changes, how to contribute, and every page have at most so many words together."""
    top = (DOCS.parent / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"))
    assert sum(words(page.read_text(encoding="utf-8")) for page in (*top, *DOCS.rglob("*.md"))) <= IN_ALL


def test_what_is_typed_is_no_word() -> None:
    """Rule: neither fenced nor indented lines count."""
    assert words("one two\n\n```sh\nthree four\n```\n    five\nsix\n") == 3


def test_the_changes_can_be_read_at_once() -> None:
    """Rule: one line for each change that a user feels, and this version has its part."""
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *versions = text.split("\n## [")
    assert [one.split("]")[0] for one in versions[:2]] == ["Unreleased", __version__]
    assert all(len(one.strip().splitlines()) <= CHANGES for one in versions)

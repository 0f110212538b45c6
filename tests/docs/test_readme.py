"""README is what a stranger reads first: it begins with what to type, it is read in a few minutes, and what
it says was found has a page."""

import re
import tomllib

import pytest

from tests.docs.commands import TOP, commands_of

README = TOP / "README.md"
TEXT = README.read_text()
FINDINGS = (TOP / "docs" / "findings" / "README.md").read_text()
SHOWN = (TOP / "docs" / "results" / "clients.md").read_text()
INSTALL = (TOP / "docs" / "how-to" / "install.md").read_text()
MOST_LINES = 100
MOST_CELL = 200
"""Characters of a cell: a longer one is no table."""


def test_it_begins_with_the_two_commands() -> None:
    """Rule: `make demo`, then `make test`, before anything else that can be typed, with what they need."""
    first, second = commands_of(README)[:2]
    assert (first.words, second.words) == (("make", "demo"), ("make", "test"))
    before = "\n".join(TEXT.split("\n")[: second.line + 3])
    assert "Python 3.11 to 3.13, Java 17 or later, and make" in before


def test_it_is_short() -> None:
    """Rule: at most 100 lines, and no cell of a table that hides a paragraph."""
    assert TEXT.count("\n") <= MOST_LINES
    for line in TEXT.split("\n"):
        if line.startswith("|"):
            assert max(map(len, line.split("|"))) <= MOST_CELL, line


def test_every_finding_is_a_page_about_that_version() -> None:
    """Rule: what README says was found has a page about that version, which a list of findings names."""
    rows = re.findall(r"^\| (.+?) \| .*?\]\(docs/findings/([\w-]+\.md)\)", TEXT, re.M)
    assert len(rows) >= 6
    for library, page in rows:
        assert (TOP / "docs" / "findings" / page).read_text().startswith(f"# {library}: "), page
        assert page in FINDINGS or page in SHOWN, page


def test_every_extra_has_its_row() -> None:
    """Rule: the table of extras is that of pyproject.toml."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| `(\w+)` \|", INSTALL, re.M)
    assert set(rows) == set(project) - {"all", "dev", "docs"}


def test_its_figures_are_those_of_the_track_record() -> None:
    """Rule: how many planted bugs are found and by how many seeds is what the measured table says, with those
    that are missed."""
    table = (TOP / "docs" / "results" / "track-record.md").read_text().split("## By the swarm")[1]
    lines = [line for line in table.split("\n## ")[0].split("\n") if line.startswith("| ")][1:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    first = sorted(int(row[1]) if row[1].isdigit() else 500 for row in rows)
    for words in (
        f"[{sum(row[1].isdigit() for row in rows)} of {len(rows)} in the cluster]",
        f"half of all within {first[len(first) // 2]} seeds",
        "It misses " + ", ".join(row[0] for row in rows if not row[1].isdigit()),
    ):
        assert words in TEXT, words


@pytest.mark.parametrize("word", ["read only traces", "reads only traces"])
def test_it_claims_no_more_than_is_so(word: str) -> None:
    """Rule: judges are given more than traces (plans and claims), so README does not say otherwise."""
    assert word not in TEXT

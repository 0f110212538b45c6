"""The specification is in the repository: every tag that code, tests or documents use has its place in
docs/spec."""

import re
from pathlib import Path

import pytest

from fencepost.bugs import BUGS
from fencepost.bugs.storage import LOG_BUGS
from fencepost.traces.protections import PROTECTIONS

TOP = Path(__file__).parents[2]
SPEC = TOP / "docs" / "spec"
CLUSTER, LIST_OF_BUGS = ((SPEC / f"{name}.md").read_text() for name in ("cluster", "bugs"))
TAG = re.compile(r"\b(?:C|R|P|L|S)(?:[1-9]|1[0-9])\b(?![.)]\w|-)")
"""A rule of cluster.md as it is named elsewhere. Z has no number."""
RULES = re.compile(r"Rules? \(([^)]*)\)")
FOLDERS = ("fencepost", "drivers", "tests", "docs", "bench", "tools")


def _unknown(text: str, known: set[str]) -> list[str]:
    """Tags of a text that the specification lacks."""
    return sorted(set(TAG.findall(text)) - known)


def _known() -> set[str]:
    return set(re.findall(r"^###? (\w+):", CLUSTER, re.MULTILINE))


def test_every_tag_resolves() -> None:
    """Whoever reads `Rule (C12)` finds C12 as a heading of docs/spec/cluster.md."""
    known = _known()
    used: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for path in [*(TOP / folder).rglob("*.py"), *(TOP / folder).rglob("*.md")]:
            if path == Path(__file__):
                continue
            text = path.read_text()
            # A test names its rules in brackets; other texts name them anywhere.
            words = " ".join(RULES.findall(text)) if folder in ("tests", "bench", "tools") else text
            if unknown := _unknown(words, known):
                used[str(path.relative_to(TOP))] = unknown
    assert not used


@pytest.mark.parametrize("text", ["Rule (C16): nothing has this number", "see R11", "P6 is no rule"])
def test_a_tag_without_a_place_is_seen(text: str) -> None:
    """The test above can fail: these tags do not exist."""
    assert _unknown(text, _known())


def test_every_rule_is_used_by_a_test() -> None:
    """No rule is only words: a test names it. Z is a table without a number; S3 is explained
    (docs/explanation/scale.md)."""
    named = set()
    for path in (TOP / "tests").rglob("*.py"):
        named |= set(TAG.findall(path.read_text()))
    assert _known() - named <= {"S3", "Z"}


@pytest.mark.parametrize("bug", sorted({protection.bug for protection in PROTECTIONS} - {*BUGS, *LOG_BUGS}))
def test_every_bug_that_is_not_planted_is_said(bug: str) -> None:
    """`campaign bugs list` has what is planted; of any other protection that the code names the page says why
    no bug takes it away."""
    assert re.search(rf"\b{re.escape(bug)}\b", LIST_OF_BUGS)


def test_the_site_has_every_page() -> None:
    """Each page of docs/ is in the navigation of the site, once, and nothing else is."""
    navigation = (TOP / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    pages = re.findall(r"[\w/-]+\.md", navigation)
    docs = TOP / "docs"
    written = {str(path.relative_to(docs)) for path in docs.rglob("*.md") if "examples" not in path.parts}
    assert sorted(pages) == sorted(written)

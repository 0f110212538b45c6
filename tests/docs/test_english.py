"""Pages and help are written in plain English: words that readers stumbled over, and what is said instead."""

import re

import pytest

from fencepost.cli import group
from tests.command_tree import walk
from tests.docs.commands import DOCUMENTS, TOP

WORDS = {
    "nobody": "no client, no reader, none",
    "somebody": "a client, an operator, another process",
    "told": "reported, recorded, distinguished",
    "stands in": "is in",
    "is no find of": "was not found by",
    "that were hit": "that failed",
    "asked of": "checked, sent to",
    "was asked about": "was checked for",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
}
"""What is not written, and what is (rules 13 and 22 of the style guide)."""
UNWANTED = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)
EXCEPTIONS = {"docs/how-to/machines.md": {"mend"}}
"""By page: words that belong there, as in a quotation."""


def found(text: str) -> list[str]:
    """The words of a text that are on the list."""
    return [word.lower() for word in UNWANTED.findall(text)]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(TOP)))
def test_a_page_uses_the_usual_words(page) -> None:
    """Rule: none of these words is on a page, but for those that are named."""
    name = str(page.relative_to(TOP))
    assert set(found(page.read_text(encoding="utf-8"))) == EXCEPTIONS.get(name, set())


def test_help_uses_the_usual_words() -> None:
    """Rule: the same holds for the help of each command and option."""
    texts = {
        " ".join(words): " ".join(
            [command.help or "", *(getattr(one, "help", None) or "" for one in command.params)]
        )
        for words, command in walk(group)
    }
    assert len(texts) > 30
    assert {name: found(text) for name, text in texts.items() if found(text)} == {}


def test_the_list_is_looked_for() -> None:
    """Rule: a word of the list is found in any case, and not as a part of another."""
    assert found("Nobody told us; an untold story that stands in the way") == ["nobody", "told", "stands in"]

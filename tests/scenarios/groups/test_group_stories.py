"""Golden transcripts of consumer groups, compared word by word; and what the judges find in them, with its
cause.

`pytest tests/scenarios --rewrite-scenarios` writes them anew; the change is then read like any other.
"""

from pathlib import Path

import pytest
from group_stories import STORIES

from fencepost.checkers.groups import group_facts
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision

HERE = Path(__file__).parent
FACTS = {"repeated_consumption": ("reprocessed", "crash"), "gap": ("gap", "commit_before_processing")}


@pytest.mark.parametrize("name", STORIES)
def test_the_story_goes_as_it_is_written(name: str, request: pytest.FixtureRequest) -> None:
    """Rule (P3 to P5): rows and events of each story are those of its transcript; no judge finds anything;
    the fact that it is about has its cause."""
    path, told = HERE / f"{name}.txt", STORIES[name]()
    if request.config.getoption("--rewrite-scenarios", default=False):
        path.write_text(told.transcript())
    assert told.transcript() == path.read_text(), (
        "read the difference; then pytest tests/scenarios --rewrite-scenarios"
    )
    assert {verdict.decision for verdict in judge(told.trace)} == {Decision.OK}
    facts = {(fact.kind, fact.cause) for fact in group_facts(told.trace)}
    assert facts >= ({FACTS[name]} if name in FACTS else set())


def test_every_transcript_has_its_story() -> None:
    """Rule: no transcript is left over from a story that nobody tells any more."""
    assert {path.stem for path in HERE.glob("*.txt")} == set(STORIES)


def test_the_documentation_quotes_the_transcripts() -> None:
    """Rule: what docs/explanation/groups.md shows of the stories stands in their transcripts, word by
    word."""
    page = (HERE.parents[2] / "docs" / "explanation" / "groups.md").read_text()
    known = {line.strip() for path in HERE.glob("*.txt") for line in path.read_text().splitlines()}
    quoted = [line.strip() for line in page.splitlines() if line.startswith("    ")]
    told = [line for line in quoted if " s  " in line or line.startswith("fact:")]
    assert len(told) > 15 and set(told) <= known, set(told) - known

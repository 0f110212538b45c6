"""Golden transcripts: what the brokers do in the stories of the control plane and of replication, readable,
and compared word by word.

`pytest tests/scenarios --rewrite-scenarios` writes them anew; the change is then read like any other.
"""

from pathlib import Path

import pytest
from stories import STORIES

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", STORIES)
def test_the_story_goes_as_it_is_written(name: str, request: pytest.FixtureRequest) -> None:
    """Rule (docs/spec/cluster.md Z, C, R): events and znodes of each story, in their order, are those of its
    transcript."""
    path, told = HERE / f"{name}.txt", STORIES[name]().transcript()
    if request.config.getoption("--rewrite-scenarios", default=False):
        path.write_text(told)
    assert told == path.read_text(), f"read the difference; then pytest {HERE.name} --rewrite-scenarios"


def test_every_transcript_has_its_story() -> None:
    """Rule: no transcript is left over from a story that nobody tells any more."""
    assert {path.stem for path in HERE.glob("*.txt")} == set(STORIES)


def test_no_story_meets_an_illegal_transition() -> None:
    """Rule (C7): the state machines refuse nothing in any of them."""
    assert not [path.name for path in HERE.glob("*.txt") if "illegal transition" in path.read_text()]

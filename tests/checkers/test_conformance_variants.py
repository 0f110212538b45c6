"""Conformance on stored stories bent in one place: what it says of each stays what it said
(conformance_variants.py)."""

import msgspec
import pytest

from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision
from fencepost.model.refinement import roles
from tests.checkers.conformance_variants import SAID, VARIANTS, said, stories, variants

EXPECTED = msgspec.json.decode(SAID.read_bytes())
NUMBERS = [str(trace.trace_id) for trace in stories()]


def first_difference(number: str) -> tuple[int, str, str] | None:
    """(variant, said now, stored) where the two differ; None if nowhere."""
    story = stories()[NUMBERS.index(number)]
    for variant, (trace, stored) in enumerate(zip(variants(story), EXPECTED[number], strict=True)):
        now = said(trace)
        if now != stored:
            return variant, now, stored
    return None


def test_the_stories_are_explained_and_bent_ones_often_are_not() -> None:
    """Rule: every stored story conforms; of its variants between a third and nine tenths are findings, or the
    comparison means little."""
    assert all(conformance.judge(story).decision is Decision.OK for story in stories())
    everything = [told for row in EXPECTED.values() for told in row]
    assert len(everything) == VARIANTS * len(NUMBERS)
    convicted = sum(told != "ok" for told in everything)
    assert len(everything) // 3 < convicted < len(everything) * 9 // 10


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_said_of_a_bent_story_stays(number: str) -> None:
    """Rule: the same event is convicted, by the same guard, with the same numbers and the same earlier
    event."""
    assert first_difference(number) is None


def test_a_planted_fault_changes_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a map that takes any leader for the named one differs on some variant."""
    monkeypatch.setattr(roles, "_takes_role", lambda *_: None)
    assert any(first_difference(number) for number in NUMBERS)

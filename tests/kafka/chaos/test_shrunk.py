"""A chaos is made short: what a failure does not need is left out."""

import pytest

from fencepost.kafka.chaos.reached import repeating_line, shrunk_words
from fencepost.kafka.chaos.shrunk import shortest

NAMES = ("kill, idle", "lose, a commit", "fence, idle")


@pytest.mark.parametrize("needed", [(), NAMES[:1], NAMES[1:2], NAMES[::2], NAMES])
def test_only_what_the_failure_needs_is_left(needed: tuple[str, ...]) -> None:
    """Rule: whichever strikes a failure needs, these and no others remain."""
    assert shortest(NAMES, lambda only: set(needed) <= set(only), tries=1, seconds=60) == needed


def test_a_failure_that_comes_now_and_then_has_several_tries() -> None:
    """Rule: a strike is not kept because one run passed without it."""
    runs = []

    def fails(only: tuple[str, ...]) -> bool:
        runs.append(only)
        return len(runs) % 2 == 0

    assert shortest(NAMES, fails, tries=2, seconds=60) == () and len(runs) == 6
    assert shortest(NAMES, lambda only: True, tries=1, seconds=0) == NAMES


def test_the_words_name_what_is_left() -> None:
    """Rule: the strikes that remain are in the sentence and in the line; where none remains, no chaos is."""
    assert shrunk_words(NAMES, NAMES) == ""
    assert shrunk_words(NAMES, NAMES[:1]) == "it still fails with the strikes kill, idle (2 of 3 left out)"
    assert shrunk_words(NAMES, ()) == "it still fails with no strike at all (3 of 3 left out)"
    line = repeating_line("t.py::test_it", 0, 3, NAMES[2:])
    assert line.endswith("--fencepost-chaos 3 --fencepost-strike 'fence, idle'")
    assert repeating_line("t.py::test_it", 0, 3, ()) == "pytest t.py::test_it --fencepost-seed 0"
    assert repeating_line("t.py::test_it", 0, 3).endswith("--fencepost-chaos 3")

"""tools/robustness: a case that finds something fails, one that cannot run is skipped by name."""

from pathlib import Path

from tools import robustness
from tools.page import Place
from tools.program import FAILED, OK, SKIPPED, Done
from tools.robustness import CASES, MARK, BrokenError, LacksError, tried


def raising(error):
    """A case that ends so."""

    def case(folder):
        assert folder.is_dir()
        raise error

    return case


def test_what_a_case_finds_is_its_outcome():
    """Rule: found, lacking and fine are three outcomes, each with its reason."""
    assert tried("a", raising(BrokenError("half a file"))).outcome == FAILED
    assert tried("b", raising(LacksError("no java"))).outcome == SKIPPED
    assert (tried("c", lambda folder: "whole").outcome, tried("c", lambda folder: "whole").why) == (
        OK,
        "whole",
    )


def test_a_damaged_store_is_named_and_one_that_is_not_named_is_found(monkeypatch):
    """Rule: the case passes on what the command does today, and fails where no part is named."""
    monkeypatch.setattr(robustness, "SEEDS", 2)
    assert tried("cut", CASES["check of a cut part"]).outcome == OK
    case = robustness.damaged
    nothing = tried("none", lambda folder: case(folder, lambda store: None, ("check", "{store}")))
    assert (nothing.outcome, nothing.why) == (FAILED, "the damaged part is not named")


def test_the_page_has_room_for_the_table():
    """Rule: what `make measure NAME=robustness` writes has its place."""
    page = Path(robustness.__file__).parents[2] / "docs" / "results" / "robustness.md"
    assert Place(page=page, mark=MARK).read() is not None


def test_only_what_is_not_ok_is_marked():
    """Rule: a case that failed says so before what was seen."""
    rows = [Done(case="a", why="x"), Done(case="b", outcome=FAILED, why="y")]
    assert robustness.lines_of(rows)[-2:] == ["| a | x |", "| b | **failed**: y |"]

"""tools/real_record/doctor: what doctor says is the outcome; what was finished is not run again."""

from pathlib import Path

import pytest

from tools.ledger import Ledger
from tools.page import Place
from tools.program import FAILED, OK, Done
from tools.real_record.doctor import HELD, MARK, SCENARIOS, Tour, cases_of, lines_of, outcome


def said(findings=(), notes=()):
    """What --json prints."""
    names = {"findings": findings, "notes": notes}
    return {"questions": 7} | {kind: [{"name": one, "seen": "x"} for one in of] for kind, of in names.items()}


@pytest.mark.parametrize(
    ("scenario", "answer", "becomes"),
    [
        ("a producer killed in a transaction", said(notes=[HELD]), OK),
        ("a producer killed in a transaction", said(["hanging_transaction"], [HELD]), FAILED),
        ("a producer killed in a transaction", said(), FAILED),
        ("a broker cut from the controllers", said(["metadata_disagrees"]), OK),
        ("a broker cut from the controllers", said(["below_min_isr"], ["a broker is away"]), FAILED),
        ("load", said(notes=[HELD]), OK),
        ("load", said(["below_min_isr"]), FAILED),
    ],
)
def test_what_doctor_says_is_the_outcome(scenario, answer, becomes):
    """Rule: a scenario needs its name, a healthy cluster no finding."""
    assert outcome("case", SCENARIOS[scenario], answer).outcome == becomes


def test_what_was_finished_is_not_asked_again(tmp_path):
    """A row of the ledger is the answer; no cluster is started for it."""
    ledger = Ledger.open(tmp_path / "ledger.jsonl", Done, key=lambda done: done.case, of="doctor's scenarios")
    tour = Tour(tmp_path, ledger)
    cases = cases_of(tour, healthy=2)
    for case in cases:
        ledger.add(Done(case=case, why="before"))
    assert {make().why for make in cases.values()} == {"before"} and len(cases) == 2 * (6 + 2 * 2) + 2


def test_the_page_has_room_for_the_table():
    """Rule: the marks are there, so that the measure can write."""
    page = Path(__file__).parents[2] / "docs" / "results" / "doctor.md"
    assert Place(page=page, mark=MARK).read() is not None


def test_what_was_done_several_times_is_one_row():
    """Rule: with the number of times and each answer; another outcome is a row of its own."""
    made = [("load, 1", "ok", "a"), ("load, 2", "ok", "b"), ("load, 3", "failed", "c"), ("kfake", "ok", "d")]
    lines = lines_of(Done(case=case, outcome=outcome, why=why) for case, outcome, why in made)
    assert lines[2:] == ["| load, 2 times | a; b |", "| load | **failed**: c |", "| kfake | d |"]

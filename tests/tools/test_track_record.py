"""The table of docs/results/track-record.md: what is measured anew takes the place of its row, and of no
other."""

from pathlib import Path

import pytest
from attrs import evolve

from fencepost.campaign.hunting.swarm_hunt import Hunt
from fencepost.traces.errors import FencepostError
from tools.track_record import PLACE, command, rows_of, updated

HUNT = Hunt(
    bug="KIP-279",
    breaks="LOG-MATCH",
    says="this protection",
    seeds_tried=7,
    seeds_needed=7,
    ranges=(7, 9, None, 3, 5),
    anomaly="log_divergence",
)


def test_one_bug_is_measured_anew_by_itself() -> None:
    """Rule: a record of one bug changes one row of the page, and nothing else of it."""
    page = PLACE.read()
    changed = "\n".join(updated(page, [HUNT]))
    assert updated(page, []) == page.strip().splitlines()
    assert rows_of(changed) == rows_of(page) | {"KIP-279": "| KIP-279 | 7 (4/5) | log_divergence |"}
    assert [*rows_of(changed)] == [*rows_of(page)]


def test_an_empty_page_gets_the_rows_of_the_record() -> None:
    """Rule: rows stand in the order of the zoo; a hunt in one range has its number, one that found nothing in
    most of them says so."""
    few, none = evolve(HUNT, ranges=(7,)), evolve(HUNT, bug="KIP-101", ranges=(None,) * 5, seeds_needed=None)
    rows = rows_of("\n".join(updated("", [few, none])))
    assert [*rows][-2:] == ["KIP-101", "KIP-279"]
    assert "| 7 | log_divergence |" in rows["KIP-279"]
    assert "| not in most (0/5) |" in rows["KIP-101"]


def test_a_folder_without_a_record_is_refused(tmp_path: Path) -> None:
    """Rule: one sentence says what was expected there."""
    with pytest.raises(
        FencepostError, match="expected the record of `fencepost campaign bugs hunt`, saw none"
    ):
        command.main([str(tmp_path)], standalone_mode=False)

"""The table of situations counts runs, and names what no run reached."""

import pytest

from fencepost.campaign.workers.results import RunResult
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import FencepostError
from tools.situations import PLACE, command, lines_of


def test_the_rarest_come_first_and_what_was_not_reached_is_there() -> None:
    """Rule: each mark that the profile can reach has a row, also with no run."""
    runs = [
        RunResult(seed=1, decision=Decision.OK, marks=("common", "rare")),
        RunResult(seed=2, decision=Decision.ILLEGAL, marks=("common",)),
    ]
    lines = lines_of(runs, ("common", "never", "rare"))
    assert lines[0] == "2 healthy runs; 1 with a finding."
    assert lines[-3:] == ["| `never` | 0 |", "| `rare` | 1 |", "| `common` | 2 |"]


def test_the_page_has_room_for_the_table() -> None:
    """Rule: what `make measure NAME=situations` writes has its place."""
    assert PLACE.read() is not None


def test_a_folder_without_runs_is_refused(tmp_path) -> None:
    """Rule: no table of nothing."""
    with pytest.raises(FencepostError, match="saw none"):
        command.callback(tmp_path)

"""Measures are kept and go on; the page has the median, the range and what they were of."""

import json

import pytest

from tools import speed

COSTS = [{"wall_s": second, "cpu_s": second, "mib": 0.0, "more": {}} for second in (0.2, 0.1, 0.4)]
ROW = {"case": "a case", "per": 100_000, "unit": "event", "sides": {"judge": COSTS, "peer": COSTS[::-1]}}
KEPT = {
    "measure": "events",
    "date": "2026-01-01 10:00 UTC",
    "machine": "2 processors",
    "commit": "abc",
    "rows": [ROW],
}


def test_the_page_has_median_range_and_ratio():
    """Rule: a figure is the median with its range, and a ratio pairs the turns."""
    text = speed.page([KEPT])
    assert "| case | subject, µs a event | peer | times |" in text
    assert "| a case | judge 2 (1..4) | peer 2 (1..4) | 1 (0.5..2) |" in text
    assert "2026-01-01 10:00 UTC, abc, 2 processors." in text


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Where measures are kept, instead of out/."""
    monkeypatch.setattr(speed, "KEPT", tmp_path)
    return tmp_path


def test_what_was_measured_at_this_commit_is_not_measured_again(kept, monkeypatch):
    """Rule: a run goes on; at another commit it measures anew."""
    commit = iter(["abc", "other"])
    monkeypatch.setattr(speed, "_commit", lambda: next(commit))
    speed.file_of("events").write_text(json.dumps(KEPT))
    assert speed.measured("events", 0).why == "measured before, at this commit"
    assert speed.measured("events", 0).outcome == speed.SKIPPED


def test_what_takes_too_long_is_said_and_not_kept(kept):
    """Rule: a measure that was cut is no measure."""
    done = speed.measured("events", speed.time.monotonic() + 0.05)
    assert done.outcome == speed.SKIPPED
    assert not list(kept.glob("*.json"))

"""The log speaks of one source once a minute."""

from fencepost.wire.limits import EVERY_S, MOST_SOURCES, Complaints


def test_a_source_has_one_line_a_minute_with_a_count():
    """Rule: the first line comes at once, the next ones are counted, and the line a minute later says how
    many; another source has its own."""
    complaints = Complaints()
    assert complaints.line("a", 5.0) == ""
    assert [complaints.line("a", 5.0 + n / 1_000) for n in range(1_000)] == [None] * 1_000
    assert complaints.line("b", 6.0) == ""
    assert complaints.line("a", 5.0 + EVERY_S) == "; 1,000 more from a since its last line"
    assert complaints.line("a", 5.0 + 2 * EVERY_S) == ""


def test_sources_are_bounded():
    """Rule: as many hosts as there are cost no more memory; the one of longest ago is forgotten."""
    complaints = Complaints()
    for number in range(MOST_SOURCES + 1):
        assert complaints.line(str(number), 0.0) == ""
    assert complaints.line("0", 1.0) == "" and complaints.line(str(MOST_SOURCES), 1.0) is None

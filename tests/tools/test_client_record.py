"""The record of known bugs: its rows can be built, and its table is written between its marks only."""

from fencepost.torture.libraries import libraries
from fencepost.torture.promises import PROMISES
from tools.client_record import BEGIN, END, HEAD, ROWS, rows, table, updated

FOUND = {
    "library": "sarama@1.43.2",
    "known": "#2619",
    "anomaly": "lost_write",
    "seeds": 4,
    "findings": {
        "lost_write": {
            "first": 3,
            "rate": [8, 10],
            "small": {"faults": 2, "rate": [9, 10]},
            "mended": {"library": "sarama@1.61.1", "rate": [0, 5]},
        },
    },
}
NOTHING = {
    "library": "franz-go@1.22.2",
    "known": "newest release",
    "anomaly": "",
    "seeds": 200,
    "findings": {},
}
OTHER = {
    "library": "kafka-go@0.4.47",
    "known": "#1319",
    "anomaly": "skipped",
    "seeds": 500,
    "findings": {},
    "others": [7],
}


def test_every_row_names_a_library_that_has_a_driver():
    """And every library has a row of its newest release, after the known bugs."""
    table_ = libraries()
    assert {row.library for row in ROWS} <= set(table_)
    every = list(rows(()))
    assert {row.anomaly for row in ROWS} <= set(PROMISES)
    assert every[: len(ROWS)] == list(ROWS) and {row.library for row in every[len(ROWS) :]} == set(table_)
    assert {row.library for row in rows(("sarama",))} == {"sarama"}
    assert {row.affected for row in rows(("sarama@1.43.2",))} == {"1.43.2"}
    assert len({(row.name, row.known) for row in every}) == len(every)


def test_a_table_has_the_rate_the_size_and_what_the_mended_version_shows():
    """One line for each anomaly, and one for a library in which nothing was found."""
    lines = table([FOUND, OTHER, NOTHING])
    assert lines[2:] == [
        "| sarama@1.43.2 | #2619 | `lost_write` | 4 | 3 | 8 of 10 | 2 things, 9 of 10 | sarama@1.61.1: 0 of "
        "5 |",
        "| kafka-go@0.4.47 | #1319 | `skipped`: not found; in seeds 7 by another bug | 500 | | | | |",
        "| franz-go@1.22.2 | newest release | nothing | 200 | | | | |",
    ]


def test_only_what_is_between_the_marks_is_written():
    """Twice is the same as once."""
    page = f"before\n{BEGIN}old\n{END}after\n"
    once = updated(page, [NOTHING])
    assert once.startswith(f"before\n{BEGIN}\n{HEAD[0]}") and once.endswith(f"\n\n{END}after\n")
    assert updated(once, [NOTHING]) == once and "old" not in once

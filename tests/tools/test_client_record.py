"""The record of known bugs: its rows can be built, and its table is written between its marks only."""

from fencepost.torture.judging.promises import PROMISES
from fencepost.torture.libraries import libraries
from fencepost.torture.scenario import Scenario, Step
from tools.client_record import ROWS, SAME_OFFSET, Row, rows, table

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
        }
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
        "| sarama@1.43.2 | #2619 | `lost_write` | 4 | 3 | 8/10 | 2 things, 9/10 | sarama@1.61.1: 0/5 |",
        "| kafka-go@0.4.47 | #1319 | `skipped`: not found; seeds 7 did not repeat, or only as the "
        "fixed version | 500 | | | | |",
        "| franz-go@1.22.2 | newest release | nothing | 200 | | | | |",
    ]


def test_the_simplest_run_with_the_words_of_the_bug_is_tried_first():
    """Rule: another finding of the same anomaly is no candidate; of the others the one with the fewest faults
    comes first."""

    def line(seed, seen, steps):
        scenario = Scenario(seed=seed, steps=(Step(verb="rest", at_ms=1),) * steps)
        findings = [{"anomaly": "lost_write", "seen": seen}]
        return {"seed": seed, "findings": findings, "scenario": scenario.as_dict()}

    row = Row("kafkajs", "1.15.0", "2.2.4", "lost_write", "#1005", SAME_OFFSET)
    one = "3 of 9 missing, acknowledged at offsets"
    lines = [
        line(0, f"{one} 7 (3 times)", 2),
        line(1, f"{one} -1 (3 times)", 0),
        line(2, f"{one} -1 (1 times), 12 (2 times)", 1),
        line(3, f"{one} 4 (1 times), 5 (1 times)", 0),
    ]
    assert [each["seed"] for each in row.candidates(lines)] == [2, 0]
    assert not Row("kafkajs", "1.15.0", "2.2.4", "skipped", "#590").candidates(lines)

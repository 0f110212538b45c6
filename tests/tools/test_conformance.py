"""`tools.conformance`: the page counts by group, and names every case that is answered in another way."""

from fencepost.conformance.case import Case
from fencepost.conformance.record import Compared, Status
from fencepost.conformance.runner import Result
from tools.conformance import page_lines


def compared(name: str, status: Status, reason: str = "") -> Compared:
    return Compared(
        result=Result(case=Case(name=name, asked="", ask=lambda lab: None)), status=status, reason=reason
    )


def test_the_page_has_each_group_with_a_difference_and_its_cases() -> None:
    """Rule: groups that are equal throughout are one row; a case with another answer is named with why."""
    odd = {"fetch.a": "for a reason", "fetch.b": "for a reason"}
    lines = page_lines(
        [
            *(compared(name, Status.DEPARTS, why) for name, why in odd.items()),
            compared("fetch.c", Status.EQUAL),
            compared("static.a", Status.AS_ANOTHER, "3.9.2"),
            compared("produce.a", Status.EQUAL),
            compared("produce.b", Status.EQUAL),
        ],
        odd,
    )
    assert lines[0].startswith("3 of 6 cases, in 3 groups, are answered as Apache Kafka 4")
    assert lines[2:7] == [
        "| group | cases | equal | as another release | departs |",
        "|---|---:|---:|---:|---:|",
        "| `fetch` | 3 | 1 | 0 | 2 |",
        "| `static` | 1 | 0 | 1 | 0 |",
        "| the other 1 | 2 | 2 | 0 | 0 |",
    ]
    assert lines[8:] == ["- `fetch.a`, `fetch.b`: for a reason", "- `static.a`: as Apache Kafka 3.9.2"]

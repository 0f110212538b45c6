"""The table of clients: its rows are keyed by NAME@VERSION, so that one of them can be measured again."""

from pathlib import Path

from fencepost.torture.abilities.ability_table import ABILITIES, Cell
from fencepost.torture.libraries import wanted
from tools.clients import lines_of, page_of, rows_of

SARAMA, OLD, NEW = wanted("sarama@1.0.0"), wanted("kafka-clients@3.9.2"), wanted("kafka-clients@4.4.0")


def cells(outcome: str) -> list[Cell]:
    return [Cell(ability=one.name, outcome=outcome, why=f"{one.name}: saw 1") for one in ABILITIES]


def rows(outcome: str) -> dict[str, list[str]]:
    return {str(one): lines_of(one, cells(outcome)) for one in (SARAMA, OLD, NEW)}


def test_two_versions_of_a_library_are_two_rows():
    """A title is no key: both have the same."""
    page = page_of(rows("ok"))
    assert [line.split(":")[0] for line in page.splitlines()[2:]] == [
        f"| {one}" for one in (OLD, NEW, SARAMA)
    ]


def test_a_page_is_read_back_and_one_row_replaced():
    """What was not measured again stays, with its reasons; what was, leaves nothing of its old row."""
    old = rows("failed")
    again = rows_of(page_of(old))
    assert again == old
    page = page_of({**again, str(NEW): lines_of(NEW, cells("ok"))})
    assert page.count(f"| 0 | {ABILITIES[0].name}, ") == 2 and page.count(f"- {NEW}") == 0
    assert f"| {len(ABILITIES)} |  |  |" in page
    assert page.count(f"- {OLD}: acks=0: acks=0: saw 1") == 1


def test_a_library_that_is_skipped_has_a_line_and_no_row():
    """By name, with what is missing; a later run that has the toolchain replaces it."""
    page = page_of({str(SARAMA): lines_of(SARAMA, "no go on the path; install Go")})
    assert page.splitlines()[3:] == [f"- {SARAMA}: skipped: no go on the path; install Go"]
    assert rows_of(page) == {str(SARAMA): page.splitlines()[3:]}


def test_the_page_names_what_is_tried():
    """Rule: every ability, with the number of all of them."""
    page = Path("docs/reference/clients.md").read_text()
    assert f"{len(ABILITIES)} abilities" in page
    assert all(ability.name in page for ability in ABILITIES)

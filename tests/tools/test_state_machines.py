"""tools/state_machines: the page of the controller's state machines is drawn from the tables that the
controller obeys."""

from tools.page import drawn
from tools.state_machines import PAGE, TABLES, diagram


def test_the_page_is_what_the_tables_say() -> None:
    """Rule: the diagrams of docs/reference/state-machines.md are drawn, never edited: `python -m
    tools.state_machines` writes them anew."""
    assert PAGE.read_text(encoding="utf-8").count("```mermaid") == len(TABLES)
    for name, table in TABLES.items():
        assert drawn(PAGE, name).read() == diagram(table)


def test_a_picture_has_exactly_the_transitions_of_its_table() -> None:
    """Rule: nothing that is allowed is left out, nothing else is drawn."""
    for table in TABLES.values():
        drawn = {
            tuple(line.strip().split(" --> "))
            for line in diagram(table).splitlines()
            if "-->" in line and "[*]" not in line
        }
        assert drawn == {(str(before), str(after)) for before, behind in table.items() for after in behind}

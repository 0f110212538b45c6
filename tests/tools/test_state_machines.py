"""tools/state_machines: the page of the controller's state machines is drawn from the tables that the
controller obeys."""

from fencepost.impl.controller.machines import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS
from fencepost.impl.core.broker_states import BROKER_TRANSITIONS
from tools.state_machines import PAGE, diagram, page


def test_the_page_is_what_the_tables_say() -> None:
    """Rule: docs/reference/state-machines.md is drawn, never edited: `python -m tools.state_machines` writes
    it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_a_picture_has_exactly_the_transitions_of_its_table() -> None:
    """Rule: nothing that is allowed is left out, nothing else is drawn."""
    for table in (PARTITION_TRANSITIONS, REPLICA_TRANSITIONS, BROKER_TRANSITIONS):
        drawn = {
            tuple(line.strip().split(" --> "))
            for line in diagram(table).splitlines()
            if "-->" in line and "[*]" not in line
        }
        assert drawn == {(str(before), str(after)) for before, behind in table.items() for after in behind}

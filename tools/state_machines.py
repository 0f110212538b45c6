"""`python -m tools.state_machines`: draws the state machines of controller, broker and consumer groups from
their tables, between the marks of docs/reference/state-machines.md.

The tables are what they obey (fencepost/impl/controller/legal_transitions.py,
fencepost/impl/core/broker_states.py, fencepost/impl/coordinator/group_states.py): a transition that no table
allows is refused, recorded as a mark and counted.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import rich_click as click

from fencepost.impl.controller.legal_transitions import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS
from fencepost.impl.coordinator.group_states import GROUP_TRANSITIONS
from fencepost.impl.core.broker_states import BROKER_TRANSITIONS
from tools import program
from tools.ledger import TOP
from tools.page import drawn

PAGE = TOP / "docs" / "reference" / "state-machines.md"
TABLES: Mapping[str, Mapping[Any, frozenset[Any]]] = {
    "partitions": PARTITION_TRANSITIONS,
    "replicas": REPLICA_TRANSITIONS,
    "brokers": BROKER_TRANSITIONS,
    "groups": GROUP_TRANSITIONS,
}
"""By the name in the page's marks."""


def diagram(transitions: Mapping[StrEnum, frozenset[StrEnum]]) -> str:
    """A Mermaid state diagram. The first state of a table is where everything starts and ends."""
    first = next(iter(transitions))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    lines += [
        f"    {before} --> {after}"
        for before, behind in transitions.items()
        for after in transitions
        if after in behind
    ]
    return "\n".join([*lines, "```", ""])


@click.command("state_machines", help=__doc__)
def command() -> None:
    """Draw them anew."""
    for name, table in TABLES.items():
        drawn(PAGE, name).write(diagram(table))


if __name__ == "__main__":
    program.run(command, "state_machines")

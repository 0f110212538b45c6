"""Draws the state machines of controller, broker and consumer groups from their tables, into
docs/reference/state-machines.md.

    python -m tools.state_machines           write the page
    python -m tools.state_machines --check   exit with 1 if the page is not what the tables say

The tables are what they obey (fencepost/impl/controller/machines.py, fencepost/impl/core/broker_states.py): a
transition that no table allows is refused, recorded as a mark and counted.
"""

import argparse
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from fencepost.impl.controller.machines import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS
from fencepost.impl.coordinator.states import GROUP_TRANSITIONS
from fencepost.impl.core.broker_states import BROKER_TRANSITIONS

State = TypeVar("State", bound=StrEnum)
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "state-machines.md"

OPENING = """# State machines of controller and broker

`python -m tools.state_machines` draws these diagrams from the tables in `fencepost/impl/controller/machines.py` and `fencepost/impl/core/broker_states.py`; a test
compares this page with the tables. A transition that is not here is refused, recorded as the mark `illegal_transition_refused` and counted.
The names are Kafka's.
"""

PARTITIONS = """
## Partitions

A partition is *online* while it has a leader, *offline* while it has none, *new* while it has replicas but was never led.
"""

REPLICAS = """
## Replicas

There is one machine for each replica of a partition, as the controller sees it. Deletion starts only from a replica that is offline (its broker got the request to stop it).
If a broker is down, the deletion is *ineligible* and waits for its return.
"""


BROKERS = """
## Brokers

The state of a broker, in the trace as the event `broker_state`. A broker recovers only if its logs were not closed cleanly; it is *NotRunning* from any state
when its log directory fails. A process that dies makes no transition.
"""


GROUPS = """
## Consumer groups

A group at its coordinator, in the trace as the event `group_phase`; the table is in `fencepost/impl/coordinator/states.py`, and another transition ends
the run.
[groups.md](../explanation/groups.md) tells what makes each of them happen.
"""


def diagram(transitions: Mapping[State, frozenset[State]]) -> str:
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


def page() -> str:
    """The whole page."""
    return (
        OPENING
        + PARTITIONS
        + "\n"
        + diagram(PARTITION_TRANSITIONS)
        + REPLICAS
        + "\n"
        + diagram(REPLICA_TRANSITIONS)
        + BROKERS
        + "\n"
        + diagram(BROKER_TRANSITIONS)
        + GROUPS
        + "\n"
        + diagram(GROUP_TRANSITIONS)
    )


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

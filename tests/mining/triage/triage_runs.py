"""Which runs triage is tested on, and how they are kept."""

from pathlib import Path

from attrs import frozen

from fencepost.mining.results.summary import Summary
from fencepost.traces.sealing import Sizes
from fencepost.traces.trace import Trace
from tests.checkers import lab

BAD = {"KAFKA-1188": (0, 3, 5, 9), "KAFKA-708": (5000002, 5000007, 5000012, 5000016)}
"""Seeds of the profile `default` that show the bug."""
HEALTHY = range(100, 124)


@frozen
class Mined:
    """A mining: of which folder, where, and its summary."""

    folder: Path
    out: Path
    summary: Summary
    # Those of the folder.
    runs: list[Trace]
    # What is planted in each bad one.
    bug_of: dict[int, str]


def write(path: Path, traces: list[Trace], *, group_operations: int) -> None:
    """A sealed folder of traces."""
    lab.stored(path, traces, sizes=Sizes(group_operations=group_operations))

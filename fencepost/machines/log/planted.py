"""The log machine with a bug of the log planted in it, and the script that shows what it found.

Owns how a part gets in, and the text of a script: Python that anybody can run, debug and keep as a test.
"""

from collections.abc import Iterable

from attrs import evolve

from fencepost.bugs.storage import log_bug
from fencepost.machines.log.disk_rot import DiskMachine
from fencepost.machines.log.life import LogParts

FAILING = "state = "
"""How the steps of a failing example begin in what Hypothesis tells."""


def planted(bug: str) -> type[DiskMachine]:
    """A machine whose log has this bug. Raises FencepostError for an unknown id."""
    found = log_bug(bug)
    parts = evolve(LogParts(), **{found.role: found.part})
    return type("Planted", (DiskMachine,), {"parts": parts})


def planting(bug: str) -> tuple[str, ...]:
    """The lines of a script that make the machine with this bug."""
    return ("from fencepost.machines.log.planted import planted", "", f'Planted = planted("{bug}")')


def script_of(output: str, machine: Iterable[str], complaint: str) -> str:
    """A script out of what Hypothesis said of a failing example.

    Args:
        output: what Hypothesis said (its notes).
        machine: the lines that make the machine, or import it.
        complaint: what the example ended with; its first line is the script's.

    Returns:
        Python that takes the same steps.
    """
    steps = [line for line in output[output.index(FAILING) :].splitlines() if line.strip()]
    first = next(iter(complaint.splitlines()), "")
    return "\n".join([f"# {first}", *machine, *steps, ""])


def steps_of(script: str) -> int:
    """How many steps a script takes, without those that begin, compare and end."""
    silent = ("state.agrees(", "state.begin(", "state.draw(", "state.teardown(")
    return sum(line.startswith("state.") and not line.startswith(silent) for line in script.splitlines())

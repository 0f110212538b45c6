"""The log machine with a bug of the log planted in it, and the script that shows what it found.

Owns how a part gets in, and the text of a script: Python that anybody can run, debug and keep as a test.
"""

from attrs import evolve

from fencepost.campaign.bugs.storage import log_bug
from fencepost.machines.log.disk_rot import DiskMachine
from fencepost.machines.log.life import LogLife, LogParts

FAILING = "state = "
"""How the steps of a failing example begin in what Hypothesis tells."""


def planted(bug: str, machine: type[LogLife] = DiskMachine) -> type[LogLife]:
    """A machine whose log has this bug. Raises FencepostError for an unknown id."""
    found = log_bug(bug)
    parts = evolve(LogParts(), **{found.role: found.part})
    return type("Planted", (machine,), {"parts": parts})


def script_of(output: str, bug: str, complaint: str) -> str:
    """A script out of what Hypothesis said of a failing example (its notes). bug: "" for the log as it is."""
    steps = [line for line in output[output.index(FAILING) :].splitlines() if line.strip()]
    if bug:
        head = [
            "from fencepost.machines.log.planted import planted",
            "",
            f'Planted = planted("{bug}")',
        ]
    else:
        name = steps[0].removeprefix(FAILING).removesuffix("()")
        module = "real_machine" if name == "RealMachine" else "disk_rot"
        head = [f"from fencepost.machines.{module} import {name}", ""]
    first = next(iter(complaint.splitlines()), "")
    return "\n".join([f"# {first}", *head, *steps, ""])


def steps_of(script: str) -> int:
    """How many steps a script takes, without those that begin, compare and end."""
    silent = ("state.agrees(", "state.begin(", "state.draw(", "state.teardown(")
    return sum(line.startswith("state.") and not line.startswith(silent) for line in script.splitlines())

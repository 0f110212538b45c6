"""`python -m tools.log_sweep`: the log as it is under the log machine, by the thousand, in rounds of examples
that must complain of nothing.

Run it in a process of its own (fencepost/machines/log/hunt.py says why). Standard output carries one JSON
object: examples, CPU seconds, and for each complaint the round and the script that shows it, which runs at
the top of the repository. Exit code 1 if there was any.
"""

import argparse
import sys
import time

import msgspec

from fencepost.machines.log.disk_rot import DiskMachine
from fencepost.machines.log.hunt import run_round
from fencepost.machines.log.life import LogLife
from fencepost.machines.log.planted import script_of
from tests.selfcheck.log.real_machine import RealMachine

MACHINES: dict[str, type[LogLife]] = {"disk": DiskMachine, "real": RealMachine}
ROUND = 250
"""Examples of one round; Hypothesis begins each with small ones."""


def importing(machine: type[LogLife]) -> tuple[str, ...]:
    """The lines of a script that import a machine."""
    return f"from {machine.__module__} import {machine.__name__}", ""


def sweep(machine: type[LogLife], first_round: int, examples: int, *, shrink: bool) -> dict[str, object]:
    """So many examples in rounds from `first_round` on; a round ends with its first complaint."""
    began, done, number, complaints = time.process_time(), 0, first_round, []
    while done < examples:
        result = run_round(machine, number, examples=min(ROUND, examples - done), shrink=shrink)
        done += result.examples
        if result.complaint:
            script = script_of(result.output, importing(machine), result.complaint)
            complaints.append({"round": number, "complaint": result.complaint, "script": script})
        number += 1
        sys.stderr.write(f"{done} of {examples} examples, {len(complaints)} complaints\n")
    spent = round(time.process_time() - began, 1)
    return {"examples": done, "rounds": number - first_round, "complaints": complaints, "cpu_s": spent}


def main() -> int:
    """Sweep as the arguments say."""
    parser = argparse.ArgumentParser(description="The log machine over the log as it is.")
    parser.add_argument("--machine", choices=sorted(MACHINES), default="disk")
    parser.add_argument("--first-round", type=int, default=0)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--no-shrink", action="store_true")
    asked = parser.parse_args()
    done = sweep(MACHINES[asked.machine], asked.first_round, asked.examples, shrink=not asked.no_shrink)
    sys.stdout.write(msgspec.json.encode({"machine": asked.machine, **done}).decode() + "\n")
    return 1 if done["complaints"] else 0


if __name__ == "__main__":
    sys.exit(main())

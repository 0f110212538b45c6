"""`python -m tools.machine_hunt`: how many examples the Hypothesis machines of the simulated cluster take to
find a planted bug, and that no machine complains of a healthy cluster or a healthy log.

    python -m tools.machine_hunt KIP-101 KAFKA-6082@7     # @7: begin with round 7
    python -m tools.machine_hunt --healthy ElectionMachine --examples 1000

Owns rounds of examples, each with its own seed, and which machine looks for which bug. Must run in a process
of its own, as fencepost/machines/log/hunt.py explains. An example counts as found only by an anomaly of the
bug's own invariant (bugs); what else was objected to before, mostly by the model, is reported next
to it.

Standard output carries JSON lines: {"examples": n} when a round is over, then what came of it. The smallest
example of each bug is left in --folder as a plan and as a program. What is healthy has the script of each
complaint, which runs at the top of the repository; then the exit code is 1. It is 2 for an unknown name.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from attrs import asdict, define, frozen

from fencepost.bugs import BUGS, PlantedBug
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.machines.cluster.machines import MACHINES
from fencepost.machines.cluster.steps import ClusterSteps
from fencepost.machines.log.disk_rot import DiskMachine
from fencepost.machines.log.hunt import STEPS_PER_EXAMPLE, run_round
from fencepost.machines.log.planted import script_of
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.plan_json import plan_from_json
from tests.selfcheck.log.real_machine import RealMachine

EXAMPLES_PER_ROUND = 10
"""Up to here Hypothesis draws each example afresh; later on most are mutations of earlier ones, which repeat
their rules."""
STEPS = 25
"""Rules per example: the stories of docs/spec/bugs.md take up to ten."""
LOGS: dict[str, type[Any]] = {"DiskMachine": DiskMachine, "RealMachine": RealMachine}
"""Machines over the log as it is, in memory and on files."""
LOG_EXAMPLES_PER_ROUND = 250
"""Hypothesis begins each round with small examples; those of a log are cheap."""
FOLDER = Path(".fencepost/machines")
BY_BUG = {
    bug: machine
    for machine, bugs in {
        "ElectionMachine": "KAFKA-532 KAFKA-6082 KAFKA-1096 KAFKA-1188 KAFKA-1382 KAFKA-1387 KAFKA-13407 "
        "KAFKA-2729 KIP-101 KIP-380 KIP-279 KIP-320 KIP-207",
        "ReassignmentMachine": "KAFKA-14140 KIP-570 KAFKA-5310 KAFKA-340 KAFKA-6193 KAFKA-1097 KAFKA-1681 "
        "KAFKA-6650 KAFKA-7235",
        "OutageMachine": "KAFKA-1647",
        "RaceMachine": "KAFKA-7128",
        "RelayMachine": "KAFKA-7415",
    }.items()
    for bug in bugs.split()
}
"""The machine that looks for a bug; for every other one it is ClusterMachine."""


@frozen(kw_only=True)
class Hunted:
    """What came of a hunt."""

    bug: str
    machine: str
    examples_tried: int
    # Examples up to and including the first that shows the bug, None if none did.
    examples: int | None = None
    round: int | None = None
    anomaly: str = ""
    # Examples up to the first of which anything was found; by_what: the judges that found it.
    objected: int | None = None
    by_what: tuple[str, ...] = ()
    # Sizes of the shrunk example.
    rules: int = 0
    operations: int = 0
    faults: int = 0
    # Whether its plan shows the same again.
    replayed: bool = False
    plan: str = ""
    script: str = ""
    cpu_s: float = 0.0


@define
class Watch:
    """Over the examples of a hunt."""

    # Number of examples.
    begun: int = 0
    # Number of examples of which nothing could be concluded.
    undecided: int = 0
    # The first example with a finding; by_what: the judges that found it.
    objected: int | None = None
    by_what: tuple[str, ...] = ()
    # The hunt has found what it wanted; what runs now only makes it smaller.
    frozen: bool = False

    def ended(self, example: ClusterSteps, *, failed: bool) -> None:
        """Count one example.

        Args:
            example: the machine.
            failed: whether its rules raised.
        """
        if self.frozen:
            return
        self.undecided += bool(example.undecided)
        if example.objected and self.objected is None:
            self.objected, self.by_what = self.begun, tuple(sorted(example.objected))
        self.frozen = failed


def machine_for(bug: str) -> str:
    """The name of the machine that looks for a bug. Raises FencepostError for an unknown id."""
    if bug not in BUGS:
        raise FencepostError(
            expected=f"one of {', '.join(sorted(BUGS))}",
            seen=unknown_name(bug, BUGS),
            where="planted bugs",
            hint="`fencepost campaign bugs list` shows them",
        )
    return BY_BUG.get(bug, "ClusterMachine")


def watched(machine: type[ClusterSteps], watch: Watch, **changes: object) -> type[ClusterSteps]:
    """A machine that tells `watch` of each example. changes: of its class variables."""

    class Watched(machine):  # type: ignore[valid-type, misc]
        def start_with(self, plan: object) -> None:
            if not watch.frozen:
                watch.begun += 1
            super().start_with(plan)

        def _end(self) -> None:
            failed = True
            try:
                super()._end()
                failed = False
            finally:
                watch.ended(self, failed=failed)

    Watched.__name__ = Watched.__qualname__ = machine.__name__
    for name, value in changes.items():
        setattr(Watched, name, value)
    return Watched


def hunt(
    bug: str,
    machine: str = "",
    *,
    most_examples: int,
    first_round: int = 0,
    shrink: bool = True,
    folder: Path = FOLDER,
) -> Iterator[int | Hunted]:
    """Rounds until one shows the bug by an anomaly of its own: how many examples are over, again and again;
    then what came of it."""
    name = machine or machine_for(bug)
    planted, began, watch, number = BUGS[bug], time.process_time(), Watch(), first_round
    kind = watched(MACHINES[name], watch, bugs=(bug,), counts=planted.anomalies, folder=folder / bug)
    while watch.begun < most_examples:
        size = min(EXAMPLES_PER_ROUND, most_examples - watch.begun)
        done = run_round(kind, number, examples=size, shrink=shrink, steps=STEPS)
        yield watch.begun
        if done.complaint:
            yield _found(planted, name, number, watch, done.output, folder / bug, began)
            return
        number += 1
    yield Hunted(
        bug=bug,
        machine=name,
        examples_tried=watch.begun,
        objected=watch.objected,
        by_what=watch.by_what,
        cpu_s=round(time.process_time() - began, 1),
    )


def _found(
    planted: PlantedBug, machine: str, number: int, watch: Watch, output: str, folder: Path, began: float
) -> Hunted:
    path = folder / f"{machine}.json"
    plan = plan_from_json(path.read_bytes())
    again = {finding.anomaly for finding in combine(judge(run(plan))).findings}
    steps = [line for line in output.splitlines() if line.startswith("state.") and "agrees()" not in line]
    return Hunted(
        bug=planted.bug,
        machine=machine,
        examples_tried=watch.begun,
        examples=watch.begun,
        round=number,
        anomaly=", ".join(sorted(again & planted.anomalies)),
        objected=watch.objected,
        by_what=watch.by_what,
        rules=sum(not line.startswith(("state.start(", "state.teardown(")) for line in steps),
        operations=len(plan.operations),
        faults=len(plan.faults),
        replayed=bool(again & planted.anomalies),
        plan=str(path),
        script="\n".join(steps),
        cpu_s=round(time.process_time() - began, 1),
    )


@frozen(kw_only=True)
class Swept:
    """What a machine complained of, over what is healthy."""

    machine: str
    examples: int
    rounds: int
    # Examples of which nothing could be concluded.
    undecided: int
    # Of each: its round, what was said, and the script that shows it.
    complaints: tuple[dict[str, object], ...] = ()
    cpu_s: float = 0.0


def importing(machine: type) -> tuple[str, ...]:
    """The lines of a script that import a machine."""
    return f"from {machine.__module__} import {machine.__name__}", ""


def sweep(
    machine: str, *, examples: int, first_round: int = 0, shrink: bool = False, folder: Path = FOLDER
) -> Iterator[int | Swept]:
    """So many examples of a healthy cluster or log; a round ends with its first complaint."""
    began, watch, number, tried = time.process_time(), Watch(), first_round, 0
    complaints: list[dict[str, object]] = []
    of_log = machine in LOGS
    original = LOGS[machine] if of_log else MACHINES[machine]
    most, steps = (LOG_EXAMPLES_PER_ROUND, STEPS_PER_EXAMPLE) if of_log else (EXAMPLES_PER_ROUND, STEPS)
    while tried < examples:
        watch.frozen = False
        kind = original if of_log else watched(original, watch, folder=folder / f"healthy-{number}")
        size = min(most, examples - tried)
        done = run_round(kind, number, examples=size, shrink=shrink, steps=steps)
        tried += done.examples
        if done.complaint:
            script = script_of(done.output, importing(original), done.complaint)
            complaints.append({"round": number, "complaint": done.complaint, "script": script})
        number += 1
        yield tried
    yield Swept(
        machine=machine,
        examples=tried,
        rounds=number - first_round,
        undecided=watch.undecided,
        complaints=tuple(complaints),
        cpu_s=round(time.process_time() - began, 1),
    )


def main() -> int:
    """Hunt, or sweep, as the arguments say."""
    parser = argparse.ArgumentParser(description="Hypothesis machines, by the thousand.")
    parser.add_argument("bugs", nargs="*", metavar="ID[@ROUND]", help="planted bugs to look for")
    parser.add_argument("--healthy", choices=sorted({*MACHINES, *LOGS}), help="what is healthy, by machine")
    parser.add_argument("--machine", choices=sorted(MACHINES), default="", help="instead of the bug's own")
    parser.add_argument("--examples", type=int, default=2_000)
    parser.add_argument("--first-round", type=int, default=0)
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    code = 0
    try:
        for bug, _, number in (one.partition("@") for one in asked.bugs):
            for said in hunt(
                bug,
                asked.machine,
                most_examples=asked.examples,
                first_round=int(number or asked.first_round),
                shrink=not asked.no_shrink,
                folder=asked.folder,
            ):
                _tell(said)
        if asked.healthy:
            for swept in sweep(
                asked.healthy,
                examples=asked.examples,
                first_round=asked.first_round,
                shrink=asked.healthy in LOGS and not asked.no_shrink,
                folder=asked.folder,
            ):
                _tell(swept)
                code = int(isinstance(swept, Swept) and bool(swept.complaints))
    except FencepostError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return code


def _tell(value: "int | Hunted | Swept") -> None:
    said = {"examples": value} if isinstance(value, int) else asdict(value)
    sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

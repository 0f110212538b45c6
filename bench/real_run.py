"""What a run against a real system is made of: `python bench/real_run.py [--system NAME] [--seeds N]`.

Runs seeds one after the other in one cluster, as a campaign's worker does, and says how long each phase took,
how much processor time the brokers needed, and how much memory they had at the most. With --single each plan
has one fault; with --kinds all faults are of these kinds: healing after cuts can be compared with healing
after crashes. On a busy machine the times are upper bounds: report the load, too.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

from attrs import evolve

from fencepost.campaign.real.faults import kinds_for
from fencepost.campaign.real.run import RealRun
from fencepost.campaign.real.worker import checked
from fencepost.campaign.swarm.real_systems import STRONG_PROFILE, swarm_for_real
from fencepost.systems.named import make_system

LOOK_S = 0.5
"""Between two looks at the memory."""
TICKS = os.sysconf("SC_CLK_TCK")


def processes_below(root: int) -> list[int]:
    """Every process that descends from this one."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        parents.setdefault(parent, []).append(int(entry.parent.name))
    found, todo = [], [root]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def status_of(process: int) -> tuple[int, float]:
    """Resident kilobytes and processor seconds; none for a process that has ended."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0.0
    resident = next((int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")), 0)
    return resident, (int(fields[11]) + int(fields[12])) / TICKS


class Watch(threading.Thread):
    """Looks at all processes of the system. most: megabytes of all together at one moment; spent: the
    processor time of each."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.spent, self.over = 0.0, dict[int, float](), threading.Event()

    def run(self) -> None:
        """Until it is over."""
        while not self.over.wait(LOOK_S):
            seen = {process: status_of(process) for process in processes_below(os.getpid())}
            self.most = max(self.most, sum(resident for resident, _ in seen.values()) / 1024)
            self.spent.update({process: cpu for process, (resident, cpu) in seen.items() if resident})


def main(name: str, seeds: int, single: bool, links: bool, kinds: tuple[str, ...]) -> None:
    """Run, and print."""
    with tempfile.TemporaryDirectory() as folder:
        system = make_system(name, Path(folder) / "cluster", {"links": "True"} if links else {})
        watch, began = Watch(), time.monotonic()
        watch.start()
        system.start()
        print(f"start of {name}: {time.monotonic() - began:.1f} s, load {os.getloadavg()[0]:.0f}")
        phases: dict[str, list[float]] = {}
        able = kinds or kinds_for(system.inside().can)[0]
        try:
            for seed in range(seeds):
                plan = swarm_for_real(seed, able, profile=STRONG_PROFILE)
                if single:
                    plan = evolve(plan, faults=plan.faults[:1])
                run = RealRun(
                    plan=checked(plan),
                    system=system,
                    topic=f"t-{seed}",
                    target=name,
                    copies=Path(folder) / "copies",
                )
                started = time.monotonic()
                asyncio.run(run.go())
                run.timings["all"] = time.monotonic() - started
                struck = ", ".join(fault.kind for fault in plan.faults) or "no fault"
                stuck = ", and it never did" if run.stuck else ""
                print(f"seed {seed}: heal {run.timings['heal']:5.1f} s after {struck}{stuck}")
                for phase, seconds in run.timings.items():
                    phases.setdefault(phase, []).append(seconds)
        finally:
            watch.over.set()
            watch.join()
            system.close()
    for phase, seconds_of in phases.items():
        print(f"{phase:10} median {statistics.median(seconds_of):6.1f} s, most {max(seconds_of):6.1f} s")
    print(f"{60 / statistics.mean(phases['all']):.1f} runs a minute; load {os.getloadavg()[0]:.0f}")
    print(f"all processes of the system: {watch.most:.0f} MB at the most, ", end="")
    print(f"{sum(watch.spent.values()) / seeds:.1f} s of processor time a run, its start included")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", default="apache-kafka:4.4.0")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--single", action="store_true", help="one fault in each plan, at most")
    parser.add_argument("--links", action="store_true")
    parser.add_argument(
        "--kinds", default="", help="kinds of fault, with commas; default: all that it can do"
    )
    given = parser.parse_args()
    wanted = tuple(filter(None, given.kinds.split(",")))
    main(given.system, given.seeds, given.single, given.links, wanted)

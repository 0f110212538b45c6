"""How long real clusters take to heal, by what they suffered: `python bench/real_heal.py FOLDER...`.

Reads stored campaigns against real systems (`fencepost campaign --system ... --out FOLDER`). It starts
nothing. The time is from the end of the safety phase, when every fault is ended and every broker is started,
until all brokers run and every ISR is full. A run counts in each group of which it has a fault.
"""

import argparse
import statistics
from collections import defaultdict
from pathlib import Path

from fencepost.traces.events import Name
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace

GROUPS = {
    "network cut": {"partition", "client_partition", "isolate_zookeeper"},
    "network slow or late": {"slow_link", "late_requests"},
    "requests broken": {"broken_request"},
    "broker paused": {"pause"},
    "broker killed or stopped": {"bounce", "clean_restart", "crash", "power_loss"},
}
CUT_ONLY, NOTHING = "network cut, nothing else", "no fault"
SECOND = 1_000_000_000


def heal_s(trace: Trace) -> float | None:
    """Seconds; None for a run that never healed, or that has no such phase."""
    phases = {event.cause: event.time for event in trace.events if event.name is Name.PHASE}
    if "heal" not in phases or "liveness" not in phases:
        return None
    return (phases["liveness"] - phases["heal"]) / SECOND


def groups_of(trace: Trace) -> set[str]:
    """What the run suffered."""
    kinds = {event.cause for event in trace.events if event.name is Name.FAULT_BEGAN}
    found = {name for name, members in GROUPS.items() if kinds & members}
    if kinds and kinds <= GROUPS["network cut"]:
        found.add(CUT_ONLY)
    return found or {NOTHING}


def main(folders: list[Path]) -> None:
    """Print the table."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    never: dict[tuple[str, str], int] = defaultdict(int)
    for folder in folders:
        store = TraceStore.open(folder)
        for number in sorted(store.trace_ids()):
            trace = store.read(number)
            seconds = heal_s(trace)
            for group in groups_of(trace):
                key = trace.target, group
                if seconds is None:
                    never[key] += 1
                else:
                    times[key].append(seconds)
    print("| system | what happened | runs | seconds to heal, median and most | never |")
    print("|---|---|---:|---|---:|")
    for key in sorted(times.keys() | never.keys()):
        of = times[key]
        shown = f"{statistics.median(of):.1f}, {max(of):.1f}" if of else ""
        print(f"| {key[0]} | {key[1]} | {len(of) + never[key]} | {shown} | {never[key]} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    main(parser.parse_args().folders)

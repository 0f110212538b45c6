"""The reference run: how fast the simulated world goes on one core.

One run is fixed and named: 3 brokers, 3 partitions of 3 replicas, 4 clients, 150 operations, 6 faults, 60
virtual seconds of safety phase. Prints runs, messages and events per second of processor time, the ratio of
virtual to wall time, and what judging adds.

Run with: python bench/reference_run.py [--runs N]
"""

import argparse
import statistics
import time

from rich.console import Console
from rich.table import Table

from fencepost.campaign.run.run import Run
from fencepost.campaign.workers.worker import settle_memory
from fencepost.checkers.judges import judge
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions

OPERATIONS, CLIENTS, PARTITIONS, SAFETY_MS = 150, 4, 3, 60_000
FAULTS = (
    ("crash", "leader of t-0", 8_000, 5_000, 0),
    ("pause", "controller", 17_000, 8_000, 0),
    ("partition", "follower 1 of t-1", 27_000, 4_000, 0),
    ("bounce", "leader of t-2", 35_000, 0, 100),
    ("expire_session", "controller", 43_000, 0, 0),
    ("slow_link", "leader of t-1", 50_000, 5_000, 50_000),
)


def reference_plan(seed: int) -> Plan:
    """The reference run with this seed: only latencies change."""
    return Plan(
        seed=seed,
        profile="reference",
        safety_ms=SAFETY_MS,
        cluster=ClusterOptions(
            brokers=3, topics=(TopicOptions(partitions=PARTITIONS, replication_factor=3),)
        ),
        operations=tuple(
            PlannedOperation(
                op_id=number,
                process=number % CLIENTS,
                at_ms=number * SAFETY_MS // (OPERATIONS + 1),
                function="append" if number % 5 < 3 else "poll",
                partition=number // CLIENTS % PARTITIONS,
                records=1 + number % 3,
            )
            for number in range(1, OPERATIONS + 1)
        ),
        faults=tuple(
            Fault(
                fault_id=number, kind=kind, target=target, at_ms=at, duration_ms=duration, parameter=parameter
            )
            for number, (kind, target, at, duration, parameter) in enumerate(FAULTS)
        ),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    judge(Run(reference_plan(0)).run())  # compiles the judges
    settle_memory()
    walls, judging, messages, events, virtual, processor = [], [], 0, 0, 0, 0.0
    for seed in range(runs):
        started, before = time.perf_counter(), time.process_time()
        run = Run(reference_plan(seed))
        trace = run.run()
        ended = time.perf_counter()
        processor += time.process_time() - before
        judge(trace)
        walls.append(ended - started)
        judging.append(time.perf_counter() - ended)
        messages += run.cluster.world.network.delivered
        events += run.cluster.world.scheduler.events
        virtual += run.cluster.now
    total = sum(walls)
    table = Table(title=f"the reference run, {runs} seeds, one core", show_header=True)
    for column in ("", "measured", "aim"):
        table.add_column(column)
    table.add_row("runs per second of processor time", f"{runs / processor:.1f}", "20")
    table.add_row("processor time per run", f"{processor / runs * 1000:.0f} ms", "50 ms")
    table.add_row("wall per run, median", f"{statistics.median(walls) * 1000:.0f} ms", "")
    table.add_row("virtual time / wall time", f"{virtual / 1e9 / total:,.0f}", "1,000")
    table.add_row("messages delivered/s", f"{messages / processor:,.0f}", "")
    table.add_row("scheduler events/s", f"{events / processor:,.0f}", "")
    table.add_row("messages, events per run", f"{messages // runs:,}, {events // runs:,}", "")
    table.add_row("judging per run, median", f"{statistics.median(judging) * 1000:.1f} ms", "")
    Console().print(table)


if __name__ == "__main__":
    main()

"""How fast the simulated world goes on one core, and what judging a run adds.

The run is fixed: 3 brokers, 3 partitions of 3 replicas, 4 clients, 150 operations, 6 faults, 60 virtual
seconds of safety phase. Only the latencies differ by seed. Compare with an earlier tree by --before.
"""

import argparse
import time
from collections.abc import Callable, Iterator

from bench.costs import Cost
from bench.harness import Case
from fencepost.campaign.workers.worker import settle_memory
from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import Run
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.trace import Trace

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
    """The reference run with this seed."""
    operations = (
        PlannedOperation(
            op_id=number, process=number % CLIENTS, at_ms=number * SAFETY_MS // (OPERATIONS + 1),
            function="append" if number % 5 < 3 else "poll", partition=number // CLIENTS % PARTITIONS,
            records=1 + number % 3,
        )
        for number in range(1, OPERATIONS + 1)
    )  # fmt: skip
    faults = (
        Fault(fault_id=number, kind=kind, target=target, at_ms=at, duration_ms=lasts, parameter=parameter)
        for number, (kind, target, at, lasts, parameter) in enumerate(FAULTS)
    )
    topics = (TopicOptions(partitions=PARTITIONS, replication_factor=3),)
    return Plan(
        seed=seed, profile="reference", safety_ms=SAFETY_MS,
        operations=tuple(operations), faults=tuple(faults),
        cluster=ClusterOptions(brokers=3, topics=topics),
    )  # fmt: skip


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """One case: judging against running, over the same seeds."""
    seeds, traces = range(2 if asked.quick else 20), dict[int, Trace]()
    judge(Run(reference_plan(0)).run())  # compiles the judges
    settle_memory()

    def simulated() -> Cost:
        messages = events = virtual = 0
        wall, cpu = time.perf_counter(), time.process_time()
        for seed in seeds:
            run = Run(reference_plan(seed))
            traces[seed] = run.run()
            messages += run.cluster.world.network.delivered
            events += run.cluster.world.scheduler.events
            virtual += run.cluster.now
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        figures = {
            "runs/s": len(seeds) / cpu, "messages/s": messages / cpu, "events/s": events / cpu,
            "virtual/wall time": virtual / 1e9 / wall,
        }  # fmt: skip
        return Cost(wall_s=wall, cpu_s=cpu, more=figures)

    def judged() -> None:
        for trace in traces.values():
            judge(trace)

    sides: dict[str, Callable[[], object]] = {"run": simulated, "judging": judged}
    yield Case(name=f"reference run, {len(seeds)} seeds", sides=sides, per=len(seeds), unit="run")

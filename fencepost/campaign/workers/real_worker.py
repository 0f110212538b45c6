"""The worker process of a campaign against a real system: `python -m fencepost.campaign.workers.real_worker`.

Owns one cluster that outlives its runs, and what is kept of a finding. Must not know how a run works. The
protocol with the driver is that of workers/worker.py.

A fresh topic is enough to separate two runs of one healthy cluster. After `runs_per_cluster` runs, and after
each finding or run that did not end, the next run gets a new cluster in a new folder.

    OUT/clusters/SLOT-N/        the cluster of a worker
    OUT/under-way/SLOT.jsonl    the history of the run in hand, written ahead
    OUT/clusters/SLOT-copies/   copies of the brokers' directories of its topics
    OUT/findings/SEED/          of a run with a finding: plan.json, history.jsonl, these copies with the
                                cluster's metadata (broker-N/), and the ends of all logs (logs/)
"""

import asyncio
import os
import shutil
from pathlib import Path

from attrs import define, field

from fencepost.campaign.workers.plans import plan_of
from fencepost.campaign.workers.results import Orders, RunResult, Task
from fencepost.campaign.workers.worker import Worker, main
from fencepost.proxy.faults import parse
from fencepost.proxy.faults.allowed import refuse_illegal
from fencepost.run.faults.requests import BROKEN_REQUEST
from fencepost.run.faults.table import REAL_FAULTS, kinds_for
from fencepost.run.group_processes import FUNCTIONS, transforms
from fencepost.run.real.broker_questions import METADATA_TOPIC, Asking
from fencepost.run.real.copies import copy_folder, copy_logs
from fencepost.run.real.real_run import RealRun
from fencepost.run.real.striking import FOLLOWED
from fencepost.systems.named import make_system
from fencepost.systems.system import System
from fencepost.traces.canonical_rows import Rows, rows_of
from fencepost.traces.errors import EnvironmentError_, PlanError
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace
from fencepost.traces.whole_file import write_whole
from fencepost.wire.client import Access, look_around

FINDINGS, CLUSTERS, UNDER_WAY, PLAN = "findings", "clusters", "under-way", "plan.json"
START_ATTEMPTS = 2
"""A campaign of hours does not end because one cluster of many did not come up."""


@define(eq=False, kw_only=True)
class Clusters:
    """One cluster at a time."""

    orders: Orders
    # Where the folders of the clusters are.
    folder: Path
    # The one that runs; None: the next run starts one.
    system: System | None = None
    # Of this cluster.
    runs: int = 0
    # Clusters so far.
    started: int = 0
    _place: Path = field(factory=Path)

    def take(self) -> System:
        """A cluster that is healthy, as far as the last run left it so. Raises FencepostError."""
        if self.system is not None and self.runs >= self.orders.job.runs_per_cluster:
            self.discard()
        if self.system is None:
            self.system, self.runs = self._start(START_ATTEMPTS), 0
        self.runs += 1
        return self.system

    def _start(self, attempts: int) -> System:
        """A new cluster. attempts: how often one that does not start is replaced by the next."""
        self.started += 1
        self._place = self.folder / f"{self.orders.name}-{os.getpid()}-{self.started}"
        job = self.orders.job
        system = make_system(job.system, self._place, job.system_options)
        try:
            system.start()
        except EnvironmentError_:
            system.close()
            shutil.rmtree(self._place, ignore_errors=True)
            if attempts <= 1:
                raise
            return self._start(attempts - 1)
        return system

    def discard(self) -> None:
        """End the cluster and remove its files."""
        system, self.system = self.system, None
        if system is not None:
            system.close()
            shutil.rmtree(self._place, ignore_errors=True)


@define(kw_only=True)
class RealWorker(Worker):
    """Runs each seed's plan in its cluster."""

    # Whether a cluster that is whole again after a finding goes on: for repetitions, of which most have one,
    # and nobody looks at it afterwards. A new one takes as long as a run.
    keeps_clusters: bool = False
    clusters: Clusters = field(init=False)
    # The last one.
    run: RealRun | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.clusters = Clusters(orders=self.orders, folder=Path(self.orders.out or ".") / CLUSTERS)

    def _run(self, task: Task) -> tuple[Trace, Rows]:
        job = self.orders.job
        plan = checked(plan_of(job, task.seed, task.profile))
        system = self.clusters.take()
        out = Path(self.orders.out) if self.orders.out else None
        self.run = RealRun(
            plan=plan,
            system=system,
            topic=f"{plan.cluster.topics[0].name}-{task.seed}-{self.clusters.started}-{self.clusters.runs}",
            target=job.system,
            control=job.control,
            ahead=None if out is None else out / UNDER_WAY / f"{self.orders.name}.jsonl",
            copies=self._copies,
            left_out=kinds_for(system.inside().can)[1],
        )
        trace = asyncio.run(self.run.go())
        return trace, rows_of(trace)

    def _do(self, task: Task) -> RunResult:
        self.run = None
        try:
            result = super()._do(task)
        except BaseException:
            self.clusters.discard()
            raise
        run = self._finished()
        if run is None:
            return result
        if result.convicted and self.orders.out:
            keep(run, Path(self.orders.out) / FINDINGS / str(task.seed))
        if run.stuck or (result.convicted and not self.keeps_clusters):
            self.clusters.discard()
        else:
            asyncio.run(_delete(run))
        return result

    def _finished(self) -> RealRun | None:
        """The run of the task in hand; None if it needed none."""
        return self.run

    @property
    def _copies(self) -> Path:
        """Where the files of the run in hand are copied to."""
        return self.clusters.folder / f"{self.orders.name}-copies"

    def release(self) -> None:
        """End the cluster."""
        self.clusters.discard()
        shutil.rmtree(self._copies, ignore_errors=True)


def checked(plan: Plan) -> Plan:
    """The plan, if a real system can run it, and no fault is one that a correct broker cannot have. Raises
    PlanError otherwise."""
    for fault in plan.faults:
        if fault.kind not in REAL_FAULTS or fault.follows not in ("", *FOLLOWED) or fault.inside:
            raise PlanError(
                expected=f"faults of a real system: {', '.join(REAL_FAULTS)}, each at a time or after "
                + " or ".join(FOLLOWED),
                seen=f"{fault.kind} after {fault.follows}" if fault.follows else fault.kind,
                where="plan.faults",
            )
        if fault.kind == BROKEN_REQUEST:
            refuse_illegal(parse(fault.target))
    wanted = {"append", "poll", "list_offsets", *FUNCTIONS}
    other = {one.function for one in plan.operations} - wanted
    if len(plan.cluster.topics) not in ((2,) if transforms(plan) else (1, 2)) or other:
        raise PlanError(
            expected="one topic, and a second one for what is written in transactions or only some consumers "
            "read, and operations out of " + ", ".join(sorted(wanted)),
            seen=min(other) if other else f"{len(plan.cluster.topics)} topics",
            where="a plan for a real system",
        )
    return plan


def keep(run: RealRun, folder: Path) -> None:
    """Keep what a finding is explained by: the plan, the history, the copies that were compared with it, the
    cluster's metadata and the ends of all logs.

    Args:
        run: with the finding; its cluster is still there.
        folder: a new one, or of an earlier run of the same seed.

    Raises:
        OSError: for what cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / PLAN, plan_to_json(run.plan) + "\n")
    if run.ahead is not None and run.ahead.exists():
        shutil.copyfile(run.ahead, folder / "history.jsonl")
    if run.copies is not None and run.copies.exists():
        shutil.copytree(run.copies, folder, dirs_exist_ok=True)
    for broker, directory in run.system.directories().items():
        for found in sorted(directory.glob(f"{METADATA_TOPIC}-*")):
            copy_folder(found, folder / f"broker-{broker}" / found.name)
    copy_logs(run.system.logs(), folder / "logs")


async def _delete(run: RealRun) -> None:
    """Let go of the run's topic; if that fails, the cluster carries it along."""
    servers = tuple(
        (host, int(port))
        for host, _, port in (one.rpartition(":") for one in run.system.bootstrap_servers().split(","))
    )
    addresses, _ = await look_around(servers, Access())
    asking = Asking(addresses)
    try:
        for name in run.record.names:
            await asking.delete(name, tuple(sorted(addresses)))
    finally:
        await asking.close()


if __name__ == "__main__":
    main(lambda orders: RealWorker(orders=orders))

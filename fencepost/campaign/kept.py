"""What a test's fixtures recorded, kept because the test itself failed: trace, plan and timeline in its
folder.

Owns: which files. Must not know pytest, or how a failure that a judge found is told (failure.py).

    FOLDER/run/trace.jsonl          of `fencepost_cluster`; and plan.json if the cluster was simulated
    FOLDER/seed-N/trace.jsonl       of `fencepost_campaign`: the run that the test was looking at, and its plan.json
    timeline.txt                    next to each of them
"""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.campaign.failure import PLAN, TRACE
from fencepost.campaign.run.simulated_cluster import SimulatedCluster
from fencepost.campaign.shrink.text import write_plan
from fencepost.report.commands import replay_plan
from fencepost.report.timeline import as_plain, timeline
from fencepost.traces.errors import FencepostError
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.campaign.chunks import Chunk
    from fencepost.systems.real_cluster import RealCluster

TIMELINE = "timeline.txt"


def keep_cluster(cluster: "SimulatedCluster | RealCluster", folder: Path) -> str:
    """Keep the run, unless a judge has kept it already; answers where. A simulated cluster is ended first, so
    that its plan gives the same run."""
    folder = folder / "run"
    if (folder / TRACE).exists():
        return ""
    plan = cluster.plan if isinstance(cluster, SimulatedCluster) else None
    return _keep_run(cluster.end(), plan, folder)


def keep_chunk(chunk: "Chunk", folder: Path) -> str:
    """Keep the run that the test was looking at, unless a judge has kept it already; answers where."""
    for trace in chunk.ran:
        folder = folder / f"seed-{trace.seed}"
        if not (folder / TRACE).exists():
            return _keep_run(trace, plan_from_json(trace.plan), folder)
    return ""


def _keep_run(trace: Trace, plan: Plan | None, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    write_traces(folder / TRACE, [trace])
    (folder / TIMELINE).write_text(as_plain(timeline(trace)) + "\n", encoding="utf-8")
    words = f"{folder}: the trace of {len(trace.operations)} operations, and {TIMELINE}"
    if plan is None:
        return words
    write_plan(folder / PLAN, plan)
    with contextlib.suppress(FencepostError):
        from fencepost.campaign.run.run import run

        if run(plan).digest == trace.digest:
            return f"{words}\nsee the run: {replay_plan(folder / PLAN)}"
    return f"{words}\nno command shows the run again: its plan did not repeat it"

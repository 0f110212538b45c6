"""What a test's fixtures recorded, kept because the test itself failed: trace, plan, timeline and page in its
folder.

Owns: which files. Must not know pytest, or how a failure that a judge found is printed (failure.py).

    FOLDER/run/trace.jsonl          of `fencepost_cluster`; and plan.json if the cluster was simulated
    FOLDER/seed-N/trace.jsonl       of `fencepost_campaign`: the run that the test was looking at, and its
                                    plan.json
    timeline.txt, trace.html        next to each of them
"""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.campaign.failure import PLAN, TRACE
from fencepost.campaign.shrink.text import write_plan
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.report.commands import replay_plan
from fencepost.report.spoken import Spoken
from fencepost.report.timeline import as_plain, timeline
from fencepost.run.simulated.simulated_cluster import SimulatedCluster
from fencepost.traces.errors import FencepostError
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace
from fencepost.traces.whole_file import write_whole
from fencepost.viewer import Shown, page_next_to

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
    return keep_run(cluster.end(), plan, folder)


def keep_chunk(chunk: "Chunk", folder: Path) -> str:
    """Keep the run that the test was looking at, unless a judge has kept it already.

    Args:
        chunk: the test's run so far.
        folder: where to keep it.

    Returns:
        A sentence that says where it is.
    """
    for trace in chunk.ran:
        folder = folder / f"seed-{trace.seed}"
        if not (folder / TRACE).exists():
            return keep_run(trace, plan_from_json(trace.plan), folder)
    return ""


def keep_run(trace: Trace, plan: Plan | None, folder: Path, failure: str = "") -> str:
    """Keep a run in a folder.

    Args:
        trace: the run.
        plan: what gives the same run again, None if nothing does.
        folder: where.
        failure: what the test says that failed, in a line.

    Returns:
        A sentence that says where it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_traces(folder / TRACE, [trace])
    write_whole(folder / TIMELINE, Spoken(trace)(as_plain(timeline(trace))) + "\n")
    replay, words = "", ""
    if plan is not None:
        write_plan(folder / PLAN, plan)
        replay = _replays(plan, trace, folder / PLAN)
        words = (
            f"\nsee the run: {replay}"
            if replay
            else "\nno command shows the run again: its plan did not repeat it"
        )
    shown = Shown(trace=trace, verdicts=judge(trace, DEFAULT_CHECKS), replay=replay, failure=failure)
    watch = page_next_to(folder / TRACE, shown)
    return f"{folder}: the trace of {len(trace.operations)} operations, and {TIMELINE}\n{watch}{words}"


def _replays(plan: Plan, trace: Trace, path: Path) -> str:
    """The command that shows the run of a plan file again; "" if the plan gives another run."""
    with contextlib.suppress(FencepostError):
        from fencepost.run.simulated.run import run

        if run(plan).digest == trace.digest:
            return replay_plan(path)
    return ""

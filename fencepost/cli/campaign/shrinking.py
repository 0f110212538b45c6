"""Shrinking with a progress bar: one plan, or the first run of each anomaly of a campaign.

Owns what a person sees while it goes on. Must not know where a plan comes from.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.console.output import Output, add_row, table
from fencepost.report.commands import replay_plan
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.plan import Plan

if TYPE_CHECKING:
    from fencepost.campaign.shrink.oracle import ShownAnomaly
    from fencepost.campaign.shrink.shrink import Shrunk
    from fencepost.campaign.workers.results import CampaignResult, Job


def shrink_with_bar(
    plan: Plan, shown: "ShownAnomaly", out: Path, output: Output, *, jobs: int, seconds: float | None = None
) -> "Shrunk":
    """Shrink a plan with a progress bar. shown: the anomaly to keep; out: the file for the best plan so far;
    jobs: processes; seconds: time limit, None for none."""
    from fencepost.campaign.shrink.shrink import shrink
    from fencepost.campaign.shrink.text import write_plan
    from fencepost.campaign.shrink.workers import Workers

    write_plan(out, plan)
    size = _size(plan)
    workers = Workers(target=shown.target, jobs=jobs, seconds=seconds)
    try:
        with output.progress(f"shrinking to {shown.target.anomaly}", size) as bar:
            return shrink(
                plan,
                workers,
                on_better=lambda better: write_plan(out, better),
                on_progress=lambda now: bar.to(
                    size - now.operations - now.faults,
                    f"{now.operations} operations, {now.faults} faults left, {now.runs} runs",
                ),
            )
    finally:
        workers.close()


def shrink_found(
    result: "CampaignResult", job: "Job", folder: Path, output: Output, jobs: int
) -> tuple[list[dict[str, Any]], ExitCode]:
    """Shrink the first run of each anomaly of a campaign. result, job: of the campaign; folder: the
    campaign's; jobs: processes. Returns a row per anomaly, and the exit code of campaign and shrinking."""
    from fencepost.campaign.shrink.oracle import target_of
    from fencepost.campaign.workers.plans import plan_of

    rows = table("shrunk", ">seed", ">operations", ">faults", ">runs", ">seconds", "see it")
    done: list[dict[str, Any]] = []
    code = result.exit_code
    firsts: dict[str, int] = {}
    for seed, anomaly in result.failing:
        firsts.setdefault(anomaly, seed)
    for anomaly, seed in sorted(firsts.items()):
        if code is ExitCode.INTERRUPTED:
            break
        plan, out = plan_of(job, seed), folder / f"shrunk-{seed}.json"
        try:
            shown = target_of(plan, checks=job.checks, expected=anomaly, where=f"seed {seed}")
        except FencepostError as error:  # the campaign also reports a run that did not repeat
            output.note(str(error))
            continue
        small = shrink_with_bar(plan, shown, out, output, jobs=jobs)
        before, after = counts(plan), counts(small.plan)
        sizes = [f"{before[name]} -> {after[name]}" for name in ("operations", "faults")]
        add_row(
            rows,
            anomaly,
            seed,
            *sizes,
            small.runs,
            f"{small.wall_s:.1f}",
            replay_plan(out, checks=job.checks or ()),
        )
        done.append({"anomaly": anomaly, "seed": seed, "out": str(out), "before": before, "after": after})
        code = ExitCode.INTERRUPTED if small.interrupted else code
    if done:
        output.say("", rows)
    return done, code


def _size(plan: Plan) -> int:
    return len(plan.operations) + len(plan.faults)


def counts(plan: Plan) -> dict[str, int]:
    """The size of a plan."""
    return {
        "operations": len(plan.operations),
        "faults": len(plan.faults),
        "clients": len({one.process for one in plan.operations}),
        "brokers": plan.cluster.brokers,
        "partitions": sum(topic.partitions for topic in plan.cluster.topics),
        "safety_ms": plan.safety_ms,
    }

"""`fencepost replay` and `fencepost shrink` of a campaign against a real system: rates instead of digests.

Owns the messages. Must not know how a run works.
"""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import rich_click as click

from fencepost.console.named_files import read_plan
from fencepost.console.output import Output, add_row, table
from fencepost.report.commands import replay_rate, show_stored
from fencepost.traces.errors import ExitCode, FencepostError

if TYPE_CHECKING:
    from fencepost.campaign.shrink.rates import Rate
    from fencepost.campaign.workers.results import Job
    from fencepost.traces.plan import Plan

MOST_SAID = 3
"""Findings of one kind that are written out."""


def real_job_of(folder: Path | None) -> "Job | None":
    """The job of a campaign's folder, if it is one against a real system."""
    from fencepost.campaign.driver.ledger import ABOUT, read_about

    if folder is None or not (folder / ABOUT).is_file():
        return None
    job = read_about(folder).job
    return job if job.real else None


def _plan(folder: Path, job: "Job", seed: int | None, plan_file: Path | None) -> "Plan":
    """What the folder says was run: the plan that is kept of a finding, or else the swarm's, as the run was
    steered."""
    from fencepost.campaign.workers.plans import plan_of
    from fencepost.campaign.workers.real_worker import FINDINGS, PLAN, checked
    from fencepost.traces.store import TraceStore

    if (seed is None) == (plan_file is None):
        raise click.UsageError("expected one of --trace and --plan with the folder of a campaign")
    if seed is not None and (kept := folder / FINDINGS / str(seed) / PLAN).is_file():
        plan_file = kept
    if plan_file is not None:
        return checked(read_plan(plan_file))
    assert seed is not None
    if job.plan or job.control:
        return plan_of(job, seed)
    return plan_of(job, seed, TraceStore.open(folder).read(seed).profile)


def replay_real(
    folder: Path,
    job: "Job",
    seed: int | None,
    plan_file: Path | None,
    times: int,
    checks: tuple[str, ...] | None,
    output: Output,
) -> ExitCode:
    """Run a plan again, so often, in a cluster of its own, and print how often it showed what.

    Parameters:
      folder, job: of the campaign.
      seed, plan_file: what to run; one of them.
      times: how often.
      checks: judges by name; None: the campaign's.
      output: for the result.
    Returns: FINDINGS if any run showed one.
    """
    from fencepost.campaign.shrink.rates import Repeater

    plan = _plan(folder, job, seed, plan_file)
    asked = job if checks is None else attrs.evolve(job, checks=checks)
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-") as place,
        Repeater(asked, Path(place)) as repeater,
        output.progress("runs", times) as bar,
    ):
        rate = repeater.rate(
            plan, times, lambda number, result: bar.to(number, result.anomaly or "no finding")
        )
    if seed is not None:
        output.say(f"The recorded run: {show_stored(folder, seed)}")
    _tell(rate, output)
    code = ExitCode.FINDINGS if rate.anomalies else ExitCode.NOTHING_FOUND
    if rate.undecided and not rate.anomalies:
        code = ExitCode.UNDECIDED
    return output.end(
        code,
        {
            "system": job.system,
            "seed": plan.seed,
            "runs": rate.runs,
            "anomalies": rate.anomalies,
            "undecided": rate.undecided,
        },
    )


def _tell(rate: "Rate", output: Output) -> None:
    rows = table("anomaly", ">runs", "for example")
    for name, count in sorted(rate.anomalies.items()):
        examples = [
            finding.seen for one in rate.results for finding in one.findings if finding.anomaly == name
        ]
        add_row(rows, name, f"{count} of {rate.runs}", "; ".join(examples[:MOST_SAID]), style="bold red")
    if rate.anomalies:
        output.say(rows)
    output.say(rate.words())


def shrink_real(
    folder: Path, job: "Job", seed: int | None, anomaly: str, out: Path, seconds: float | None, output: Output
) -> ExitCode:
    """Shrink the plan of a recorded run by its rate.

    Parameters:
      folder, job: of the campaign.
      seed: of the run.
      anomaly: what must remain; "": what named the run, or what the plan shows most often now.
      out: the file for the best plan so far.
      seconds: time limit; None: none.
      output: for the result.
    Returns: FINDINGS.
    Raises: FencepostError if the run showed nothing, or its plan shows it too seldom.
    """
    from fencepost.campaign.driver.ledger import verdicts_of
    from fencepost.campaign.shrink.oracle import Target, key_of
    from fencepost.campaign.shrink.rates import (
        FIRST_RUNS,
        RateOracle,
        Repeater,
        rate_of,
        shows,
        shrink_by_rate,
        target_of,
    )
    from fencepost.campaign.shrink.text import write_plan

    plan = _plan(folder, job, seed, None)
    known = verdicts_of(folder).get(plan.seed)
    wanted = anomaly or (known.anomaly if known is not None else None) or ""
    if not wanted:
        raise FencepostError(
            expected="a run with a finding", seen="one without", where=f"trace {seed} of {folder}"
        )
    write_plan(out, plan)
    with tempfile.TemporaryDirectory(prefix="fencepost-") as place, Repeater(job, Path(place)) as repeater:
        rate = repeater.rate(plan, FIRST_RUNS)
        output.note(f"The plan again, {rate.words()}")
        if not anomaly:
            wanted, _ = target_of(wanted, rate)
        shown = sum(shows(one, wanted) for one in rate.results)
        oracle = RateOracle(
            target=Target(anomaly=wanted),
            rate=rate_of(shown, rate.runs),
            once=repeater.once,
            seconds=seconds,
            rates={key_of(plan): (shown, rate.runs)},
        )
        size = len(plan.operations) + len(plan.faults)
        with output.progress(f"shrinking to {wanted}", size) as bar:
            small = shrink_by_rate(
                plan,
                oracle,
                on_better=lambda better: write_plan(out, better),
                on_progress=lambda now: bar.to(
                    size - now.operations - now.faults,
                    f"{now.operations} operations, {now.faults} faults left, {now.runs} runs",
                ),
            )
    counts = {
        name: [len(getattr(plan, name)), len(getattr(small.plan, name))] for name in ("operations", "faults")
    }
    output.say(
        f"{wanted}: {counts['operations'][0]} operations and {counts['faults'][0]} faults became "
        f"{counts['operations'][1]} and {counts['faults'][1]}, in {small.runs} runs and {small.wall_s:.0f} s",
        f"It still shows about as often. Its rate: {replay_rate(folder, out, times=10)}",
    )
    code = ExitCode.INTERRUPTED if small.interrupted else ExitCode.FINDINGS
    return output.end(
        code,
        {
            "anomaly": wanted,
            "before": {name: before for name, (before, _) in counts.items()},
            "after": {name: after for name, (_, after) in counts.items()},
            "runs": small.runs,
            "finished": small.finished,
            "out": str(out),
        },
    )

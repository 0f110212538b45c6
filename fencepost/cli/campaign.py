"""`fencepost campaign`: seeds into plans, plans into runs, runs into traces, traces judged."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from fencepost.cli.console import Output, add_row, table
from fencepost.cli.options import (
    SeedRange,
    bug_option,
    checks_option,
    jobs_option,
    json_option,
    out_option,
    profile_option,
    replay_stored,
    split_names,
)
from fencepost.traces.errors import EnvironmentError_, ExitCode

if TYPE_CHECKING:
    from fencepost.campaign.driver import Campaign
    from fencepost.campaign.results import CampaignResult

MOST_NAMED = 5
"""Seeds of a kind that the summary names."""


@click.command("campaign", short_help="Break the cluster under many seeds, and keep what was seen.")
@click.option(
    "--seeds",
    type=SeedRange(),
    default="0:100",
    show_default=True,
    help="Seeds A:B (B not included), or one seed N.",
)
@jobs_option
@out_option("out/campaign", "Folder for traces and verdicts.")
@bug_option
@profile_option
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Run this plan (JSON) under every seed, no swarm.",
)
@checks_option
@click.option(
    "--resume", is_flag=True, help="Go on with the campaign in --out: runs that are there are not run again."
)
@json_option
def command(
    seeds: range,
    jobs: int,
    out: Path,
    bugs: tuple[str, ...],
    profile: str,
    plan_file: Path | None,
    checks: str | None,
    resume: bool,
    as_json: bool,
) -> ExitCode:
    """Run seeded fault-injection runs against the reference implementation, and judge each.

    A seed fixes everything: the cluster, the clients, the faults, every delay. Each finished run is saved before it is
    judged; a campaign that is killed, or ended with Ctrl-C, goes on with --resume and loses nothing.

    \b
    Examples
      fencepost campaign --seeds 0:500 --jobs 2 --out out/healthy
      # after a Ctrl-C
      fencepost campaign --seeds 0:500 --out out/healthy --resume
      # does it find a known bug?
      fencepost campaign --seeds 0:200 --out out/broken --bug KIP-101
      # one plan of yours, 50 seeds
      fencepost campaign --seeds 0:50 --out out/mine --plan mine.json
      # judge the traces again, on Spark
      fencepost mine out/healthy --out out/mined
    """
    from fencepost.campaign.bugs import parts_with
    from fencepost.campaign.driver import Campaign
    from fencepost.campaign.results import Job
    from fencepost.checkers.judges import checks_by_name
    from fencepost.traces.plan_json import plan_from_json, plan_to_json

    output = Output(as_json)
    parts_with(bugs)
    names = split_names(checks)
    if names is not None:
        checks_by_name(names)
    plan = ""
    if plan_file is not None:
        plan = plan_to_json(plan_from_json(read_bytes(plan_file), where=str(plan_file)))
    job = Job(profile=profile, bugs=bugs, plan=plan, checks=names)
    result = drive_with_bar(Campaign(seeds=seeds, job=job, jobs=jobs, out=out, resume=resume), output)
    show(result, out, output)
    output.emit({**as_dict(result), "out": str(out), "exit_code": int(result.exit_code)})
    return result.exit_code


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises EnvironmentError_ in one sentence."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise EnvironmentError_(
            expected="a readable file", seen=error.strerror or str(error), where=str(path)
        ) from None


def drive_with_bar(campaign: "Campaign", output: Output, what: str = "runs") -> "CampaignResult":
    """Drive a campaign behind a progress bar."""
    from fencepost.campaign.driver import drive

    with output.progress(what, len(campaign.seeds)) as bar:
        return drive(campaign, lambda progress: bar.to(progress.done, f"{progress.findings} with findings"))


def as_dict(result: "CampaignResult") -> dict[str, Any]:
    """A campaign's result as JSON will show it."""
    values = attrs.asdict(result)
    values["failing"] = [{"seed": seed, "anomaly": anomaly} for seed, anomaly in result.failing]
    values["crashed"] = [{"seed": seed, "why": why} for seed, why in result.crashed]
    return {**values, "findings": result.findings, "runs_per_second": round(result.runs_per_second, 2)}


def _named(seeds: tuple[int, ...]) -> str:
    more = f" and {len(seeds) - MOST_NAMED} more" if len(seeds) > MOST_NAMED else ""
    return (
        f"seed{'s' if len(seeds) > 1 else ''} " + ", ".join(str(seed) for seed in seeds[:MOST_NAMED]) + more
    )


def show(result: "CampaignResult", out: Path | None, output: Output) -> None:
    """The summary of a campaign for a person."""
    sums = table("", ">", "")
    add_row(
        sums,
        "runs judged",
        f"{result.finished} of {result.seeds}",
        f"{result.ran} now, {result.runs_per_second:.1f}/s",
    )
    add_row(sums, "operations", result.operations, f"and {result.events} protocol events")
    for anomaly, count in result.anomalies.items():
        first = next(seed for seed, name in result.failing if name == anomaly) if result.failing else "?"
        add_row(sums, anomaly, count, f"first at seed {first}", style="bold red")
    if not result.anomalies:
        add_row(sums, "findings", 0, "", style="green")
    for what, seeds in (("too weak to mean anything", result.broken), ("undecided", result.undecided)):
        if seeds:
            add_row(sums, what, len(seeds), _named(seeds), style="yellow")
    if result.crashed:
        seed, why = result.crashed[0]
        add_row(sums, "crashed", len(result.crashed), f"seed {seed}: {why}", style="bold yellow")
    repeats = (
        "all with the same digest"
        if not result.disagreeing
        else f"ANOTHER DIGEST at {_named(result.disagreeing)}"
    )
    if result.rechecked:
        add_row(sums, "run twice", result.rechecked, repeats, style="bold red" if result.disagreeing else "")
    output.say(sums)
    if result.failing and out is not None:
        output.say(f"\nSee the first one: {replay_stored(out, result.failing[0][0])}")
    if result.interrupted:
        output.note("interrupted; every finished run is kept, --resume goes on")

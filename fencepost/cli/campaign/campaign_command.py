"""`fencepost campaign`: makes plans from seeds, runs them, records traces and judges them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from fencepost.cli.campaign import bugs as planted_bugs
from fencepost.cli.campaign.driving import as_dict, drive_with_bar, show
from fencepost.cli.campaign.real import (
    Asked,
    real_campaign,
    real_job,
    real_options,
    refuse_for_real,
    refuse_for_simulation,
)
from fencepost.console.branching import Branching
from fencepost.console.findings import Findings, findings_options, reported
from fencepost.console.named_files import read_plan
from fencepost.console.options import (
    FILE,
    Named,
    bug_option,
    checks_option,
    default_option,
    html_option,
    jobs_option,
    json_option,
    master_option,
    out_option,
    profile_option,
    seeds_option,
    split_names,
)
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.campaign.workers.results import CampaignResult, Job
    from fencepost.cli.campaign.driving import Driver

SIMULATION = "simulation"


@click.group("campaign", cls=Branching)
@seeds_option
@jobs_option
@out_option("out/campaign", "Folder for traces and verdicts.")
@bug_option
@profile_option
@click.option(
    "--faults",
    metavar="LIST",
    help="Draw only from these kinds of fault and request, separated by commas. [default: all of the "
    "profile's]",
)
@click.option("--list-faults", is_flag=True, help="Show the kinds of fault and request, and do nothing else.")
@click.option(
    "--plan",
    "plan_file",
    type=FILE,
    help="Run this plan (JSON) under every seed, instead of the swarm's plans.",
)
@checks_option
@click.option(
    "--resume", is_flag=True, help="Continue the campaign in --out: finished runs are not run again."
)
@click.option(
    "--shrink",
    is_flag=True,
    help="Then shrink the plan of the first run of each anomaly, as `fencepost shrink` does.",
)
@click.option(
    "--steer",
    is_flag=True,
    help="Steer every 50 seeds toward marks not reached so far (docs/reference/swarm.md), every 10 "
    "against a real system; --resume continues it.",
)
@default_option(
    "--asking/--no-asking",
    default=True,
    help="Ask the brokers in each run about state that no other client sees.",
)
@click.option("--list-marks", is_flag=True, help="Show the marks that a run may reach, and do nothing else.")
@default_option(
    "--engine",
    type=Named(["local", "spark"]),
    default="local",
    help="Worker processes on this machine (--jobs), or the executors of Spark (--master).",
)
@master_option
@html_option(
    "Write the result also as a page, with the first run of each anomaly drawn, and a page of each of "
    "these runs next to it."
)
@findings_options
@real_options
@json_option
def command(
    seeds: range,
    jobs: int,
    out: Path,
    bugs: tuple[str, ...],
    profile: str,
    faults: str | None,
    list_faults: bool,
    plan_file: Path | None,
    checks: str | None,
    resume: bool,
    shrink: bool,
    steer: bool,
    asking: bool,
    list_marks: bool,
    engine: str,
    master: str | None,
    html: Path | None,
    findings: Findings,
    output: Output,
    **real: Any,
) -> ExitCode:
    """Run seeded fault-injection runs against the reference implementation, and judge each.

    A seed determines everything: the cluster, the clients, the faults, every delay. Each finished run is
    saved before it is judged. A campaign that was killed, or ended with Ctrl-C, continues with --resume and
    loses nothing.

    \b
    Examples
      fencepost campaign --seeds 0:500 --jobs 2 --out out/healthy
      # after a Ctrl-C
      fencepost campaign --seeds 0:500 --out out/healthy --resume
      # does it find a known bug?
      fencepost campaign --seeds 0:200 --out out/broken --bug KIP-101
      # only sessions that expire while replicas move
      fencepost campaign --seeds 0:200 --out out/moves --faults expire_session,reassign_move
      # steer toward what was not reached yet
      fencepost campaign --seeds 0:500 --out out/steered --steer
      # one plan of yours, 50 seeds
      fencepost campaign --seeds 0:50 --out out/mine --plan mine.json
      # a hundred thousand seeds on a cluster (docs/how-to/spark-cluster.md)
      fencepost campaign --seeds 0:100000 --out /shared/out/wide --engine spark --master spark://host:7077
      # in CI: only what is not known yet fails (docs/how-to/ci.md)
      fencepost campaign --seeds 0:500 --out out/nightly --baseline known.json --junit campaign.xml
      # the result as a page
      fencepost campaign --seeds 0:500 --out out/healthy --resume --html out/healthy.html
      # Apache Kafka's own brokers
      fencepost campaign --system apache-kafka:4.4.0 --seeds 0:20 --out out/kafka
      # judge the traces again, on Spark
      fencepost mine out/healthy --out out/mined
    """
    from fencepost.campaign.driver.campaign_driver import Campaign
    from fencepost.cli.campaign.shrinking import shrink_found

    if list_faults:
        return show_faults(output)
    if list_marks:
        return show_marks(output)
    if master is not None and engine != "spark":
        raise click.UsageError("expected --master with --engine spark, saw it alone")
    steer_from = seeds.start if steer else -1
    asked = Asked(bugs, profile, split_names(faults), plan_file, split_names(checks), steer_from)
    if real["system"] != SIMULATION:
        refuse_for_real(shrink=shrink, engine=engine != "local")
        make, job = real_campaign, real_job(real, asked, output)
    else:
        refuse_for_simulation(real)
        make, job = Campaign, _job(asked)
    job = attrs.evolve(job, asking=asking)
    campaign = make(seeds=seeds, job=job, jobs=jobs, out=out, resume=resume)
    result = drive_with_bar(campaign, output, driver=driver_of(engine, master))
    show(result, out, output, checks=job.checks or (), real=job.real)
    if html is not None:
        write_html(html, result, out, output, checks=job.checks or ())
    shrunk, code = shrink_found(result, job, out, output, jobs) if shrink else ([], result.exit_code)
    _add_to(findings, out, seeds)
    codes = result.exit_codes | ({code} & {ExitCode.INTERRUPTED})
    return findings.end(output, codes, {**as_dict(result), "out": str(out), "shrunk": shrunk})


def _add_to(findings: Findings, out: Path, seeds: range) -> None:
    """Take in the findings of the seeds' runs. The same in another run is what breaks the same promise, in
    the judge's words without numbers and names: seeds draw those."""
    from fencepost.campaign.driver.ledger import verdicts_of
    from fencepost.mining.triage.evidence import canonical

    for seed, verdict in verdicts_of(out).items() if findings.wanted else ():
        for one in verdict.findings if seed in seeds else ():
            findings.add(reported(one, canonical(one.expected, {one.topic} if one.topic else ())))


def _job(asked: Asked) -> "Job":
    """The job of every run. Raises FencepostError for an unknown name, UsageError for options that exclude
    each other."""
    from fencepost.bugs import parts_with
    from fencepost.campaign.swarm.profiles import profile_named
    from fencepost.campaign.workers.results import Job
    from fencepost.checkers.judges import checks_by_name
    from fencepost.traces.plan_json import plan_to_json

    parts_with(asked.bugs)
    if asked.checks is not None:
        checks_by_name(asked.checks)
    plan = "" if asked.plan_file is None else plan_to_json(read_plan(asked.plan_file))
    kinds = asked.faults or ()
    profile_named(asked.profile, kinds)
    if asked.steer_from >= 0 and plan:
        raise click.UsageError("--steer changes the swarm's draws: with --plan there are none.")
    return Job(
        profile=asked.profile, bugs=asked.bugs, plan=plan, checks=asked.checks, faults=kinds,
        steer_from=asked.steer_from,
    )  # fmt: skip


def show_faults(output: Output) -> ExitCode:
    """The table of kinds: parameters that the swarm draws, what they cost, which systems can have them."""
    from fencepost.run.faults.table import FAULTS, KINDS

    kinds = []
    for name, kind in KINDS.items():
        drawn = "" if kind.parameter == (0, 0) else f" ({kind.parameter[0]} to {kind.parameter[1]})"
        costs = {"stops the broker": kind.stops, "loses data": kind.loses}
        systems = {"simulated": name in FAULTS, "embedded": kind.simulated}
        real = [] if kind.real is None else [f"real ({kind.real.verb})"]
        kinds.append(
            {
                "kind": name,
                "says": kind.says,
                "parameter": kind.parameter_says + drawn,
                "costs": [says for says, is_so in costs.items() if is_so],
                "systems": [says for says, is_so in systems.items() if is_so] + real,
            }
        )
    columns = {"kind": "kind", "what happens": "says", "its parameter": "parameter"}
    return output.listed("faults", kinds, columns | {"costs": "costs", "systems": "systems"})


def show_marks(output: Output) -> ExitCode:
    """The table of marks, with the profiles that can reach each."""
    from fencepost.campaign.marks.marks import MARKS
    from fencepost.campaign.marks.real_marks import REAL_MARKS
    from fencepost.campaign.swarm import real_systems
    from fencepost.campaign.swarm.mark_weights import marks_possible
    from fencepost.campaign.swarm.profiles import GENERAL, PROFILES
    from fencepost.run.faults.table import REAL_FAULTS

    reached = {GENERAL: marks_possible(PROFILES[GENERAL])}
    for name in real_systems.PROFILES:
        bounds = real_systems.bounds_of(name, tuple(REAL_FAULTS))
        reached[f"{name} (--system)"] = marks_possible(bounds, REAL_MARKS)
    marks = [
        {
            "mark": mark.name,
            "says": mark.says,
            "profiles": [name for name, possible in reached.items() if mark.name in possible],
        }
        for mark in dict.fromkeys((*MARKS, *REAL_MARKS))
    ]
    columns = {"mark": "mark", "what it says": "says", "profiles": "profiles"}
    return output.listed("marks", marks, columns)


def driver_of(engine: str, master: str | None) -> "Driver | None":
    """The driver of a campaign. engine: "local" or "spark"; master: Spark's, None for the default. Returns
    None for the local driver."""
    if engine == "local":
        return None
    from fencepost.mining.campaign.spark_campaign import drive_on_spark

    return partial(drive_on_spark, master=master)


def write_html(
    path: Path, result: "CampaignResult", out: Path, output: Output, *, checks: tuple[str, ...]
) -> None:
    """Write the page of the campaign in `out` to `path`. checks: the checks that judged it. Raises
    FencepostError if a file cannot be written."""
    from fencepost.campaign.campaign_page import page_of
    from fencepost.campaign.driver.ledger import verdicts_of
    from fencepost.console.named_files import write_text

    text = page_of(result, verdicts_of(out).values(), out, page=path, checks=checks)
    write_text(path, text)
    output.say(f"\nThe page is {path}")


command.add_command(planted_bugs.command)

"""`python -m tools.marks [PROFILE...]`: which marks the swarm reaches, how often, and at which seed first.

Owns the measurement of docs/reference/plans.md. Every run is judged, too: what is found ends in the table
like what is never reached.
"""

import sys

import rich_click as click

from fencepost.campaign.driver.driver import Campaign, CampaignProgress, drive
from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.campaign.workers.results import CampaignResult, Job
from fencepost.console.options import SeedRange, jobs_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode, strongest
from tools import program

QUIET = ("calm",)
"""Profiles of which nothing is expected."""


@click.command()
@click.argument("profiles", nargs=-1, type=click.Choice(sorted(PROFILES)))
@click.option(
    "--seeds", type=SeedRange(), default="0:2000", show_default=True, help="Seeds A:B of each profile."
)
@click.option("--steer", is_flag=True, help="Lean toward what was not reached yet.")
@jobs_option
@json_option
def command(profiles: tuple[str, ...], seeds: range, steer: bool, jobs: int, as_json: bool) -> None:
    """Run seeds of some profiles (all but calm) and tell which marks they reached.

    Exits 1 if a run had a finding, 3 if a mark that the profile could reach was not reached.
    """
    output, told, codes = Output(as_json), [], set()
    for profile in profiles or [name for name in PROFILES if name not in QUIET]:
        job = Job(profile=profile, steer_from=seeds.start if steer else -1)
        result, first = _reached(Campaign(seeds=seeds, job=job, jobs=jobs), output)
        rows = table(f"{profile}, {result.finished} runs", ">runs", ">first seed")
        for name in (*result.marks, *result.never_reached):
            add_row(rows, name, result.marks.get(name, 0), first.get(name, "never"))
        for anomaly, count in result.anomalies.items():
            add_row(rows, anomaly, count, "a finding", style="bold red")
        output.say(rows)
        told.append({"profile": profile, "runs": result.finished, "marks": result.marks, "first": first})
        codes |= {result.exit_code, ExitCode.UNDECIDED if result.never_reached else ExitCode.NOTHING_FOUND}
    output.emit({"profiles": told})
    sys.exit(strongest(codes))


def _reached(campaign: Campaign, output: Output) -> tuple[CampaignResult, dict[str, int]]:
    """What a campaign came to, and the lowest seed that reached each mark."""
    first: dict[str, int] = {}

    def on_progress(progress: CampaignProgress) -> None:
        seed = progress.result.seed
        first.update({mark: min(first.get(mark, seed), seed) for mark in progress.result.marks})
        bar.to(progress.done, f"{progress.findings} with findings")

    with output.progress(campaign.job.profile, len(campaign.seeds)) as bar:
        return drive(campaign, on_progress), first


if __name__ == "__main__":
    program.run(command, "marks")

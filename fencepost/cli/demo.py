"""`fencepost demo`: everything once. It fails if the tool does not do its job."""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from fencepost.cli.campaign.driving import as_dict, drive_with_bar
from fencepost.cli.campaign.driving import show as show_campaign
from fencepost.cli.mine.mine_command import mine_with_bar
from fencepost.cli.mine.mine_command import show as show_mining
from fencepost.cli.replay import by_rank
from fencepost.console.options import default_option, jobs_option, json_option, out_option, seeds_option
from fencepost.console.output import Output
from fencepost.report.commands import replay_stored
from fencepost.traces.errors import ExitCode, FencepostError

if TYPE_CHECKING:
    from fencepost.campaign.workers.results import CampaignResult
    from fencepost.mining.results.summary import Summary

MARK = ".fencepost-demo"
"""A file that marks a demo's folder, so that the next demo may replace it."""
HEALTHY, PLANTED, MINED = "healthy", "planted", "mined"
DIGEST_SAMPLE = 20
"""One run in so many is run twice, so that a short campaign still has a sample."""


@click.command("demo")
@seeds_option
@default_option("--bug", default="KIP-101", metavar="ID", help="The bug to plant.")
@jobs_option
@out_option("out/demo", "Folder for all output; an earlier demo there is replaced.")
@default_option("--master", default="local[*]", help="Where Spark runs.")
@json_option
def command(seeds: range, bug: str, jobs: int, out: Path, master: str, output: Output) -> ExitCode:
    """A healthy campaign and one with a planted bug, mined together by Spark.

    Prints the findings and explains one of them: what was expected, what was seen, the two operations that
    prove it, the timeline around them, and the command that replays it. Exit code 0 means that the healthy
    part has no finding and the planted part has one; anything else is a failure.

    \b
    Examples
      fencepost demo
      fencepost demo --bug KAFKA-6082 --seeds 0:400
    """
    from fencepost.bugs import parts_with
    from fencepost.campaign.driver.campaign_driver import Campaign
    from fencepost.campaign.workers.results import Job
    from fencepost.mining.spark.session import check_spark

    started = time.monotonic()
    parts_with((bug,))
    check_spark()
    _clear(out)
    results = {}
    for name, bugs in ((HEALTHY, ()), (PLANTED, (bug,))):
        planted = f" with {bug} planted" if bugs else ""
        output.say(f"{name}: {len(seeds)} runs{planted}")
        campaign = Campaign(
            seeds=seeds, job=Job(bugs=bugs), jobs=jobs, out=out / name, recheck_one_in=DIGEST_SAMPLE
        )
        results[name] = drive_with_bar(campaign, output, name)
        if results[name].interrupted:
            return ExitCode.INTERRUPTED
        show_campaign(results[name], None, output)
        output.say("")
    output.say("Spark judges both together")
    summary = mine_with_bar([out / HEALTHY, out / PLANTED], out / MINED, output, master=master)
    show_mining(summary, output)
    _explain(summary, out / PLANTED, output)
    failures = _failures(results, summary, out, bug)
    output.say(f"\n{time.monotonic() - started:.0f} s in all")
    for failure in failures:
        output.note(f"THE DEMO FAILED: {failure}")
    code = ExitCode.FINDINGS if failures else ExitCode.NOTHING_FOUND
    return output.end(
        code,
        {
            "healthy": as_dict(results[HEALTHY]),
            "planted": as_dict(results[PLANTED]),
            "mined": {"traces": summary.traces, "illegal": summary.illegal, "anomalies": summary.anomalies},
            "bug": bug,
            "failures": failures,
            "seconds": round(time.monotonic() - started, 1),
        },
    )


def _clear(out: Path) -> None:
    """Make `out` an empty folder with the mark of a demo. Raises FencepostError if it contains anything but
    an earlier demo."""
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MARK).exists())):
        raise FencepostError(
            expected="a new folder, or an earlier demo's",
            seen="other files in it",
            where=str(out),
            hint="choose another with --out",
        )
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()


def _explain(summary: "Summary", planted: Path, output: Output) -> None:
    """Explain a finding of the planted part on its timeline; if possible one with two client operations as
    its proof."""
    from fencepost.checkers.judges import DEFAULT_CHECKS, judge
    from fencepost.report.explain import explain
    from fencepost.traces.store import TraceStore

    store, named = TraceStore.open(planted), []
    for trace_id in dict.fromkeys(one.trace_id for one in summary.samples if one.source == str(planted)):
        trace = store.read(trace_id)
        headline = by_rank(judge(trace, DEFAULT_CHECKS))[0]
        named.append((headline, trace))
        if len(headline.operations) >= 2:
            break
    if not named:
        return
    headline, trace = named[-1] if len(named[-1][0].operations) >= 2 else named[0]
    replay = replay_stored(planted, trace.trace_id)
    output.say("", explain(headline, trace, replay=replay).text(), "", f"See it again: {replay}")


def _failures(results: "dict[str, CampaignResult]", summary: "Summary", out: Path, bug: str) -> list[str]:
    """Why the demo failed; empty if it succeeded."""
    from fencepost.bugs import BUGS

    healthy, planted = (summary.illegal.get(str(out / name), 0) for name in (HEALTHY, PLANTED))
    failures = []
    if healthy or results[HEALTHY].findings:
        failures.append(f"the healthy part has {max(healthy, results[HEALTHY].findings)} runs with a finding")
    if not planted:
        failures.append(f"no run with {bug} planted has a finding")
    elif not BUGS[bug].anomalies & set(summary.anomalies):
        failures.append(f"no finding is of a kind that {bug} explains")
    for name, result in results.items():
        if result.crashed:
            failures.append(
                f"{len(result.crashed)} runs of the {name} part crashed, the first: {result.crashed[0][1]}"
            )
        if result.disagreeing:
            failures.append(f"{len(result.disagreeing)} runs of the {name} part did not repeat")
        judged = summary.illegal.get(str(out / name), 0)
        if judged != result.findings:
            failures.append(
                f"Spark found {judged} failing runs in the {name} part, the campaign {result.findings}"
            )
    return failures

"""A campaign's run with a progress bar, and its result for a person and as JSON: for `campaign`
and others.

Owns the words of the summary. Must not know options.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from fencepost.console.output import Output, add_row, table
from fencepost.report.commands import replay_stored, show_stored, shrink_stored
from fencepost.traces.anomalies import first_by_rank

if TYPE_CHECKING:
    from fencepost.campaign.driver.campaign_driver import Campaign, CampaignProgress
    from fencepost.campaign.workers.results import CampaignResult

    Driver = Callable[[Campaign, Callable[[CampaignProgress], None]], CampaignResult]

MOST_NAMED = 5
"""How many seeds of a kind the summary names."""


def drive_with_bar(
    campaign: "Campaign", output: Output, what: str = "runs", driver: "Driver | None" = None
) -> "CampaignResult":
    """Drive a campaign with a progress bar. what: the bar's unit; driver: None for the local one."""
    from fencepost.campaign.driver.campaign_driver import drive

    with output.progress(what, len(campaign.seeds)) as bar:
        return (driver or drive)(
            campaign, lambda progress: bar.to(progress.done, f"{progress.findings} with findings")
        )


def as_dict(result: "CampaignResult") -> dict[str, Any]:
    """A campaign's result for --json."""
    values = attrs.asdict(result)
    values["failing"] = [{"seed": seed, "anomaly": anomaly} for seed, anomaly in result.failing]
    values["crashed"] = [{"seed": seed, "why": why} for seed, why in result.crashed]
    return {**values, "findings": result.findings, "runs_per_second": round(result.runs_per_second, 2)}


def _named(seeds: tuple[int, ...]) -> str:
    more = f" and {len(seeds) - MOST_NAMED} more" if len(seeds) > MOST_NAMED else ""
    return (
        f"seed{'s' if len(seeds) > 1 else ''} " + ", ".join(str(seed) for seed in seeds[:MOST_NAMED]) + more
    )


def show(
    result: "CampaignResult",
    out: Path | None,
    output: Output,
    *,
    checks: tuple[str, ...] = (),
    real: bool = False,
) -> None:
    """Print the summary of a campaign. out: its folder, None if nothing was kept; checks: the judges that
    were asked, () for the default ones. real: whether its runs took real time."""
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
    if result.marks:
        reached, wanted = len(result.marks), len(result.marks) + len(result.never_reached)
        rarest = min(result.marks, key=lambda name: result.marks[name])
        add_row(
            sums,
            "marks reached",
            f"{reached} of {wanted}",
            f"the rarest, {rarest}, {result.marks[rarest]} times",
        )
    if result.never_reached:
        add_row(
            sums, "never reached", len(result.never_reached), ", ".join(result.never_reached), style="yellow"
        )
    output.say(sums)
    if result.failing and out is not None:
        worst = first_by_rank({name for _, name in result.failing})
        first = next(seed for seed, name in result.failing if name == worst)
        again = replay_stored(out, first, checks=checks)
        output.say(
            f"\nSee the worst one: {show_stored(out, first) if real else again}",
            *([f"How often it shows: {again} --times 10"] if real else []),
            f"Shrink it: {shrink_stored(out, first)}",
        )
    if result.interrupted:
        output.note("interrupted; every finished run is kept, --resume continues")

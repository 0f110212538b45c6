"""`fencepost mine`: traces by the million, judged on Spark."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import rich_click as click

from fencepost.cli.console import Output, add_row, table
from fencepost.cli.options import checks_option, json_option, out_option, split_names
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.mining.summary import Summary

MOST_NAMED = 5
"""Unreadable pieces that are named; the quarantine table has all."""


@click.command("mine", short_help="Judge folders of traces on Spark.")
@click.argument("inputs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDER...")
@out_option(
    "out/mined", "New or empty folder for findings, verdicts and quarantine (Parquet), and summary.json."
)
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
@checks_option
@click.option(
    "--profile",
    help="What to ask of the log, instead of what each trace claims: default, session, strong or content.",
)
@json_option
def command(
    inputs: tuple[Path, ...], out: Path, master: str, checks: str | None, profile: str | None, as_json: bool
) -> ExitCode:
    """Judge whole campaigns on Spark, with the judges of `fencepost check`.

    The tasks read the columns themselves; nothing is shuffled. Needs the spark extra and a Java runtime of 17 or later.

    \b
    Examples
      fencepost mine out/healthy out/broken --out out/mined
      fencepost mine out/big --out out/mined --master 'local[8]'
      fencepost mine out/big --out out/logs --checks log
    """
    output = Output(as_json)
    summary = mine_with_bar(
        list(inputs), out, output, master=master, checks=split_names(checks), profile=profile
    )
    show(summary, output)
    output.emit({**msgspec.json.decode(summary.to_json()), "exit_code": int(summary.exit_code)})
    return summary.exit_code


def mine_with_bar(
    inputs: list[Path],
    out: Path,
    output: Output,
    *,
    master: str,
    checks: tuple[str, ...] | None = None,
    profile: str | None = None,
) -> "Summary":
    """Mine behind a progress bar. Raises FencepostError in one sentence, also for what the machine lacks."""
    from fencepost.checkers.judges import DEFAULT_CHECKS
    from fencepost.mining.mine import mine

    with output.progress("tasks", 1) as bar:

        def progress(done: int, total: int) -> None:
            bar.progress.update(bar.task, completed=done, total=total)

        return mine(
            inputs, out, master=master, checks=checks or DEFAULT_CHECKS, profile=profile, progress=progress
        )


def show(summary: "Summary", output: Output) -> None:
    """The summary for a person: verdicts by check, findings by anomaly with one trace each, what was unreadable."""
    inputs = table("input", ">traces", ">with findings")
    for source, count in summary.traces.items():
        illegal = summary.illegal.get(source, 0)
        add_row(inputs, source, count, illegal, style="bold red" if illegal else "green")
    output.say(inputs, "", _checks(summary))
    if summary.samples:
        output.say("", _anomalies(summary))
    for piece in summary.quarantine[:MOST_NAMED]:
        output.note(f"unreadable, left out: {piece.reason}")
    if summary.quarantined > MOST_NAMED:
        output.note(
            f"and {summary.quarantined - MOST_NAMED} more unreadable pieces, see {summary.out}/quarantine"
        )
    output.say(
        f"\n{summary.operations} operations and {summary.events} events judged; results in {summary.out}"
    )


def _checks(summary: "Summary") -> Any:
    names = sorted({decision for found in summary.decisions.values() for decision in found})
    checks = table("check", *(f">{name.replace('_', ' ')}" for name in names))
    for check, found in summary.decisions.items():
        add_row(checks, check, *(found.get(name, 0) for name in names))
    return checks


def _anomalies(summary: "Summary") -> Any:
    anomalies = table("anomaly", ">traces", ">findings", "smallest one")
    for sample in summary.samples:
        name = sample.finding.anomaly
        smallest = sample.replay or f"{sample.source} trace {sample.trace_id}"
        add_row(anomalies, name, summary.traces_with[name], summary.anomalies[name], smallest, style="red")
    return anomalies

"""`fencepost watch`: judges traces while they arrive in a folder."""

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from fencepost.console.options import (
    ANY_PATH,
    NumberRange,
    default_option,
    demanded_profile_option,
    json_lines_option,
    master_option,
    out_option,
)
from fencepost.console.output import Output, add_row, table
from fencepost.report.event_words import printable
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.mining.watch.counts import MicroBatch, Watched
    from fencepost.mining.watch.out import Row

LONGEST = 400
"""Characters of a foreign text in one line of output."""


@click.command("watch")
@click.argument("folder", type=ANY_PATH, metavar="FOLDER")
@out_option(
    "out/watched",
    "Folder for findings, logs and quarantine (Parquet) and the checkpoint; continues an earlier watch.",
)
@click.option("--once", is_flag=True, help="Judge what is there, then end; the next call continues.")
@default_option(
    "--horizon",
    type=click.IntRange(1),
    default=10_000,
    metavar="RECORDS",
    help="Records and operations to remember of each log under way. Older ones are not "
    "judged: such a log is undecided.",
)
@default_option(
    "--lateness",
    type=NumberRange(0, 1e9),
    default=5.0,
    metavar="SECONDS",
    help="How much later, in the trace's own time, an operation may arrive than those that came after it. "
    "Not used if the trace has low watermarks.",
)
@default_option(
    "--interval",
    type=NumberRange(0.1, 3600),
    default=1.0,
    metavar="SECONDS",
    help="Time between looks at the folder.",
)
@demanded_profile_option
@click.option(
    "--transactions",
    is_flag=True,
    help="Ask the checks transactions and exactly_once, too. Each operation then goes to one more group.",
)
@master_option
@json_lines_option(
    "JSON lines on standard output: findings, quarantine, progress, a summary; the rest on standard error."
)
def command(
    folder: Path,
    out: Path,
    once: bool,
    horizon: int,
    lateness: float,
    interval: float,
    profile: str | None,
    transactions: bool,
    master: str | None,
    output: Output,
) -> ExitCode:
    """Judge operations as they arrive, with the streaming form of the log check, and report findings within
    seconds.

    Reads FOLDER and all folders below it: parts of campaigns (Parquet), and JSON lines with whole traces or
    parts of traces under way (docs/how-to/watch.md). Files must arrive whole: write them elsewhere, or under
    a name that begins with a dot, and rename. After Ctrl-C or a kill it continues from its checkpoint in
    --out: no finding is lost or doubled. The exit code is about what arrived since it was started. Needs the
    spark extra and Java 17 or later.

    \b
    Examples
      fencepost watch incoming
      # from cron: what is new since the last time
      fencepost watch incoming --once --out out/watched
      # into another program
      fencepost watch incoming --json | jq 'select(.type == "finding")'
    """
    from fencepost.mining.watch.shard import ShardLimits
    from fencepost.mining.watch.watch import watch

    with output.progress(f"watching {folder}") as bar:
        bar.to(0, "Spark starts")

        def tell(batch: "MicroBatch", watched: "Watched") -> None:
            _tell(batch, output)
            bar.to(0, _progress(watched))
            output.emit({"type": "progress", **watched.to_row()})

        watched = watch(
            folder,
            out,
            limits=ShardLimits(
                horizon=horizon,
                lateness_ns=int(lateness * 1e9),
                profile=profile,
                transactions=transactions,
            ),
            once=once,
            interval_s=interval,
            master=master,
            tell=tell,
        )
    _show(watched, output)
    if watched.interrupted:
        output.note(f"interrupted; the same command continues from the checkpoint in {out}")
    return output.end(watched.exit_code, {"type": "summary", **watched.to_row()})


def _tell(batch: "MicroBatch", output: Output) -> None:
    """Report the findings of a micro-batch and what it could not read."""
    for row in batch.findings:
        _finding(row, output)
    for row in batch.quarantine:
        output.note(f"unreadable, left out: {printable(row[3], LONGEST)}")
        named = dict(zip(("source", "place", "trace_id", "reason"), row, strict=True))
        output.emit({"type": "quarantine", **named})


def _progress(watched: "Watched") -> str:
    return (
        f"{watched.operations} operations, {watched.logs_under_way} partitions under way, "
        f"{watched.logs_ended} ended,"
        f" {watched.findings} findings, {watched.held} waiting, lag {watched.lag_s:.1f} s"
    )


def _finding(row: "Row", output: Output) -> None:
    """Report one finding."""
    from fencepost.mining.results.result_rows import SCHEMAS

    found = dict(zip(SCHEMAS["findings"].names, row, strict=True))
    where = f"{found['topic']}-{found['partition']}, offset {found['offset']}"
    proof = ", ".join(map(str, found["operations"]))
    output.say(
        printable(
            f"{found['anomaly']} in trace {found['trace_id']} of {found['source']}, {where}: expected "
            f"{found['expected']}, saw {found['seen']};"
            f" operations {proof}",
            LONGEST,
        )
    )
    if found["replay"]:
        output.say(f"  {printable(found['replay'], LONGEST)}")
    output.emit({"type": "finding", **found})


def _show(watched: "Watched", output: Output) -> None:
    """The totals for a person."""
    if watched.anomalies:
        found = table("anomaly", ">findings")
        for name, count in sorted(watched.anomalies.items()):
            add_row(found, name, count, style="red")
        output.say("", found, "")
    decided = "".join(
        f", {count} {name.replace('_', ' ')}" for name, count in sorted(watched.decisions.items())
    )
    output.say(
        f"{watched.operations} operations in {watched.files} files; partitions: {watched.logs_under_way} "
        f"under way, {watched.logs_ended} ended{decided}"
    )
    if watched.undecided:
        output.say(
            f"{watched.undecided} partitions or checks undecided: beyond the horizon, late, or at odds with "
            "themselves"
        )
    output.say(
        f"{watched.findings} findings ({watched.findings_in_all} with those before), {watched.quarantined} "
        f"unreadable; results in {watched.out}"
    )

"""`fencepost watch`: judges traces while they arrive in a folder."""

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from fencepost.console.options import (
    ANY_PATH,
    NumberRange,
    checks_option,
    default_option,
    demanded_profile_option,
    json_lines_option,
    master_option,
    out_option,
    split_names,
)
from fencepost.console.output import Output, add_row, table
from fencepost.report.event_words import printable
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.mining.watch.counts import Round, Watched
    from fencepost.mining.watch.out import Row

LONGEST = 400
"""Characters of a foreign text in one line of output."""


@click.command("watch")
@click.argument("folder", type=ANY_PATH, metavar="FOLDER")
@out_option(
    "out/watched", "Folder for findings, verdicts and quarantine (Parquet); continues an earlier watch."
)
@click.option("--once", is_flag=True, help="Judge what is there, then end; the next call continues.")
@checks_option
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
@master_option
@json_lines_option(
    "JSON lines on standard output: findings, quarantine, progress, a summary; the rest on standard error."
)
def command(
    folder: Path,
    out: Path,
    once: bool,
    checks: str | None,
    lateness: float,
    interval: float,
    profile: str | None,
    master: str | None,
    output: Output,
) -> ExitCode:
    """Judge traces as they arrive, by the same checks as `fencepost check` and `mine`, and report findings as
    soon as they are certain.

    Reads FOLDER and all folders below it: parts of campaigns (Parquet), JSON lines with whole traces or parts
    of traces under way, and the files *.events that an application appends to (docs/how-to/watch.md). Other
    files must arrive whole: write them elsewhere, or under a name that begins with a dot, and rename. After
    Ctrl-C or a kill the same command continues: no finding is lost or doubled. The exit code is about what
    arrived since it was started. Needs the spark extra and Java 17 or later.

    \b
    Examples
      fencepost watch incoming
      # from cron: what is new since the last time
      fencepost watch incoming --once --out out/watched
      # into another program
      fencepost watch incoming --json | jq 'select(.type == "finding")'
    """
    from fencepost.checkers.judges import DEFAULT_CHECKS
    from fencepost.mining.watch.watch import watch

    with output.progress(f"watching {folder}") as bar:
        bar.to(0, "Spark starts")

        def tell(one: "Round", watched: "Watched") -> None:
            _tell(one, output)
            bar.to(0, _progress(watched))
            output.emit({"type": "progress", **watched.to_row()})

        watched = watch(
            folder,
            out,
            checks=split_names(checks) or DEFAULT_CHECKS,
            profile=profile,
            lateness_s=lateness,
            once=once,
            interval_s=interval,
            master=master,
            tell=tell,
        )
    _show(watched, output)
    if watched.interrupted:
        output.note("interrupted; the same command continues")
    return output.end(watched.exit_code, {"type": "summary", **watched.to_row()})


def _tell(one: "Round", output: Output) -> None:
    """Report the findings of a round and what it could not read."""
    for row in one.tables["findings"]:
        _finding(row, output)
    for row in one.tables["quarantine"]:
        output.note(f"unreadable, left out: {printable(row[3], LONGEST)}")
        named = dict(zip(("source", "place", "trace_id", "reason"), row, strict=True))
        output.emit({"type": "quarantine", **named})


def _progress(watched: "Watched") -> str:
    return (
        f"{watched.operations} operations, {watched.traces_under_way} traces under way, "
        f"{watched.traces_ended} ended,"
        f" {watched.findings} findings, {watched.waiting} waiting, lag {watched.lag_s:.1f} s"
    )


def _finding(row: "Row", output: Output) -> None:
    """Report one finding."""
    from fencepost.mining.results.result_rows import SCHEMAS

    found = dict(zip(SCHEMAS["findings"].names, row, strict=True))
    where = f", {found['topic']}-{found['partition']}, offset {found['offset']}" if found["topic"] else ""
    proof = f"; operations {', '.join(map(str, found['operations']))}" if found["operations"] else ""
    output.say(
        printable(
            f"{found['anomaly']} in trace {found['trace_id']} of {found['source']}{where}: expected "
            f"{found['expected']}, saw {found['seen']}{proof}",
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
        f"{watched.operations} operations in {watched.files} files; traces: {watched.traces_under_way} "
        f"under way, {watched.traces_ended} ended{decided}"
    )
    if watched.undecided:
        output.say(f"{watched.undecided} verdicts undecided; their reasons are in {watched.out}/verdicts")
    if watched.incomplete:
        output.say(f"{watched.incomplete} traces under way lack a file, or are too long to be judged so far")
    output.say(
        f"{watched.findings} findings ({watched.findings_in_all} with those before), {watched.quarantined} "
        f"unreadable; results in {watched.out}"
    )

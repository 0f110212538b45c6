"""`fencepost check` on files of events: did an application keep its promise?

Owns the options of that question and its answer. Must not know rules (fencepost/application).
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from fencepost.cli.replay import exit_code_of
from fencepost.console.findings import Findings
from fencepost.console.options import Decorator, Named, options
from fencepost.console.output import Bar, Output
from fencepost.traces.anomalies import APPLICATION
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.checkers.application.application_events import Events
    from fencepost.checkers.application.application_judge import Judged

MOST_LISTED = 10
"""Lines that were left out."""

EMITTERS = {
    "python": "fencepost_events.py",
    "java": "FencepostEvents.java",
    "go": "fencepost_events.go",
    "javascript": "fencepost-events.js",
    "csharp": "FencepostEvents.cs",
}
"""The files that write events, by language."""

application_options: Decorator = options(
    click.option(
        "--emitter",
        type=Named(tuple(EMITTERS)),
        help="Print the file to copy that writes events in this language, and end.",
    ),
    click.option(
        "--promise",
        type=Named(("at-least-once", "at-most-once", "exactly-once")),
        help="With files of events: what the application promises for each record. [default: at-least-once]",
    ),
    click.option(
        "--ordered-by",
        type=Named(("key", "partition", "none")),
        help="With files of events: in what order records are to be processed. [default: key]",
    ),
    click.option(
        "--allow",
        "allowed",
        multiple=True,
        type=Named([anomaly.name for anomaly in APPLICATION]),
        metavar="ANOMALY",
        help=f"With files of events: what is legal here, of {', '.join(each.name for each in APPLICATION)}. "
        "May be repeated.",
    ),
)
"""Add the options that go with events to a command."""


def print_emitter(language: str) -> ExitCode:
    """Print the file that writes events. language: of EMITTERS."""
    source = files("fencepost.application").joinpath("emitters", EMITTERS[language])
    click.echo(source.read_text(encoding="utf-8"), nl=False)
    return ExitCode.NOTHING_FOUND


def check_application(
    paths: tuple[Path, ...],
    *,
    promise: str | None,
    ordered_by: str | None,
    allowed: tuple[str, ...],
    findings: Findings,
    output: Output,
) -> ExitCode:
    """Judge a run by the events of its application, and report.

    Args:
        paths: files of events; together they are one run.
        promise: what is promised; None: at-least-once.
        ordered_by: in what order records are processed; None: by key.
        allowed: anomalies that are legal.
        findings: what is done with them.
        output: of the command.

    Returns:
        FINDINGS, UNDECIDED, QUARANTINED where lines were left out, or NOTHING_FOUND.
    """
    from fencepost.application.event_columns import read_events
    from fencepost.checkers.application.application_judge import claims_of, judge_events

    claims = claims_of(promise, ordered_by, allowed)
    with output.progress("files", len(paths)) as bar:
        events = read_events(_shown(paths, bar))
        judged = judge_events(events, claims)
    _say(events, judged, claims.promise.value, output)
    codes = {exit_code_of(judged.verdict)} | ({ExitCode.QUARANTINED} if events.left_out_in_all else set())
    findings.add_all(judged.verdict.findings)
    return findings.end(output, codes, _as_dict(events, judged, claims.promise.value, len(paths)))


def _shown(paths: tuple[Path, ...], bar: Bar) -> Iterator[Path]:
    for number, path in enumerate(paths):
        bar.to(number, path.name)
        yield path


def _say(events: "Events", judged: "Judged", promise: str, output: Output) -> None:
    for sentence in events.left_out[:MOST_LISTED]:
        output.note(f"left out: {sentence}")
    if events.left_out_in_all > MOST_LISTED:
        output.note(f"left out: {events.left_out_in_all - MOST_LISTED} more lines")
    for where in events.halves:
        output.note(f"{where}: half a line at the end, as a killed process leaves it: passed over")
    for finding in judged.verdict.findings:
        output.say(f"{finding.anomaly}: {finding.seen}", f"    expected: {finding.expected}")
    if judged.verdict.findings:
        output.say("")
    counts = judged.counts
    output.say(
        f"{counts['events']:,} events of {counts['processes']} processes judged by a promise of {promise}, "
        f"{counts['records']:,} records: {judged.verdict.decision.value.replace('_', ' ')}"
    )
    if judged.verdict.reason:
        output.say(judged.verdict.reason)
    if counts["under_way"] or counts["sends_under_way"]:
        output.say(
            f"under way at the end, and not judged: records received and not processed: "
            f"{counts['under_way']}, sends without a result: {counts['sends_under_way']}"
        )
    if judged.verdict.unjudged:
        output.say(f"not judged, for lack of lines: {judged.verdict.unjudged}")


def _as_dict(events: "Events", judged: "Judged", promise: str, files: int) -> dict[str, Any]:
    findings = [
        attrs.asdict(finding) | {"lines": tuple(map(events.where, finding.events))}
        for finding in judged.verdict.findings
    ]
    return {
        "files": files,
        "promise": promise,
        **attrs.asdict(judged.verdict),
        "anomaly": judged.verdict.anomaly,
        "findings": findings,
        "counts": judged.counts,
        "left_out": events.left_out,
        "half_lines": events.halves,
    }

"""`fencepost mine`: traces by the million, judged on Spark."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import rich_click as click
from attrs import asdict, evolve

from fencepost.cli.inputs import format_option
from fencepost.cli.mine import convert, explain, package
from fencepost.cli.model.parameters import parameter_options, parameters_of
from fencepost.console.branching import Branching
from fencepost.console.findings import Findings, Reported, findings_options
from fencepost.console.options import (
    FOLDER,
    Decorator,
    NumberRange,
    checks_option,
    default_option,
    demanded_profile_option,
    inputs_argument,
    json_option,
    master_option,
    options,
    out_option,
    split_names,
)
from fencepost.console.output import Output, add_row, table
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.mining.model_check import ModelQuestion
    from fencepost.mining.results.summary import Summary

MOST_BUGS = 20
"""Bugs that are shown, those with the most traces first; bugs.json has all."""
MOST_NAMED = 5
"""Unreadable pieces that are named; the quarantine table has all."""


_model_options: Decorator = options(
    click.option(
        "--model",
        metavar="NAME",
        help="Also check whether the client operations of small histories are linearizable: register, "
        "cas-register, key-value, set, queue,"
        " mutex, fenced-lock, counter, log, or a MODULE:CLASS of your own.",
    ),
    *parameter_options,
    click.option(
        "--timeout",
        type=NumberRange(min=0, min_open=True),
        metavar="SECONDS",
        help="With --model, the time limit for one history; beyond it, unknown. [default: 10]",
    ),
    click.option(
        "--memory",
        type=click.IntRange(min=1),
        metavar="MIB",
        help="With --model, the memory for one history; beyond it, unknown. [default: 512]",
    ),
    click.option(
        "--most",
        type=click.IntRange(min=1),
        metavar="OPERATIONS",
        help="With --model, a history of more operations is unknown without a search. [default: 2000]",
    ),
)
"""Add the options about general linearizability to a command."""


def _asked_model(
    model: str | None,
    initial: str | None,
    parameter: tuple[str, ...],
    timeout: float | None,
    memory: int | None,
    most: int | None,
) -> "ModelQuestion | None":
    """The question about a model; None without --model. Raises UsageError."""
    from fencepost.mining.model_check import MEMORY_MIB, MOST_OPERATIONS, TIMEOUT_S, ModelQuestion

    if model is None:
        if parameter or any(value is not None for value in (initial, timeout, memory, most)):
            raise click.UsageError(
                "expected --model with --initial, --parameter, --timeout, --memory and --most, saw none"
            )
        return None
    return ModelQuestion(
        name=model,
        parameters=parameters_of(initial, parameter),
        timeout_s=timeout or TIMEOUT_S,
        memory_bytes=(memory or MEMORY_MIB) << 20,
        operations=most or MOST_OPERATIONS,
    )


@click.group("mine", cls=Branching)
@inputs_argument
@out_option(
    "out/mined",
    "New or empty folder for findings, verdicts, quarantine and statistics (Parquet), summary.json and "
    "index.html.",
)
@master_option
@checks_option
@demanded_profile_option
@click.option(
    "--giant",
    type=click.IntRange(min=1),
    metavar="OPERATIONS",
    help="Judge a history of more operations by ranges of its log's slots, in bounded memory. [default: "
    "1000000]",
)
@format_option
@_model_options
@click.option(
    "--resume", is_flag=True, help="Continue the mining in --out: what is judged is not judged again."
)
@default_option(
    "--triage/--no-triage",
    default=True,
    help="Group bad traces by bug, and report what the traces of each bug share.",
)
@click.option(
    "--tables", is_flag=True, help="Also keep the features of every trace, as the table spectra (Parquet)."
)
@click.option(
    "--since",
    type=FOLDER,
    metavar="MINED",
    help="Folder of an earlier mining: report which bugs are new, gone or have grown.",
)
@findings_options
@json_option
def command(
    inputs: tuple[Path, ...],
    out: Path,
    checks: str | None,
    findings: Findings,
    output: Output,
    initial: str | None,
    parameter: tuple[str, ...],
    timeout: float | None,
    memory: int | None,
    most: int | None,
    **asked: Any,
) -> ExitCode:
    """Judge whole campaigns on Spark, with the judges of `fencepost check`.

    The tasks read the columns themselves; nothing is shuffled. Giant histories are judged by slot ranges, and
    traces that are scattered over a file are regrouped first; the summary says so. History files may have
    any format that `fencepost check` knows. Needs the spark extra and a Java runtime of 17 or later. After
    Ctrl-C or a kill, the results of what was judged remain, and --resume continues.

    \b
    Examples
      fencepost mine out/healthy out/broken --out out/mined
      fencepost mine out/big --out out/mined --master 'local[8]'
      fencepost mine out/big --out out/logs --checks log
      # histories of other systems, and whether their registers are linearizable
      fencepost mine history.edn histories/ --out out/registers --model cas-register
      # which bugs are new since last night
      fencepost mine out/big --out out/today --since out/mined
      # in CI: only bugs that are not known yet fail (docs/how-to/ci.md)
      fencepost mine out/big --out out/nightly --baseline known.json --junit bugs.xml
      # after a Ctrl-C
      fencepost mine out/big --out out/logs --checks log --resume
    """
    if findings.wanted and not asked["triage"]:
        raise click.UsageError("--junit and --baseline are about bugs: --no-triage finds none")
    asked["model"] = _asked_model(asked["model"], initial, parameter, timeout, memory, most)
    summary = mine_with_bar(list(inputs), out, output, checks=split_names(checks), **asked)
    show(summary, output)
    _add_to(findings, summary)
    return findings.end(output, summary.exit_codes, msgspec.json.decode(summary.to_json()))


def _add_to(findings: Findings, summary: "Summary") -> None:
    """Take in the bugs. One is known if --since says so and its anomaly is not worse than before."""
    from fencepost.mining.triage.bugs import Bug, Bugs
    from fencepost.mining.triage.since import since

    checks = {sample.finding.anomaly: sample.finding.check for sample in summary.samples}
    known = {one.place: one for one in findings.known if one.details}
    before = Bugs(bugs=tuple(msgspec.convert(one.details, Bug) for one in known.values()))
    same = {one.name: known[one.before] for one in since(summary.bugs, before, "").both}
    for bug in summary.bugs.bugs:
        one = Reported(check=checks[bug.anomaly], anomaly=bug.anomaly, place=bug.name)
        old = same.get(bug.name, one)
        one = old if BY_NAME[bug.anomaly].rank >= BY_NAME[old.anomaly].rank else one
        says = f"trace {bug.smallest.trace_id} of {bug.smallest.source}"
        details = asdict(evolve(bug, name=one.place, shares=()))
        findings.add(evolve(one, says=says, details=details))
    if left := sum(summary.illegal.values()) - summary.bugs.bad:
        worst = summary.samples[0].finding
        says = f"{left} traces with findings, such as giant ones"
        findings.add(Reported(check=worst.check, anomaly=worst.anomaly, place="in no bug", says=says))


def mine_with_bar(
    inputs: list[Path],
    out: Path,
    output: Output,
    *,
    checks: tuple[str, ...] | None = None,
    giant: int | None = None,
    **asked: Any,
) -> "Summary":
    """Mine with a progress bar. Returns the summary.

    inputs: folders of traces and files of histories; out: the folder for results; output: for the bar.
    The others as in mining.mine.mine. Raises FencepostError in one sentence, also for missing libraries."""
    from fencepost.checkers.judges import DEFAULT_CHECKS
    from fencepost.mining.inputs.ungrouped_parts import GIANT_OPERATIONS
    from fencepost.mining.mine import mine

    with output.progress("tasks", 1) as bar:

        def progress(done: int, total: int) -> None:
            bar.to(done, total=total)

        try:
            return mine(
                inputs,
                out,
                checks=checks or DEFAULT_CHECKS,
                giant=giant or GIANT_OPERATIONS,
                **asked,
                progress=progress,
            )
        except KeyboardInterrupt:
            output.note(f"interrupted; {out} holds what was judged, --resume continues")
            raise


def show(summary: "Summary", output: Output) -> None:
    """Print the summary: verdicts by check, findings by anomaly with one trace each, and what was
    unreadable."""
    inputs = table("input", ">traces", ">with findings")
    for source, count in summary.traces.items():
        illegal = summary.illegal.get(source, 0)
        add_row(inputs, source, count, illegal, style="bold red" if illegal else "green")
    output.say(inputs, "", _checks(summary))
    if summary.record_lines:
        output.say("", *summary.record_lines)
    for bug in summary.bugs.bugs[:MOST_BUGS]:
        output.say("", "\n".join(bug.lines()))
    if len(summary.bugs.bugs) > MOST_BUGS:
        output.say("", f"and {len(summary.bugs.bugs) - MOST_BUGS} more bugs, see {summary.out}/bugs.json")
    if summary.bugs.bugs:
        output.say("", f"why one fails: fencepost mine explain {shlex.quote(summary.out)} --bug 1")
    if summary.since is not None:
        output.say("", "\n".join(summary.since.lines()))
    if summary.samples:
        output.say("", _anomalies(summary))
    if summary.shapes:
        output.say("", summary.shapes)
    for piece in summary.quarantine[:MOST_NAMED]:
        output.note(f"unreadable, left out: {piece.reason}")
    if summary.quarantined > MOST_NAMED:
        output.note(
            f"and {summary.quarantined - MOST_NAMED} more unreadable pieces, see {summary.out}/quarantine"
        )
    output.say(
        f"\n{summary.operations} operations and {summary.events} events judged; results in {summary.out}, "
        f"the page is {summary.out}/index.html"
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


for below in (convert, explain, package):
    command.add_command(below.command)

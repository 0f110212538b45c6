"""`fencepost replay`: runs a plan again, compares the digest, and shows verdicts and timeline."""

from pathlib import Path

import attrs
import rich_click as click
from attrs import frozen

from fencepost.checkers.verdict import Decision, Finding, Verdict, combine
from fencepost.checkers.verdict import by_rank as ranked
from fencepost.console.named_files import read_plan, with_bugs
from fencepost.console.options import (
    ANY_PATH,
    FILE,
    LARGEST_SEED,
    bug_option,
    checks_option,
    default_option,
    html_option,
    json_option,
    known_anomaly,
    profile_option,
    split_names,
    trace_option,
)
from fencepost.console.output import Output, add_row, table
from fencepost.report.commands import replay_plan, replay_seed, replay_stored
from fencepost.traces.errors import ExitCode, FencepostError, TraceError, did_you_mean, strongest
from fencepost.traces.plan import Plan
from fencepost.traces.trace import Trace

TIMES = 10
"""Repetitions of a real run."""
MOST_LISTED = 10
"""Findings after the first that get a line each."""


@frozen(kw_only=True)
class ReplayRequest:
    """What to run again."""

    plan: Plan
    # The recorded run, None if there is no record.
    stored: Trace | None
    # The command line that asks for it again.
    command: str


@click.command("replay")
@click.argument("folder", type=ANY_PATH, required=False)
@trace_option("A stored run of FOLDER, by its id.")
@click.option(
    "--seed", type=click.IntRange(0, LARGEST_SEED), help="A seed, with or without a stored run of it."
)
@click.option("--plan", "plan_file", type=FILE, help="Your own plan (JSON).")
@bug_option
@profile_option
@checks_option
@click.option(
    "--anomaly",
    default="",
    metavar="NAME",
    help="Explain this finding. [default: the one that names the run, by the rank of "
    "`fencepost check --anomalies`]",
)
@default_option(
    "--lines", type=click.IntRange(10, 100_000), default=100, help="Approximate length of the timeline."
)
@html_option("Also write the run as a page that you step through (docs/how-to/viewer.md).")
@click.option(
    "--beside",
    metavar="healthy|PLAN",
    help="With --html, a second run on the page at the same moments: this plan without its bugs, or another "
    "plan (JSON).",
)
@click.option("--no-timeline", is_flag=True, help="Verdicts only.")
@click.option(
    "--times",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Of a campaign against a real system, whose runs do not repeat: run the plan so often and count. "
    "[default: 10]",
)
@json_option
def command(
    folder: Path | None,
    trace_id: int | None,
    seed: int | None,
    plan_file: Path | None,
    bugs: tuple[str, ...],
    profile: str,
    checks: str | None,
    anomaly: str,
    lines: int,
    html: Path | None,
    beside: str | None,
    no_timeline: bool,
    times: int | None,
    output: Output,
) -> ExitCode:
    """Run a seed again: the same plan gives the same run, on every machine.

    The digest of the new run is compared with the stored one. Then come the verdicts, the worst finding with
    what was expected and what was seen, and a timeline that marks the operations and events of the proof
    with >>>. The worst finding names the run, here as everywhere; --anomaly explains another one.

    \b
    Examples
      # a stored run
      fencepost replay out/broken --trace 17
      # the same run, without any record
      fencepost replay --seed 17 --bug KIP-101
      # your own plan, in more detail
      fencepost replay --plan mine.json --lines 300
      # a page of the run, with the healthy run next to it
      fencepost replay --seed 17 --bug KIP-101 --html run.html --beside healthy
      # a plan of a campaign against Apache Kafka: how often does it show?
      fencepost replay out/kafka --trace 17 --times 20
    """
    from fencepost.checkers.judges import DEFAULT_CHECKS, judge
    from fencepost.cli.campaign.again import real_job_of, replay_real
    from fencepost.run.simulated.run import run

    real = real_job_of(folder)
    if folder is not None and real is not None:
        asked_for = split_names(checks)
        return replay_real(folder, real, trace_id, plan_file, times or TIMES, asked_for, output)
    if times is not None:
        raise click.UsageError("expected the folder of a campaign against a real system with --times")
    if beside is not None and html is None:
        raise click.UsageError("expected --html with --beside, saw none")
    known_anomaly(anomaly)
    names = split_names(checks) or ()
    request = _request(folder, trace_id, seed, plan_file, bugs, profile, names, anomaly)
    asked = names or DEFAULT_CHECKS
    other = None if beside is None else _beside(beside, request.plan)
    trace = run(request.plan)
    verdicts = judge(trace, asked)
    repeats = request.stored is None or request.stored.digest == trace.digest
    _tell_digest(request, trace, repeats, output)
    show_verdicts(verdicts, output)
    findings = headed_by(by_rank(verdicts), anomaly, where=request.command)
    if no_timeline:
        list_findings(findings, output)
    else:
        show_findings(findings, trace, request.command, output, most_lines=lines)
    codes = {exit_code_of(combine(verdicts))} | (set() if repeats else {ExitCode.UNDECIDED})
    code = strongest(codes)
    if html is not None:
        _write_page(html, trace, verdicts, request, other, asked, output)
    return output.end(
        code,
        {
            "trace_id": trace.trace_id,
            "seed": trace.seed,
            "digest": trace.digest,
            "stored_digest": request.stored.digest if request.stored is not None else None,
            "repeats": repeats if request.stored is not None else None,
            "anomaly": findings[0].anomaly if findings else None,
            "verdicts": [attrs.asdict(verdict) for verdict in verdicts],
            "replay": request.command,
            "html": None if html is None else str(html),
        },
    )


def _request(
    folder: Path | None,
    trace_id: int | None,
    seed: int | None,
    plan_file: Path | None,
    bugs: tuple[str, ...],
    profile: str,
    checks: tuple[str, ...],
    anomaly: str,
) -> ReplayRequest:
    """The run that the options name. Raises UsageError, FencepostError."""
    given = [
        name
        for name, value in (("--trace", trace_id), ("--seed", seed), ("--plan", plan_file))
        if value is not None
    ]
    if len(given) != 1:
        raise click.UsageError(
            f"expected one of --trace, --seed and --plan, saw {' and '.join(given) or 'none of them'}"
        )
    if trace_id is not None:
        if folder is None:
            raise click.UsageError("expected a folder of traces with --trace, saw none")
        if bugs or profile != "default":
            raise click.UsageError("expected --trace alone: a stored run knows its own plan")
        return _stored(folder, trace_id, checks, anomaly)
    if folder is not None:
        raise click.UsageError(
            f"expected no folder with {given[0]}, saw {folder}; a stored run is replayed with --trace"
        )
    if seed is not None:
        from fencepost.campaign.swarm.swarm import swarm

        return ReplayRequest(
            plan=swarm(seed, profile, bugs),
            stored=None,
            command=replay_seed(seed, profile=profile, bugs=bugs, checks=checks, anomaly=anomaly),
        )
    assert plan_file is not None
    plan = read_plan(plan_file)
    if bugs:
        plan = with_bugs(plan, bugs)
    return ReplayRequest(
        plan=plan, stored=None, command=replay_plan(plan_file, bugs=bugs, checks=checks, anomaly=anomaly)
    )


def _beside(beside: str, plan: Plan) -> tuple[str, Plan]:
    """The second run of a page: its name and its plan. Raises UsageError, FencepostError."""
    if beside != "healthy":
        return Path(beside).stem, read_plan(Path(beside))
    if not plan.cluster.bugs:
        raise click.UsageError("expected a plan with a bug for --beside healthy, saw one without")
    return "healthy", with_bugs(plan, ())


def _write_page(
    path: Path,
    trace: Trace,
    verdicts: tuple[Verdict, ...],
    request: ReplayRequest,
    other: tuple[str, Plan] | None,
    checks: tuple[str, ...],
    output: Output,
) -> None:
    """Write the run as a page, with the second run after it."""
    from fencepost.checkers.judges import judge
    from fencepost.run.simulated.run import run
    from fencepost.viewer import Shown, write_page

    first = "broken" if request.plan.cluster.bugs else "this run"
    shown = [Shown(trace=trace, verdicts=verdicts, name=first if other else "", replay=request.command)]
    if other is not None:
        name, plan = other
        second = run(plan)
        shown.append(Shown(trace=second, verdicts=judge(second, checks), name=name))
    size = write_page(path, shown)
    output.say("", f"Watch it: {path} ({size:,} bytes; open it in a browser)")


def _stored(folder: Path, trace_id: int, checks: tuple[str, ...], anomaly: str) -> ReplayRequest:
    from fencepost.traces.plan_json import plan_from_json
    from fencepost.traces.store import TraceStore

    stored = TraceStore.open(folder).read(trace_id)
    where = f"trace {trace_id} of {folder}"
    if not stored.plan:
        raise TraceError(
            expected="a plan to run again",
            seen="a trace without one",
            where=where,
            hint="a foreign trace can be judged with `fencepost check`",
        )
    return ReplayRequest(
        plan=plan_from_json(stored.plan, where=f"{where}, plan"),
        stored=stored,
        command=replay_stored(folder, trace_id, checks=checks, anomaly=anomaly),
    )


def _tell_digest(request: ReplayRequest, trace: Trace, repeats: bool, output: Output) -> None:
    if request.stored is None:
        output.say(f"seed {trace.seed}: digest {trace.digest} (no stored run to compare with)")
    elif repeats:
        output.say(f"trace {trace.trace_id}: digest {trace.digest}, the same as stored")
    else:
        output.say(f"trace {trace.trace_id}: digest {trace.digest}, but {request.stored.digest} is stored")
        output.note(
            f"the run did not repeat: it was recorded by fencepost {request.stored.software_version},"
            f" this is {trace.software_version}; what follows is about the new run"
        )


def exit_code_of(verdict: Verdict) -> ExitCode:
    """The exit code of a verdict: only Ok is Ok."""
    if verdict.decision is Decision.OK:
        return ExitCode.NOTHING_FOUND
    return ExitCode.FINDINGS if verdict.decision is Decision.ILLEGAL else ExitCode.UNDECIDED


def show_verdicts(verdicts: tuple[Verdict, ...], output: Output) -> None:
    """Print one row per verdict to `output`."""
    rows = table("check", "decision", "anomaly", "reason")
    styles = {Decision.OK: "green", Decision.ILLEGAL: "bold red"}
    for verdict in verdicts:
        style = styles.get(verdict.decision, "yellow")
        add_row(rows, verdict.check, verdict.decision.value, verdict.anomaly or "", verdict.says, style=style)
    output.say(rows, "")


def by_rank(verdicts: tuple[Verdict, ...]) -> list[Finding]:
    """All findings, the one that names the trace first."""
    return ranked(finding for verdict in verdicts for finding in verdict.findings)


def headed_by(findings: list[Finding], anomaly: str, *, where: str) -> list[Finding]:
    """The findings with those of one anomaly first; unchanged for "". where: names the run in the error.
    Raises FencepostError if there is no such finding."""
    chosen = [finding for finding in findings if finding.anomaly == anomaly]
    if anomaly and not chosen:
        shown = list(dict.fromkeys(finding.anomaly for finding in findings))
        raise FencepostError(
            expected=f"a run that shows {anomaly}",
            seen=(", ".join(shown) or "no finding") + did_you_mean(anomaly, shown),
            where=where,
        )
    return chosen + [finding for finding in findings if finding.anomaly != anomaly]


def list_findings(findings: list[Finding], output: Output) -> None:
    """Print a line per finding to `output`, at most MOST_LISTED."""
    for finding in findings[:MOST_LISTED]:
        output.say(f"{finding.anomaly} ({finding.check}): expected {finding.expected}; saw {finding.seen}")
    if len(findings) > MOST_LISTED:
        output.say(f"and {len(findings) - MOST_LISTED} more")


def show_findings(
    findings: list[Finding], trace: Trace, replay: str, output: Output, *, most_lines: int | None = None
) -> None:
    """Print the worst finding on its timeline and a line for each other; without findings only the timeline.

    findings: the worst first; trace: the run; replay: the command that repeats it; most_lines: about how long
    the timeline may be, None for the default."""
    from fencepost.report.explain import explain
    from fencepost.report.timeline import MOST_LINES, as_text, timeline

    length = MOST_LINES if most_lines is None else most_lines
    if not findings:
        output.say(as_text(timeline(trace, most_lines=length)))
        return
    output.say(explain(findings[0], trace, replay=replay, most_lines=length).text())
    if len(findings) > 1:
        output.say("", f"{len(findings) - 1} more of this run:")
        list_findings(findings[1:], output)

"""`fencepost check`: judges traces with the plain checker, in as many processes as there is work for."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click
from attrs import define, field

from fencepost.application.event_files import event_files
from fencepost.checkers.verdict import AND, Decision
from fencepost.cli.check.answers import STYLES, Answers
from fencepost.cli.check.application import application_options, check_application, print_emitter
from fencepost.cli.check.claims import claims_options
from fencepost.cli.check.model import asked_model, check_model, list_models, model_options
from fencepost.cli.inputs import readable_pieces
from fencepost.cli.replay import by_rank, show_findings
from fencepost.console.conventions import convention_options
from fencepost.console.findings import Findings, findings_options
from fencepost.console.options import (
    ANY_PATH,
    checks_option,
    default_option,
    demanded_profile_option,
    jobs_option,
    json_option,
    split_names,
)
from fencepost.console.output import Output, add_row, table
from fencepost.record.claimed import OutsideClaims, check_named
from fencepost.record.claimed.profiles import check_profile
from fencepost.report.commands import replay_stored, show_stored
from fencepost.report.record_counts import MOST_LOST, LogTotals
from fencepost.traces.anomalies import ANOMALIES
from fencepost.traces.errors import ExitCode
from fencepost.traces.importers.conventions import Conventions, Order

if TYPE_CHECKING:
    from fencepost.cli.check.work import Judgement, Question
    from fencepost.mining.inputs.traces import Piece

MOST_LISTED = 20
"""How many traces with a verdict other than Ok are listed."""


@define(kw_only=True)
class Tally(Answers):
    """What was judged so far, by the judges of a log."""

    # Lost records to list; None: all.
    most_lost: int | None = MOST_LOST
    # What became of the records, summed over all logs.
    log: LogTotals = field(factory=LogTotals)
    # Traces by the decision of their verdict.
    decisions: Counter[str] = field(factory=Counter)
    # Traces by the anomaly that names them.
    anomalies: Counter[str] = field(factory=Counter)
    # What was not judged for lack of data, each with the number of traces.
    unjudged: Counter[str] = field(factory=Counter)
    # Traces with a verdict other than Ok; at most MOST_LISTED.
    notable: "list[Judgement]" = field(factory=list)
    # Topics of all traces, as far as judgements name them.
    topics: set[str] = field(factory=set)
    # Illegal traces still to be explained, with the number of the piece. They wait for the end where options
    # name topics: a topic that no trace has refuses the question.
    unexplained: "list[tuple[int, Judgement]]" = field(factory=list)
    # How many traces are Illegal.
    illegal: int = 0

    @property
    def left_out(self) -> int:
        """Traces with a verdict other than Ok that are not listed."""
        return self.traces - self.decisions[Decision.OK.value] - len(self.notable)

    def add(self, judgement: "Judgement") -> None:
        """Count one trace."""
        verdict = judgement.verdict
        if judgement.log is not None:
            self.log.add(judgement.source, judgement.trace_id, judgement.log, self.most_lost)
        self.topics |= judgement.topics
        self.decisions[verdict.decision.value] += 1
        self.unjudged.update(verdict.unjudged.split(AND) if verdict.unjudged else ())
        if verdict.anomaly is not None:
            self.anomalies[verdict.anomaly] += 1
        if verdict.decision is not Decision.OK and len(self.notable) < MOST_LISTED:
            self.notable.append(judgement)


@click.command("check")
@click.argument("inputs", nargs=-1, type=ANY_PATH, metavar="FILE|FOLDER...")
@checks_option
@demanded_profile_option
@default_option(
    "--explain", type=click.IntRange(0, 100), default=1, help="How many illegal traces to explain in full."
)
@claims_options
@application_options
@click.option(
    "--models",
    "listed",
    is_flag=True,
    help="List what --model can name: its functions, and which are decided in linear time.",
)
@click.option("--anomalies", is_flag=True, help="List what a finding can be: rank, definition, invariant.")
@model_options
@convention_options
@jobs_option
@findings_options
@json_option
def command(
    inputs: tuple[Path, ...],
    checks: str | None,
    profile: str | None,
    explain: int,
    format: str,
    jobs: int,
    findings: Findings,
    output: Output,
    outside: OutsideClaims,
    order: Order,
    keyed: bool | None,
    failed_cas_observes: bool,
    listed: bool,
    anomalies: bool,
    emitter: str | None,
    promise: str | None,
    ordered_by: str | None,
    allowed: tuple[str, ...],
    **model: Any,
) -> ExitCode:
    """Judge traces with the plain checker: folders of traces (Parquet and journals), or files of JSON lines
    (docs/reference/traces.md).

    Input that cannot be read is reported and left out; the rest is judged. Files and parts of folders are
    judged in parallel and reported in the order of the input. Traces of other systems can be judged in every
    format that `fencepost` knows. With --model, client operations are checked against a sequential model
    instead (docs/how-to/models.md). Files of events, which an application writes about what it processed and
    committed (docs/reference/events.md), are judged by what it promises; all files of a call are one run.

    \b
    Examples
      # a campaign's folder
      fencepost check out/broken
      # client operations only
      fencepost check history.jsonl --checks log
      # does the system keep strong reads?
      fencepost check history.jsonl --profile strong
      # a real cluster: acks=1 may lose, topic t was compacted
      fencepost check history.jsonl --acks-1-may-lose --topic-setting t:cleanup.policy=compact
      # brokers may do what they were configured to do
      fencepost check history.jsonl --broker-config server.properties
      # is a register's history linearizable?
      fencepost check etcd.log --model cas-register
      # a folder of histories, four at a time, ten seconds each
      fencepost check histories/ --model key-value --jobs 4 --timeout 10
      # did my consumers lose records?
      fencepost check app/*.events --promise at-least-once
      # in CI: only what is not known yet fails (docs/how-to/ci.md)
      fencepost check histories/ --baseline known.json --junit check.xml
    """
    if listed:
        return list_models(output)
    if anomalies:
        return list_anomalies(output)
    if emitter is not None:
        return print_emitter(emitter)
    if not inputs:
        raise click.UsageError("expected FILE|FOLDER..., what is judged, saw none")
    files = event_files(inputs)
    if files:
        _refuse_options(checks, profile, model)
        return check_application(
            files, promise=promise, ordered_by=ordered_by, allowed=allowed, findings=findings, output=output
        )
    if promise or ordered_by or allowed:
        raise click.UsageError(
            "expected files of events (docs/reference/events.md) with --promise, --ordered-by and --allow, "
            f"saw {inputs[0]}"
        )
    question = _question(checks, profile, outside, model)
    if output.json:
        question = attrs.evolve(question, lost_listed=None)
    tally = Tally(findings=findings, most_lost=question.lost_listed)
    conventions = Conventions(order=order, keyed=keyed, failed_cas_observes=failed_cas_observes)
    refused = partial(tally.leave_out, output=output)
    pieces = readable_pieces(inputs, format, conventions, refused, output)
    if question.model:
        return check_model(pieces, tally.unreadable, question, jobs, explain, findings, output)
    with tally.interruptible(output, "traces"):
        _judge(pieces, question, jobs, explain, tally, output)
    if tally.traces and ExitCode.INTERRUPTED not in tally.codes:
        check_named(outside, tally.topics)
    _explain_waiting(pieces, question, tally, output)
    if not tally.traces and not tally.unreadable and ExitCode.INTERRUPTED not in tally.codes:
        output.note(f"{', '.join(map(str, inputs))}: expected at least one trace, saw none")
    _show(tally, question.checks, output)
    return findings.end(output, tally.exit_codes, _as_dict(tally, question.checks))


def list_anomalies(output: Output) -> ExitCode:
    """The table of anomalies, the one that names a trace first."""
    rows = [attrs.asdict(anomaly) for anomaly in ANOMALIES]
    columns = ("rank", "name", "definition", "breaks", "allowed")
    return output.listed("anomalies", rows, dict(zip(columns, columns, strict=True)))


def _refuse_options(checks: str | None, profile: str | None, model: dict[str, Any]) -> None:
    """Raises UsageError for options that ask something else than events answer."""
    given = {"--checks": checks, "--profile": profile, "--model": model["model"]}
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise click.UsageError(f"expected no {named[0]} with files of events, which have one judge")


def _question(
    checks: str | None, profile: str | None, outside: OutsideClaims, model: dict[str, Any]
) -> "Question":
    """The question that the options ask. Raises UsageError, FencepostError."""
    from fencepost.checkers.judges import DEFAULT_CHECKS, checks_by_name
    from fencepost.cli.check.work import Question

    if model["model"] is not None:
        if checks is not None or profile is not None or outside:
            raise click.UsageError(
                "expected --model without --checks and --profile (or claims), which ask something else"
            )
        return asked_model(**model)
    if any(value not in (None, ()) for value in model.values()):
        raise click.UsageError(
            "expected --model with --initial, --parameter, --timeout and --memory, saw none"
        )
    names = tuple(check.name for check in checks_by_name(split_names(checks) or DEFAULT_CHECKS))
    check_profile(profile)
    return Question(checks=names, profile=profile, claims=outside)


def _judge(
    pieces: "list[Piece]", question: "Question", jobs: int, explain: int, tally: Tally, output: Output
) -> None:
    for number, judgement in tally.of(pieces, question, jobs, output, "traces"):
        tally.add(judgement)
        if judgement.verdict.decision is Decision.ILLEGAL:
            tally.illegal += 1
            if tally.illegal <= explain:
                tally.unexplained.append((number, judgement))
        if question.claims is None or not question.claims.named:
            _explain_waiting(pieces, question, tally, output)


def _explain_waiting(pieces: "list[Piece]", question: "Question", tally: Tally, output: Output) -> None:
    for number, judgement in tally.unexplained:
        _explain(pieces[number], judgement, question, output)
    tally.unexplained.clear()


def _explain(piece: "Piece", judgement: "Judgement", question: "Question", output: Output) -> None:
    from fencepost.checkers.judges import DEFAULT_CHECKS
    from fencepost.cli.check.work import trace_at, verdicts_of

    trace = trace_at(piece, judgement.index)
    if trace is None:
        output.note(f"{judgement.source}: it cannot be read again to be drawn")
        return
    replay = ""
    if (
        judgement.stored and trace.plan and question.profile is None
    ):  # a replayed run is judged by its own claims
        checks = question.checks if question.checks != DEFAULT_CHECKS else ()
        replay = replay_stored(Path(judgement.source), trace.trace_id, checks=checks)
    show_findings(by_rank(verdicts_of(trace, question)), trace, replay, output)
    output.say("", f"Watch it: {show_stored(Path(judgement.source), trace.trace_id)}")
    output.say("")


def _show(tally: Tally, checks: tuple[str, ...], output: Output) -> None:
    rows = table("trace", "decision", "anomaly", "why")
    for judgement in tally.notable:
        verdict = judgement.verdict
        worst = by_rank((verdict,))
        why = verdict.reason or (f"expected {worst[0].expected}; saw {worst[0].seen}" if worst else "")
        name = f"{judgement.source} {judgement.trace_id}"
        add_row(
            rows,
            name,
            verdict.decision.value,
            verdict.anomaly or "",
            why,
            style=STYLES.get(verdict.decision, "yellow"),
        )
    if tally.notable:
        output.say(rows, "")
    if tally.left_out:
        output.say(
            f"and {tally.left_out} more with a verdict other than ok (the first {MOST_LISTED} are listed)", ""
        )
    for line in tally.log.lines():
        output.say(line)
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(tally.decisions.items()))
    left_out = f"; {len(tally.unreadable)} pieces of the input were unreadable" if tally.unreadable else ""
    output.say(f"{tally.traces} traces judged by {', '.join(checks)}: {counts or 'none'}{left_out}")
    if tally.unjudged:
        parts = [
            what if traces == tally.traces else f"{what} in {traces} traces"
            for what, traces in tally.unjudged.most_common()
        ]
        output.say(f"not judged, for lack of data: {AND.join(parts)}")


def _as_dict(tally: Tally, checks: tuple[str, ...]) -> dict[str, Any]:
    return {
        "traces": tally.traces,
        "checks": checks,
        "decisions": dict(tally.decisions),
        "anomalies": dict(tally.anomalies),
        "verdicts": [
            {
                "source": judgement.source,
                "trace_id": judgement.trace_id,
                **attrs.asdict(judgement.verdict),
                "anomaly": judgement.verdict.anomaly,
                "findings": list(map(attrs.asdict, by_rank((judgement.verdict,)))),
                "log": None if judgement.log is None else judgement.log.as_dict(),
            }
            for judgement in tally.notable
        ],
        "verdicts_left_out": tally.left_out,
        "unjudged": dict(tally.unjudged),
        "log": tally.log.as_dict(),
        "unreadable": tally.unreadable,
        "taken": tally.taken,
    }

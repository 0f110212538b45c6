"""`fencepost check --model`: histories checked against a sequential model.

Owns the options of that question, and the answer for each history with counts and time. Must not know how
linearizability is decided.
"""

import sys
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click
from rich.table import Table

from fencepost.cli.check.answers import STYLES, Answers
from fencepost.cli.inputs import format_option
from fencepost.cli.model.parameters import parameter_options, parameters_of
from fencepost.console.findings import Findings
from fencepost.console.options import Decorator, NumberRange, options
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.cli.check.work import Judgement, Question
    from fencepost.mining.inputs.traces import Piece

COUNTS = ("operations", "overlapping", "parts", "decided", "steps", "nodes")
"""Counts for one history: what was judged, and how much work it took."""
TIMEOUT_SECONDS = 60.0
"""A search that takes longer seldom ends at all: its time grows with the power of what overlaps."""
MEMORY_MIB = 2048


def list_models(output: Output) -> ExitCode:
    """List what --model can name, and end. output: of the command."""
    from fencepost.checkers.linearizability.applicable_models import listed

    columns = {
        "name": "name",
        "kind": "kind",
        "linear time": "linear",
        "functions": "functions",
        "says": "says",
    }
    return output.listed("models", listed(), columns)


model_options: Decorator = options(
    click.option(
        "--model",
        metavar="NAME",
        help="Ask whether client operations are linearizable: register, cas-register, key-value, map, "
        "append-only-list, set,"
        " queue, unordered-queue, at-least-once-queue, mutex, fenced-lock, semaphore, lease, counter, "
        "log, or"
        " a MODULE:CLASS of your own. Or a workload, which is judged as a whole: total-queue, final-set, "
        "unique-ids, bank, monotonic, long-fork, rw-register, list-append. --models says more.",
    ),
    format_option,
    *parameter_options,
    click.option(
        "--timeout",
        type=NumberRange(min=0, min_open=True),
        metavar="SECONDS",
        help=f"With --model, the time limit for one history; beyond it the verdict is unknown. [default: "
        f"{TIMEOUT_SECONDS:g}]",
    ),
    click.option(
        "--memory",
        type=click.IntRange(min=1),
        metavar="MIB",
        help=f"With --model, the memory for one history; beyond it, unknown. [default: {MEMORY_MIB}]",
    ),
    click.option(
        "--minimum-overlap",
        type=click.IntRange(min=1),
        metavar="PAIRS",
        help="With --model, how many pairs of operations must overlap; a history with fewer proves nothing.",
    ),
)
"""Add the options that go with --model to a command."""


def asked_model(
    *,
    model: str,
    initial: str | None,
    parameter: tuple[str, ...],
    timeout: float | None,
    memory: int | None,
    minimum_overlap: int | None,
) -> "Question":
    """The question that the options ask. model: a model's name or MODULE:CLASS; initial: its start value as
    JSON; parameter: NAME=JSON texts; timeout: seconds and memory: MiB for one history, None for the default;
    minimum_overlap: pairs. Raises UsageError, FencepostError."""
    from fencepost.cli.check.work import Question

    parameters = parameters_of(initial, parameter)
    if ":" in model and "" not in sys.path:
        sys.path.insert(0, "")  # the caller's model is looked for next to the histories, as `python -m` would
    question = Question(
        model=model,
        parameters=parameters,
        timeout_s=timeout or TIMEOUT_SECONDS,
        memory_bytes=(memory or MEMORY_MIB) << 20,
        minimum_overlap=minimum_overlap or 0,
    )
    if question.asked_workload() is None:
        question.asked_model()  # an unknown name is reported before any input is read
    return question


def check_model(
    pieces: "list[Piece]",
    unreadable: list[str],
    question: "Question",
    jobs: int,
    explain: int,
    findings: Findings,
    output: Output,
) -> ExitCode:
    """Judge every history of the pieces, and report each verdict in the order of the input.

    unreadable: why other input could not be read; jobs: processes; explain: how many Illegal histories to
    explain; findings: what is done with them. Ctrl-C reports what was judged so far."""
    answers, told, explained = Answers(findings=findings, unreadable=unreadable), [], 0
    rows = table("history", "verdict", *(f">{name}" for name in COUNTS[:5]), ">seconds", "why")
    with answers.interruptible(output, "histories"):
        for number, judgement in answers.of(pieces, question, jobs, output, "histories"):
            told.append(_row(judgement))
            _add_row(rows, judgement)
            if judgement.verdict.findings and explained < explain:
                explained += 1
                _explain(pieces[number], judgement, output)
    if told:
        output.say(rows)
    return findings.end(
        output,
        answers.exit_codes,
        {
            "model": question.model,
            "traces": answers.traces,
            "verdicts": told,
            "unreadable": answers.unreadable,
            "taken": answers.taken,
        },
    )


def _named(judgement: "Judgement") -> str:
    """The name of a history in messages."""
    return f"{judgement.source} {judgement.trace_id}" if judgement.stored else judgement.source


def _row(judgement: "Judgement") -> dict[str, Any]:
    """The answer for one history, for a program."""
    return {
        "source": judgement.source,
        "trace_id": judgement.trace_id,
        **dict.fromkeys(COUNTS, 0),
        **judgement.counts,
        "seconds": round(judgement.seconds, 6),
        **attrs.asdict(judgement.verdict),
    }


def _add_row(rows: "Table", judgement: "Judgement") -> None:
    verdict = judgement.verdict
    counts = [judgement.counts.get(name, 0) for name in COUNTS[:5]]
    why = verdict.reason or (verdict.findings[0].seen if verdict.findings else "")
    cells = (_named(judgement), verdict.decision.value, *counts, f"{judgement.seconds:.3f}", why)
    add_row(rows, *cells, style=STYLES.get(verdict.decision, "yellow"))


def _explain(piece: "Piece", judgement: "Judgement", output: Output) -> None:
    from fencepost.cli.check.work import trace_at
    from fencepost.report.processes import excluded_words, process_lanes

    finding = judgement.verdict.findings[0]
    trace = trace_at(piece, judgement.index)
    expected, seen = f"  expected: {finding.expected}", f"  seen:     {finding.seen}"
    if trace is None:
        lanes, excluded = "(it cannot be read again)", ""
    else:
        lanes = process_lanes(trace, (*finding.operations, *finding.excluded))
        excluded = excluded_words(trace, finding)
    more = (excluded,) if excluded else ()
    output.say(f"{_named(judgement)}: {finding.anomaly}", expected, seen, *more, "", lanes, "")

"""`fencepost check --model`: histories held against a sequential model.

Owns: the options of that question, and the answer per history with counts and time. Must not know how linearizability is decided.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import rich_click as click
from attrs import define, field, frozen

from fencepost.checkers.verdict import Decision
from fencepost.cli.console import Output, add_row, table
from fencepost.cli.options import Decorator
from fencepost.traces.errors import ExitCode, strongest

if TYPE_CHECKING:
    from fencepost.checkers.linearizability import Judged, Limits
    from fencepost.checkers.models import Model

TIMEOUT_SECONDS = 60.0
MEMORY_MIB = 2048

_CODES = {Decision.OK: ExitCode.NOTHING_FOUND, Decision.ILLEGAL: ExitCode.FINDINGS}
_STYLES = {Decision.OK: "green", Decision.ILLEGAL: "red"}


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that come with --model."""
    options: tuple[Decorator, ...] = (
        click.option(
            "--model",
            metavar="NAME",
            help="Ask whether client operations are linearizable: register, cas-register, key-value, set, queue,"
            " mutex, fenced-lock, counter, log, or MODULE:CLASS of yours.",
        ),
        click.option(
            "--format",
            metavar="NAME",
            help="With --model, what files are written in: auto (the default), fencepost, edn, json or jepsen-log.",
        ),
        click.option("--initial", metavar="JSON", help="With --model, the value that it starts from."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help=f"With --model, the time for one history; then it is unknown. [default: {TIMEOUT_SECONDS:g}]",
        ),
        click.option(
            "--memory",
            type=click.IntRange(min=1),
            metavar="MIB",
            help=f"With --model, the memory for one history; then it is unknown. [default: {MEMORY_MIB}]",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@frozen(kw_only=True)
class Asked:
    """The question. name: the model's, as the caller said it."""

    name: str
    model: "Model"
    format: str
    limits: "Limits"


def asked_model(
    *, model: str, format: str | None, initial: str | None, timeout: float | None, memory: int | None
) -> Asked:
    """What the options ask for. Raises UsageError, FencepostError."""
    from fencepost.checkers.linearizability import Limits
    from fencepost.checkers.models import model_named
    from fencepost.cli.inputs import FORMATS

    if format is not None and format not in FORMATS:
        raise click.UsageError(f"expected --format out of {', '.join(FORMATS)}, saw {format!r}")
    first: tuple[Any, ...] = ()
    if initial is not None:
        try:
            first = (None if initial == "nil" else msgspec.json.decode(initial),)
        except msgspec.DecodeError:
            raise click.UsageError(
                f"expected --initial as JSON (a text in quotes), saw {initial!r}"
            ) from None
    limits = Limits(timeout_s=timeout or TIMEOUT_SECONDS, memory_bytes=(memory or MEMORY_MIB) << 20)
    return Asked(name=model, model=model_named(model, *first), format=format or "auto", limits=limits)


@define
class Answers:
    """What was judged so far: a row per history, the reasons of what was unreadable, exit codes."""

    rows: list[dict[str, Any]] = field(factory=list)
    unreadable: list[str] = field(factory=list)
    codes: set[ExitCode] = field(factory=set)

    def add(self, source: str, trace_id: int, judged: "Judged", seconds: float) -> None:
        """One history."""
        verdict = judged.verdict
        self.codes.add(_CODES.get(verdict.decision, ExitCode.UNDECIDED))
        counts = {name: getattr(judged, name) for name in ("operations", "parts", "steps", "nodes")}
        self.rows.append(
            {
                "source": source,
                "trace_id": trace_id,
                **counts,
                "seconds": round(seconds, 6),
                **attrs.asdict(verdict),
            }
        )

    @property
    def exit_code(self) -> ExitCode:
        """As of the table of exit codes."""
        codes = set(self.codes)
        if not self.rows:
            codes.add(ExitCode.USAGE)
        elif self.unreadable:
            codes.add(ExitCode.QUARANTINED)
        return strongest(codes)


def check_model(inputs: tuple[Path, ...], asked: Asked, explain: int, output: Output) -> ExitCode:
    """Judge every history that the paths mean; tell each verdict, and explain the first Illegal ones."""
    from fencepost.checkers.linearizability import judge_counted
    from fencepost.cli.inputs import Found, traces_of
    from fencepost.report.processes import process_lanes

    answers = Answers()
    rows = table("history", "verdict", ">operations", ">parts", ">steps", ">seconds", "why")
    explained = 0
    for found in traces_of(inputs, asked.format):
        if not isinstance(found, Found):
            answers.unreadable.append(found.reason)
            output.note(f"unreadable, left out: {found.reason}")
            continue
        start = time.perf_counter()
        judged = judge_counted(found.trace, asked.model, asked.limits)
        seconds = time.perf_counter() - start
        verdict = judged.verdict
        answers.add(found.source, found.trace.trace_id, judged, seconds)
        name = f"{found.source} {found.trace.trace_id}" if found.stored else found.source
        why = verdict.reason or (verdict.findings[0].seen if verdict.findings else "")
        cells = (
            name,
            verdict.decision.value,
            judged.operations,
            judged.parts,
            judged.steps,
            f"{seconds:.3f}",
        )
        add_row(rows, *cells, why, style=_STYLES.get(verdict.decision, "yellow"))
        if verdict.findings and explained < explain:
            explained += 1
            finding = verdict.findings[0]
            output.say(
                f"{name}: {finding.anomaly}",
                f"  expected: {finding.expected}",
                f"  seen:     {finding.seen}",
                "",
                process_lanes(found.trace, finding.operations),
                "",
            )
    if answers.rows:
        output.say(rows)
    output.emit(
        {
            "model": asked.name,
            "traces": len(answers.rows),
            "verdicts": answers.rows,
            "unreadable": answers.unreadable,
            "exit_code": int(answers.exit_code),
        }
    )
    return answers.exit_code

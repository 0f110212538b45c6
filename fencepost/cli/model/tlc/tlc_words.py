"""Reports of TLC's output, for a person or as JSON, for the commands of `fencepost model tlc`."""

from pathlib import Path
from typing import Any

import rich_click as click

from fencepost.console.options import FILE, Decorator, NumberRange, options
from fencepost.console.output import Output
from fencepost.model.tlc import (
    Counterexample,
    RunLimits,
    RunOptions,
    RunOutcome,
    RunProgress,
    TlcResult,
    Unread,
    find_toolbox,
)
from fencepost.model.tlc.values import plain
from fencepost.traces.errors import ExitCode

EXIT_CODES = {
    RunOutcome.HOLDS: ExitCode.NOTHING_FOUND,
    RunOutcome.SAMPLED: ExitCode.NOTHING_FOUND,
    RunOutcome.VIOLATED: ExitCode.FINDINGS,
    RunOutcome.UNDECIDED: ExitCode.UNDECIDED,
    RunOutcome.FAILED: ExitCode.USAGE,
}
COLOURS = {RunOutcome.HOLDS: "green", RunOutcome.SAMPLED: "green", RunOutcome.VIOLATED: "red"}
MOST_PRINTED = 20
"""Lines of the specification's own output in the report for a person."""


java_options: Decorator = options(
    click.option(
        "--timeout", type=NumberRange(min=0, min_open=True), metavar="SECONDS", help="Stop TLC, undecided."
    ),
    click.option(
        "--memory", type=click.IntRange(1), metavar="MB", help="Limit of the Java process's resident memory."
    ),
    click.option("--jar", type=FILE, help="Use this tla2tools.jar."),
)


def run_options(*, timeout: float | None, memory: int | None, jar: Path | None, **more: Any) -> RunOptions:
    """What the options ask of TLC. timeout: seconds, memory: MB, None: no limit; jar: None for the one
    that is found; more: other fields."""
    return RunOptions(jar=jar, limits=RunLimits(seconds=timeout, memory_mb=memory), **more)


def tell_toolbox(output: Output, options: RunOptions) -> None:
    """Note on `output` which TLC and Java `options` lead to."""
    toolbox = find_toolbox(options.jar)
    output.note(f"TLC from {toolbox.jar_from}: {toolbox.jar}, on Java {toolbox.java_version}")


def progress_words(progress: RunProgress) -> str:
    parts = ((progress.generated, "generated"), (progress.distinct, "distinct"), (progress.queue, "left"))
    return ", ".join(f"{count:,} {what}" for count, what in parts if count >= 0)


def tell(result: TlcResult, output: Output) -> ExitCode:
    """Print the result of a TLC run to `output`. Returns the exit code of the command."""
    for line in result.output[:MOST_PRINTED]:
        output.note(line)
    left_out = len(result.output) - MOST_PRINTED + result.output_left_out
    if left_out > 0:
        output.note(f"({left_out} more lines of the specification's output)")
    for warning in result.warnings:
        output.note(f"warning: {' '.join(warning.split())}")
    if result.counterexample is not None:
        output.say(str(result.counterexample), "")
    depth = f", depth {result.depth:,}" if result.depth >= 0 else ""
    counts = (
        f" ({result.distinct:,} distinct states{depth})"
        if result.distinct >= 0 and result.outcome is not RunOutcome.HOLDS
        else depth
    )
    output.people.print(
        f"{result.outcome}: {result.reason}{counts}; {result.seconds:.1f} s, {_version(result)}",
        soft_wrap=True,
        style=COLOURS.get(result.outcome, "yellow"),
    )
    return output.end(EXIT_CODES[result.outcome], as_dict(result))


def _version(result: TlcResult) -> str:
    return f"TLC {result.toolbox.tlc_version or 'of unknown version'}" if result.toolbox else "TLC"


def _trace(found: Counterexample) -> dict[str, Any]:
    return {
        "states": [
            {
                "number": state.number,
                "action": state.action,
                "location": state.location,
                "variables": {
                    name: value.text if isinstance(value, Unread) else plain(value)
                    for name, value in state.variables.items()
                },
            }
            for state in found.states
        ],
        "stuttering": found.stuttering,
        "back_to": found.back_to,
    }


def as_dict(result: TlcResult) -> dict[str, Any]:
    """The result for --json; -1 (TLC did not say) becomes null."""

    def known(count: int) -> int | None:
        return count if count >= 0 else None

    violation, toolbox = result.violation, result.toolbox
    return {
        "outcome": str(result.outcome),
        "reason": result.reason,
        "violation": violation
        and {"kind": str(violation.kind), "name": violation.name, "says": violation.says},
        "counterexample": result.counterexample and _trace(result.counterexample),
        "generated": known(result.generated),
        "distinct": known(result.distinct),
        "queue": known(result.queue),
        "depth": known(result.depth),
        "errors": result.errors,
        "warnings": result.warnings,
        "output": result.output,
        "tlc_exit_code": result.exit_code,
        "seconds": round(result.seconds, 3),
        "tlc_version": toolbox and toolbox.tlc_version,
        "jar": toolbox and toolbox.jar,
        "jar_from": toolbox and toolbox.jar_from,
        "java_version": toolbox and toolbox.java_version,
    }

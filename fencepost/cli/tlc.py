"""`fencepost tlc`: TLC, the model checker of TLA+, on our specifications or anybody's."""

from pathlib import Path
from typing import Any

import rich_click as click

from fencepost.cli.console import Output, add_row, table
from fencepost.cli.options import Decorator, json_option
from fencepost.model.tla import MODULES, SIZES, Size, files_of
from fencepost.model.tlc import (
    Counterexample,
    Outcome,
    Progress,
    RunLimits,
    RunOptions,
    Spec,
    TlcResult,
    Unread,
    Walks,
    check,
    find_toolbox,
    simulate,
)
from fencepost.model.tlc.values import plain
from fencepost.traces.errors import ExitCode, FencepostError

EXIT_CODES = {
    Outcome.HOLDS: ExitCode.NOTHING_FOUND,
    Outcome.SAMPLED: ExitCode.NOTHING_FOUND,
    Outcome.VIOLATED: ExitCode.FINDINGS,
    Outcome.UNDECIDED: ExitCode.UNDECIDED,
    Outcome.FAILED: ExitCode.USAGE,
}
COLOURS = {Outcome.HOLDS: "green", Outcome.SAMPLED: "green", Outcome.VIOLATED: "red"}
MOST_PRINTED = 20
"""Lines of the specification's own output that a person is shown."""


class Workers(click.ParamType[int]):
    """A number of threads, or `auto` for one per processor (0)."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number that a text means."""
        if value == "auto":
            return 0
        if not str(value).isdecimal() or not 1 <= int(value) <= 1024:
            self.fail(f"expected auto or a number from 1 to 1024, saw {value!r}", param, ctx)
        return int(value)


def assignments(texts: tuple[str, ...]) -> dict[str, str]:
    """name -> value of each `name=value`; of `name<-definition`, the value `<-definition`."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if "<-" in name:
            name, _, value = text.partition("<-")
            value, sign = f"<-{value.strip()}", "<-"
        if not sign or not name.strip() or not value.strip():
            raise FencepostError(expected="a constant as name=value", seen=text, where="--constant")
        found[name.strip()] = value.strip()
    return found


def _spec(spec: str, config: Path | None, size: Size, constants: tuple[str, ...]) -> Spec:
    """The specification that the arguments mean: a shipped one by name, or a file."""
    if spec in MODULES and not Path(spec).exists():
        module, shipped = files_of(spec, size)
        return Spec.at(module, config or shipped, assignments(constants))
    return Spec.at(Path(spec), config, assignments(constants))


def _common(function: Any) -> Any:
    """The options that check and simulate share."""
    options: tuple[Decorator, ...] = (
        click.argument("spec", default=MODULES[0], metavar="[SPEC]"),
        click.option(
            "--config",
            type=click.Path(path_type=Path, dir_okay=False),
            help="TLC's configuration; by default the .cfg beside the module.",
        ),
        click.option(
            "--size",
            type=click.Choice(SIZES),
            default="small",
            show_default=True,
            help="Of a shipped specification: which of its configurations.",
        ),
        click.option(
            "--constant",
            "constants",
            multiple=True,
            metavar="NAME=VALUE",
            help="Another value for a constant of the configuration, in TLA+. May be repeated.",
        ),
        click.option(
            "--workers", type=Workers(), default="auto", show_default=True,
            help="Threads. Depth and the length of a counterexample are exact with 1.",
        ),
        click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop, undecided."),
        click.option("--memory", type=click.IntRange(1), metavar="MB", help="Resident memory of the Java process at most."),
        click.option("--deadlock/--no-deadlock", default=None, help="Look for deadlocks; by default as the configuration says, else yes."),
        click.option("--coverage", is_flag=True, help="Count how often each action is taken."),
        click.option("--jar", type=click.Path(path_type=Path, dir_okay=False), help="tla2tools.jar, instead of the one that is found."),
        json_option,
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def _options(
    workers: int,
    timeout: float | None,
    memory: int | None,
    deadlock: bool | None,
    coverage: bool,
    jar: Path | None,
) -> RunOptions:
    return RunOptions(
        jar=jar,
        workers=workers,
        deadlock=deadlock,
        coverage=coverage,
        limits=RunLimits(seconds=timeout, memory_mb=memory),
    )


@click.group("tlc", short_help="Run TLC on TLA+ specifications, ours or yours.")
def command() -> None:
    """Run TLC, the model checker of TLA+, and read its answer.

    SPEC is a .tla or .cfg file, or the name of a shipped specification: Replication.

    \b
    Examples
      fencepost tlc check Replication --workers 2
      fencepost tlc simulate Replication
    """


@command.command("check", short_help="Visit every reachable state.")
@_common
def check_command(
    spec: str, config: Path | None, size: Size, constants: tuple[str, ...], as_json: bool, **options: Any
) -> ExitCode:
    """Visit every reachable state, breadth first, and look at all invariants and properties.

    \b
    Examples
      # the replication protocol without KIP-279's protection
      fencepost tlc check --size medium --constant 'Drop={"truncate_below_own_epoch"}'
      # your own
      fencepost tlc check MySpec.tla --constant N=4 --workers auto --timeout 600
    """
    output = Output(as_json)
    meant, run_options = _spec(spec, config, size, constants), _options(**options)
    _tell_toolbox(output, run_options)
    with output.progress("checking", 1) as bar:
        result = check(meant, run_options, lambda progress: bar.to(0, _words(progress)))
    return _tell(result, output)


@command.command("simulate", short_help="Take random walks.")
@_common
@click.option("--walks", type=click.IntRange(1), default=1_000, show_default=True, help="Behaviours to take.")
@click.option("--depth", type=click.IntRange(1), default=100, show_default=True, help="Steps in each.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the choices.")
def simulate_command(
    spec: str,
    config: Path | None,
    size: Size,
    constants: tuple[str, ...],
    as_json: bool,
    walks: int,
    depth: int,
    seed: int,
    **options: Any,
) -> ExitCode:
    """Take random walks through the reachable states. Finding nothing proves nothing.

    \b
    Example
      fencepost tlc simulate --size large --walks 10000 --depth 60
    """
    output = Output(as_json)
    meant, run_options = _spec(spec, config, size, constants), _options(**options)
    _tell_toolbox(output, run_options)
    with output.progress("walking", 1) as bar:
        result = simulate(
            meant,
            Walks(number=walks, depth=depth, seed=seed),
            run_options,
            lambda progress: bar.to(0, _words(progress)),
        )
    return _tell(result, output)


def _tell_toolbox(output: Output, options: RunOptions) -> None:
    toolbox = find_toolbox(options.jar)
    output.note(f"TLC from {toolbox.jar_from}: {toolbox.jar}, on Java {toolbox.java_version}")


def _words(progress: Progress) -> str:
    parts = ((progress.generated, "generated"), (progress.distinct, "distinct"), (progress.queue, "left"))
    return ", ".join(f"{count:,} {what}" for count, what in parts if count >= 0)


def _tell(result: TlcResult, output: Output) -> ExitCode:
    for line in result.output[:MOST_PRINTED]:
        output.note(line)
    left_out = len(result.output) - MOST_PRINTED + result.output_left_out
    if left_out > 0:
        output.note(f"({left_out} more lines of the specification's output)")
    for warning in result.warnings:
        output.note(f"warning: {' '.join(warning.split())}")
    if result.counterexample is not None:
        output.say(str(result.counterexample), "")
    if result.coverage:
        rows = table("action", ">new states", ">taken", "where")
        for covered in result.coverage:
            style = "yellow" if covered.generated == 0 else ""
            add_row(
                rows,
                covered.action,
                f"{covered.distinct:,}",
                f"{covered.generated:,}",
                covered.location,
                style=style,
            )
        output.say(rows, "")
    depth = f", depth {result.depth:,}" if result.depth >= 0 else ""
    counts = (
        f" ({result.distinct:,} distinct states{depth})"
        if result.distinct >= 0 and result.outcome is not Outcome.HOLDS
        else depth
    )
    output.people.print(
        f"{result.outcome}: {result.reason}{counts}; {result.seconds:.1f} s, {_version(result)}",
        soft_wrap=True,
        style=COLOURS.get(result.outcome, "yellow"),
    )
    output.emit(as_dict(result))
    return EXIT_CODES[result.outcome]


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
        "coverage": [
            {
                "action": one.action,
                "location": one.location,
                "distinct": one.distinct,
                "generated": one.generated,
            }
            for one in result.coverage
        ],
        "errors": result.errors,
        "warnings": result.warnings,
        "output": result.output,
        "tlc_exit_code": result.exit_code,
        "seconds": round(result.seconds, 3),
        "tlc_version": toolbox and toolbox.tlc_version,
        "jar": toolbox and toolbox.jar,
        "jar_from": toolbox and toolbox.jar_from,
        "java_version": toolbox and toolbox.java_version,
        "exit_code": int(EXIT_CODES[result.outcome]),
    }

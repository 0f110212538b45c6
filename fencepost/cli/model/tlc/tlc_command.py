"""`fencepost model tlc`: TLC, the model checker of TLA+, on our specifications or other ones."""

from pathlib import Path
from typing import Any

import rich_click as click

from fencepost.cli.model.tlc.conform import conform_command
from fencepost.cli.model.tlc.tlc_words import java_options, progress_words, run_options, tell, tell_toolbox
from fencepost.console.options import FILE, Decorator, Named, default_option, json_option, options
from fencepost.console.output import Output
from fencepost.model.tla import MODULES, SIZES, Size, files_of
from fencepost.model.tlc import Spec, Walks, check, simulate
from fencepost.traces.errors import ExitCode, FencepostError, unknown_name


class Workers(click.ParamType[int]):
    """A number of threads, or `auto` for one per processor (0)."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of a text. value: from the command line; param, ctx: click's, for the error message."""
        if value == "auto":
            return 0
        if not str(value).isdecimal() or not 1 <= int(value) <= 1024:
            self.fail(f"expected auto or a number from 1 to 1024, saw {value!r}", param, ctx)
        return int(value)


def assignments(texts: tuple[str, ...]) -> dict[str, str]:
    """name -> value of each `name=value`; for `name<-definition` the value is `<-definition`."""
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
    """The specification: a shipped one by name, or a file."""
    if spec in MODULES and not Path(spec).exists():
        module, shipped = files_of(spec, size)
        return Spec.at(module, config or shipped, assignments(constants))
    if not Path(spec).suffix and not Path(spec).with_suffix(".tla").exists():
        expected = f"a .tla or .cfg file, or one of {', '.join(MODULES)}"
        raise FencepostError(expected=expected, seen=unknown_name(spec, MODULES), where="SPEC")
    return Spec.at(Path(spec), config, assignments(constants))


_common: Decorator = options(
    click.argument("spec", default=MODULES[0], metavar="[SPEC]"),
    click.option("--config", type=FILE, help="TLC's configuration; by default the .cfg next to the module."),
    default_option(
        "--size", type=Named(SIZES), default="small", help="Which configuration of a shipped specification."
    ),
    click.option(
        "--constant",
        "constants",
        multiple=True,
        metavar="NAME=VALUE",
        help="Another value for a constant of the configuration, in TLA+. May be repeated.",
    ),
    default_option(
        "--workers",
        type=Workers(),
        default="auto",
        help="Threads. Depth and the length of a counterexample are exact only with 1.",
    ),
    click.option(
        "--deadlock/--no-deadlock",
        default=None,
        help="Check for deadlocks; by default as the configuration says, else yes.",
    ),
    java_options,
    json_option,
)
"""Add the options that check and simulate share."""


@click.group("tlc", short_help="TLC on TLA+ specifications, ours or yours.")
def command() -> None:
    """Run TLC, the model checker of TLA+, and report its result.

    SPEC is a .tla or .cfg file, or the name of a shipped specification: Replication, Controller, Group.

    \b
    Examples
      fencepost model tlc check Replication --workers 2
      fencepost model tlc simulate Replication
      # does the protocol allow every recorded step?
      fencepost model tlc conform out/mine
    """


@command.command("check", short_help="Visit every reachable state.")
@_common
def check_command(
    spec: str, config: Path | None, size: Size, constants: tuple[str, ...], output: Output, **options: Any
) -> ExitCode:
    """Visit every reachable state, breadth first, and check all invariants and properties.

    \b
    Examples
      # the replication protocol without KIP-279's protection
      fencepost model tlc check --size medium --constant 'Drop={"truncate_below_own_epoch"}'
      # your own specification
      fencepost model tlc check MySpec.tla --constant N=4 --workers auto --timeout 600
    """
    meant, asked = _spec(spec, config, size, constants), run_options(**options)
    tell_toolbox(output, asked)
    with output.progress("checking", 1) as bar:
        result = check(meant, asked, lambda progress: bar.to(0, progress_words(progress)))
    return tell(result, output)


@command.command("simulate", short_help="Take random walks.")
@_common
@default_option("--walks", type=click.IntRange(1), default=1_000, help="Behaviours to take.")
@default_option("--depth", type=click.IntRange(1), default=100, help="Steps in each.")
@default_option("--seed", type=int, default=0, help="Of the choices.")
def simulate_command(
    spec: str,
    config: Path | None,
    size: Size,
    constants: tuple[str, ...],
    output: Output,
    walks: int,
    depth: int,
    seed: int,
    **options: Any,
) -> ExitCode:
    """Take random walks through the reachable states. A walk without a finding proves nothing.

    \b
    Examples
      fencepost model tlc simulate Replication --walks 1000
      fencepost model tlc simulate --size large --walks 10000 --depth 60 --json
    """
    meant, asked = _spec(spec, config, size, constants), run_options(**options)
    tell_toolbox(output, asked)
    with output.progress("walking", 1) as bar:
        result = simulate(
            meant,
            Walks(number=walks, depth=depth, seed=seed),
            asked,
            lambda progress: bar.to(0, progress_words(progress)),
        )
    return tell(result, output)


command.add_command(conform_command)

"""`fencepost model`: explores the executable models, and compares them with their TLA+ twins."""

import time
from typing import TYPE_CHECKING, Any

import rich_click as click

from fencepost.cli.model.results import bounds_of, explored, note_unreached, stays_possible_told
from fencepost.cli.model.tlc import tlc_command as tlc
from fencepost.cli.model.tlc.tlc_command import assignments
from fencepost.console.options import Named, default_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.model.registry import NAMES, Model, shipped
from fencepost.traces.errors import ExitCode, FencepostError, unknown_name

if TYPE_CHECKING:
    from fencepost.model.explore import SlottedSystem


@click.group("model")
def command() -> None:
    """Explore the executable models: what should happen, and what goes wrong without a protection.

    A protection is dropped by its name or by its bug; the shortest counterexample is shown as a path.

    \b
    Examples
      fencepost model list
      fencepost model explore replication --drop truncate_by_epoch
    """


@command.command("list", short_help="The models, their constants and protections.")
@json_option
def list_command(output: Output) -> ExitCode:
    """List the models, their constants with default values, and the protections that can be dropped.

    \b
    Examples
      fencepost model list
    """
    from fencepost.traces.protections import PROTECTIONS

    fields = []
    for name, what in NAMES.items():
        model = shipped(name)
        output.say(f"{name}: {what}", "")
        rows = table("constant", ">by default")
        for constant, default in model.bounds.items():
            add_row(rows, constant, default)
        output.say(rows, "")
        rows = table("protection", "bug", "breaks", "what it says")
        protections = [one for one in PROTECTIONS if one.name in model.protections]
        for one in protections:
            add_row(rows, one.name, one.bug, one.breaks, one.says)
        output.say(rows)
        fields.append(
            {
                "name": name,
                "constants": dict(model.bounds),
                "protections": [
                    {"name": one.name, "bug": one.bug, "breaks": one.breaks} for one in protections
                ],
            }
        )
    return output.end(ExitCode.NOTHING_FOUND, {"models": fields})


@command.command("explore", short_help="Visit every reachable state of a model.")
@click.argument("name", type=Named(list(NAMES)))
@click.option(
    "--constant",
    "constants",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A constant that bounds the model; see `fencepost model list`.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="PROTECTION",
    help="Remove a protection, by its name or its bug. May be repeated.",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="INVARIANT",
    help="Check only these invariants, such as COMMIT-SAFE.",
)
@default_option("--states", type=click.IntRange(1), default=5_000_000, help="Limit of distinct states.")
@click.option("--depth", type=click.IntRange(0), help="At most this many steps from the beginning.")
@click.option(
    "--symmetry", is_flag=True, help="Count states that differ only in the names of replicas as one."
)
@click.option(
    "--memory", type=click.IntRange(64), metavar="MIB", help="Memory; beyond it the outcome is undecided."
)
@click.option(
    "--eventually",
    is_flag=True,
    help="Also check whether, from every state and without further faults, required events can still happen.",
)
@json_option
def explore_command(
    name: str,
    constants: tuple[str, ...],
    drop: tuple[str, ...],
    checks: tuple[str, ...],
    states: int,
    depth: int | None,
    symmetry: bool,
    memory: int | None,
    eventually: bool,
    output: Output,
) -> ExitCode:
    """Visit every reachable state in breadth-first order; a violation comes with a shortest path to it.

    \b
    Examples
      fencepost model explore replication --constant epochs=1
      fencepost model explore replication --constant epochs=2 --drop KIP-279
      # replicas are alike: fewer states
      fencepost model explore replication --constant epochs=2 --symmetry --memory 2000
      # does a deletion always come to its end?
      fencepost model explore controller --constant writes=0 --constant deletions=1 --eventually
    """
    from fencepost.model.explore import ExplorationOutcome, Limits, explore, render

    model = shipped(name)
    bounds = model.constants_of(assignments(constants), drop)
    system = _system(model, bounds, checks, eventually=eventually)
    limits = Limits(states=states, depth=depth, memory_mib=memory)
    started = time.monotonic()
    with output.progress("exploring", states) as bar:
        result = explore(
            system, limits, lambda distinct, level: bar.to(distinct, f"depth {level}"), symmetry=symmetry
        )
    seconds = time.monotonic() - started
    output.say(render(system, result))
    note_unreached(result, output)
    output.note(f"{result.transitions:,} transitions, {seconds:.1f} s")
    code = {
        ExplorationOutcome.HOLDS: ExitCode.NOTHING_FOUND,
        ExplorationOutcome.VIOLATED: ExitCode.FINDINGS,
        ExplorationOutcome.BOUNDED: ExitCode.UNDECIDED,
    }[result.outcome]
    fields = explored(result, system)
    if eventually and code is ExitCode.NOTHING_FOUND:
        code, fields["eventually"] = stays_possible_told(model.system(bounds, ()), limits, output)
    return output.end(
        code, {"model": name, "constants": bounds_of(bounds), **fields, "seconds": round(seconds, 3)}
    )


def _system(model: Model, bounds: Any, checks: tuple[str, ...], *, eventually: bool) -> "SlottedSystem[Any]":
    """The model with these bounds. An unknown name, or nothing to check, is the caller's mistake and raises
    FencepostError."""
    unknown = sorted(set(checks) - set(model.invariants))
    if unknown:
        raise FencepostError(
            expected=f"an invariant of {', '.join(model.invariants)}",
            seen=", ".join(unknown_name(one, model.invariants) for one in unknown),
            where="--check",
        )
    system = model.system(bounds, checks or model.invariants)
    if eventually and not system.eventually:
        raise FencepostError(
            expected="a model that says what must stay possible",
            seen=f"{model.name} with these constants",
            where="--eventually",
            hint="controller",
        )
    return system


command.add_command(tlc.command)

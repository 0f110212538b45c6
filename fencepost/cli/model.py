"""`fencepost model`: the executable models, explored, and compared with their TLA+ twins."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import rich_click as click

from fencepost.cli.console import Output, add_row, table
from fencepost.cli.options import json_option
from fencepost.cli.tlc import assignments
from fencepost.model.registry import NAMES, shipped
from fencepost.traces.errors import ExitCode, FencepostError

if TYPE_CHECKING:
    from fencepost.model.explore.system import Result


@click.group("model", short_help="Explore the executable models.")
def command() -> None:
    """Explore the executable models: what should happen, and what falls without a protection.

    A protection is dropped by its name or by its bug; the shortest counterexample is shown as a path.

    \b
    Examples
      fencepost model list
      fencepost model explore replication --drop truncate_by_epoch
    """


@command.command("list", short_help="The models, their constants and protections.")
@json_option
def list_command(as_json: bool) -> ExitCode:
    """The models, their constants with what they are by default, and the protections that can be dropped."""
    from fencepost.traces.protections import PROTECTIONS

    output = Output(as_json)
    told = []
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
        told.append(
            {
                "name": name,
                "constants": dict(model.bounds),
                "protections": [
                    {"name": one.name, "bug": one.bug, "breaks": one.breaks} for one in protections
                ],
            }
        )
    output.emit({"models": told})
    return ExitCode.NOTHING_FOUND


@command.command("explore", short_help="Visit every reachable state of a model.")
@click.argument("name", type=click.Choice(list(NAMES)))
@click.option(
    "--constant",
    "constants",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A bound; see `fencepost model list`.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="PROTECTION",
    help="Do without a protection, by its name or its bug. May be repeated.",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="INVARIANT",
    help="Look at these invariants only, such as COMMIT-SAFE.",
)
@click.option(
    "--states", type=click.IntRange(1), default=5_000_000, show_default=True, help="Distinct states at most."
)
@click.option("--depth", type=click.IntRange(0), help="Steps from the beginning at most.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option(
    "--symmetry", is_flag=True, help="Count states that differ only in the names of replicas as one."
)
@click.option(
    "--memory",
    type=click.IntRange(64),
    metavar="MIB",
    help="Memory of all processes at most; then the outcome is undecided.",
)
@json_option
def explore_command(
    name: str,
    constants: tuple[str, ...],
    drop: tuple[str, ...],
    checks: tuple[str, ...],
    states: int,
    depth: int | None,
    workers: int,
    symmetry: bool,
    memory: int | None,
    as_json: bool,
) -> ExitCode:
    """Visit every reachable state, nearest first; a violation comes with a shortest way to it.

    \b
    Examples
      fencepost model explore replication --constant epochs=1
      fencepost model explore replication --constant epochs=2 --drop KIP-279
      # replicas are alike: fewer states
      fencepost model explore replication --constant epochs=2 --symmetry --memory 2000
    """
    from fencepost.model.explore import Limits, Outcome, explore, render

    output, model = Output(as_json), shipped(name)
    unknown = sorted(set(checks) - set(model.invariants))
    if unknown:
        raise FencepostError(
            expected=f"an invariant of {', '.join(model.invariants)}",
            seen=", ".join(unknown),
            where="--check",
        )
    bounds = model.constants_of(assignments(constants), drop)
    system = model.system(bounds, checks or model.invariants)
    started = time.monotonic()
    with output.progress("exploring", states) as bar:
        result = explore(
            system,
            Limits(states=states, depth=depth, memory_mib=memory),
            lambda distinct, level: bar.to(distinct, f"depth {level}"),
            workers=workers,
            symmetry=symmetry,
        )
    seconds = time.monotonic() - started
    output.say(render(system, result))
    _note_unreached(result, output)
    output.note(f"{result.transitions:,} transitions, {seconds:.1f} s")
    code = {
        Outcome.HOLDS: ExitCode.NOTHING_FOUND,
        Outcome.VIOLATED: ExitCode.FINDINGS,
        Outcome.BOUNDED: ExitCode.UNDECIDED,
    }[result.outcome]
    output.emit(
        {
            "model": name,
            "constants": {**attrs.asdict(bounds), "drop": sorted(bounds.drop)},
            "outcome": str(result.outcome),
            "distinct": result.distinct,
            "depth": result.depth,
            "transitions": result.transitions,
            "taken": dict(result.taken),
            "never_taken": result.never_taken,
            "never_reached": result.never_reached,
            "invariant": result.invariant,
            "counterexample": [
                {"action": step.action, "state": system.describe(step.state).splitlines()}
                for step in result.path
            ],
            "seconds": round(seconds, 3),
            "exit_code": int(code),
        }
    )
    return code


def _note_unreached(result: "Result", output: Output) -> None:
    for what, names in (("never taken", result.never_taken), ("never reached", result.never_reached)):
        if names and result.outcome == "holds":
            output.say(f"{what}: {', '.join(names)}")


@command.command("matrix", short_help="The explorer and TLC on every variant, side by side.")
@click.option(
    "--model", "name", type=click.Choice(list(NAMES)), default="replication", show_default=True, help="Which one."
)  # fmt: skip
@click.option(
    "--size", type=click.Choice(["small", "medium"]), default="small", show_default=True,
    help="small: a few minutes, all states counted. medium: millions of states.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the table there, as Markdown."
)
@json_option
def matrix_command(name: str, size: str, out: Path | None, as_json: bool) -> ExitCode:
    """Run a model's variants through the explorer and through TLC (one worker), and compare what both say.

    Exit code 1 if they disagree anywhere.
    """
    from fencepost.model.tla.matrix import cells, headings, words
    from fencepost.model.tla.sameness import compare

    output, model = Output(as_json), shipped(name)
    heads, rows = headings(model), model.variants(size)
    made = table(*heads)
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    compared = []
    with output.progress("comparing", len(rows)) as bar:
        for done, row in enumerate(rows):
            bar.to(done, words(model, row))
            comparison = compare(row.constants, time.monotonic, count=row.count)
            compared.append(comparison)
            found = cells(model, row, comparison)
            add_row(made, *found, style="" if comparison.same else "red")
            lines.append("| " + " | ".join(found) + " |")
            if out is not None:
                out.write_text(
                    "\n".join(lines) + "\n", encoding="utf-8"
                )  # after each row: a long run may be ended
    output.say(made)
    same = all(comparison.same for comparison in compared)
    output.note(
        f"{len(compared)} variants, {'all the same' if same else 'NOT the same'}; {os.cpu_count()} processors"
    )
    output.emit(
        {
            "same": same,
            "rows": [
                {
                    "constants": {**attrs.asdict(one.constants), "drop": sorted(one.constants.drop)},
                    "same": one.same,
                    "explorer": attrs.asdict(one.explorer),
                    "tlc": attrs.asdict(one.tlc),
                }
                for one in compared
            ],
            "exit_code": int(ExitCode.NOTHING_FOUND if same else ExitCode.FINDINGS),
        }
    )
    return ExitCode.NOTHING_FOUND if same else ExitCode.FINDINGS

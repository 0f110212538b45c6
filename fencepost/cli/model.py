"""`fencepost model`: the executable models, explored, and compared with their TLA+ twins."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from fencepost.cli.console import Output, add_row, table
from fencepost.cli.options import json_option
from fencepost.cli.tlc import assignments
from fencepost.traces.errors import ExitCode, FencepostError

if TYPE_CHECKING:
    from fencepost.model.explore.system import Result

MODELS = {
    "replication": "the data path: election, append, fetch, truncation, high watermark, ISR, crash (SPEC.md R)"
}


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
    from fencepost.model.replication_state import DATA_PATH, Constants
    from fencepost.traces.protections import PROTECTIONS

    output = Output(as_json)
    constants = {field.name: field.default for field in attrs.fields(Constants) if field.name != "drop"}
    protections = [one for one in PROTECTIONS if one.name in DATA_PATH]
    for name, what in MODELS.items():
        output.say(f"{name}: {what}", "")
        rows = table("constant", ">by default")
        for constant, default in constants.items():
            add_row(rows, constant, default)
        output.say(rows, "")
        rows = table("protection", "bug", "breaks", "what it says")
        for one in protections:
            add_row(rows, one.name, one.bug, one.breaks, one.says)
        output.say(rows)
    output.emit(
        {
            "models": [
                {
                    "name": name,
                    "constants": constants,
                    "protections": [
                        {"name": one.name, "bug": one.bug, "breaks": one.breaks} for one in protections
                    ],
                }
                for name in MODELS
            ]
        }
    )
    return ExitCode.NOTHING_FOUND


def _replication(constants: tuple[str, ...], drop: tuple[str, ...]) -> Any:
    """The constants of the replication model that the options mean. A protection may be named by its bug, too."""
    from fencepost.model.replication_state import Constants
    from fencepost.traces.protections import BY_BUG

    known = {field.name for field in attrs.fields(Constants)} - {"drop"}
    values: dict[str, Any] = {}
    for name, value in assignments(constants).items():
        if name not in known or not value.isdecimal():
            raise FencepostError(
                expected=f"NAME=NUMBER with a name of {', '.join(sorted(known))}",
                seen=f"{name}={value}",
                where="--constant",
            )
        values[name] = int(value)
    return Constants(**values, drop={BY_BUG[name].name if name in BY_BUG else name for name in drop})


@command.command("explore", short_help="Visit every reachable state of a model.")
@click.argument("name", type=click.Choice(list(MODELS)))
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
    from fencepost.model.replication import Replication
    from fencepost.model.replication_invariants import OF_STATES

    output = Output(as_json)
    unknown = sorted(set(checks) - set(OF_STATES))
    if unknown:
        raise FencepostError(
            expected=f"an invariant of {', '.join(OF_STATES)}", seen=", ".join(unknown), where="--check"
        )
    system = Replication(_replication(constants, drop), checks or tuple(OF_STATES))
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
            "constants": {**attrs.asdict(system.constants), "drop": sorted(system.constants.drop)},
            "outcome": str(result.outcome),
            "distinct": result.distinct,
            "depth": result.depth,
            "transitions": result.transitions,
            "taken": dict(result.taken),
            "never_taken": result.never_taken,
            "never_reached": result.never_reached,
            "invariant": result.invariant,
            "counterexample": [
                {"action": step.action, "state": system.describe(step.state).splitlines()}  # type: ignore[arg-type]
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
    "--size", type=click.Choice(["small", "medium"]), default="small", show_default=True,
    help="small: a few minutes, all states counted. medium: three replicas and epochs 0..2, millions of states.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the table there, as Markdown."
)
@json_option
def matrix_command(size: str, out: Path | None, as_json: bool) -> ExitCode:
    """Run the replication model's variants through the explorer and through TLC (one worker), and compare what both say.

    Exit code 1 if they disagree anywhere.
    """
    from fencepost.model.tla.matrix import HEADINGS, cells, rows_of
    from fencepost.model.tla.sameness import compare

    output = Output(as_json)
    made = table(*HEADINGS)
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    compared = []
    rows = rows_of(size)
    with output.progress("comparing", len(rows)) as bar:
        for done, row in enumerate(rows):
            bar.to(done, row.words)
            comparison = compare(row.constants, time.monotonic, count=row.count)
            compared.append(comparison)
            found = cells(row, comparison)
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

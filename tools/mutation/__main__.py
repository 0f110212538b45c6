"""`python -m tools.mutation impl|checkers|model [PART...]`: small faults, and who notices them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from fencepost.console.options import jobs_option, json_option
from fencepost.traces.errors import ExitCode
from tools import program
from tools.ledger import TOP
from tools.mutation.checkers.subject import Checkers
from tools.mutation.checkers.table import CHECKERS
from tools.mutation.engine import Subject, examine
from tools.mutation.finder import faults_of
from tools.mutation.impl.subject import Implementation
from tools.mutation.impl.subjects import AREAS, files_of
from tools.mutation.impl.subjects import mutants_of as mutants_of_impl
from tools.mutation.impl.trial import PATIENCE
from tools.mutation.model.recorded import PAGES
from tools.mutation.model.subject import Models, mutants_of

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
COMMON: tuple[Callable[[Any], Any], ...] = (
    click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N faults, always the same."),
    click.option("--seed", default="", metavar="WORD", help="Of the sample: another one is a fresh sample."),
    click.option("--only", default="", metavar="TEXT", help="Only faults with this text in their name."),
    click.option("--list", "listed", is_flag=True, help="Try nothing; name the faults."),
    click.option("--report", is_flag=True, help="Try nothing; say what is known."),
    click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("out/mutation"),
        show_default=True,
        help="Results, a line each; a run goes on where the last one ended.",
    ),
    jobs_option,
    json_option,
)


def common(command: Any) -> Any:
    """The options of every subject."""
    for option in reversed(COMMON):
        command = option(command)
    return command


def number(name: str, default: int, help: str, *, least: int = 1) -> Any:
    """An option that is a number."""
    return click.option(name, type=click.IntRange(least), default=default, show_default=True, help=help)


@click.group("mutation", context_settings=HELP)
@click.rich_config({"text_paragraph_linebreaks": "\n\n"})
def command() -> None:
    """Put small faults into a source, one at a time, each in a process of its own, and see who notices. Exits
    1
    if too many are left.

    \b
    Examples
      # a fresh sample of fifty of the implementation's
      python -m tools.mutation impl --sample 50 --seed 7 --json
      # three hundred of the log judge's; after a Ctrl-C the same line goes on
      python -m tools.mutation checkers log --sample 300
      # a hundred of the model of groups, against TLC's answers
      python -m tools.mutation model group --sample 100
    """


def _examine(subject: Subject, asked: dict[str, Any]) -> ExitCode:
    return examine(
        subject,
        sample=asked["sample"],
        word=asked["seed"],
        only=asked["only"],
        listed=asked["listed"],
        reported=asked["report"],
        jobs=asked["jobs"],
        output=asked["output"],
    )


@command.command("impl")
@click.argument("areas", nargs=-1, type=click.Choice(sorted(AREAS)))
@number("--seeds", 300, "Runs of each fault.")
@number("--first", 0, "The first seed of each profile.", least=0)
@click.option("--profile", "profiles", multiple=True, help="Of the swarm, in turn. [default: everything]")
@number("--patience", PATIENCE, "After so many runs that differ and are not convicted a fault survived.")
@number("--examples", 5_000, "Of the log machine, for faults of the log that no run convicts.", least=0)
@common
def impl(
    areas: tuple[str, ...], seeds: int, first: int, profiles: tuple[str, ...], patience: int, examples: int,
    **asked: Any,
) -> ExitCode:  # fmt: skip
    """Faults of the implementation, convicted by the judges of the swarm's runs."""
    profiles = profiles or ("everything",)
    parts = {
        area: [fault for file in files_of(area) for fault in mutants_of_impl(file)]
        for area in areas or tuple(AREAS)
    }
    subject = Implementation(
        parts=parts,
        out=asked["out"],
        asked={"profiles": "+".join(profiles), "first": first, "seeds": seeds},
        profiles=profiles,
        first=first,
        seeds=seeds,
        patience=patience,
        examples=examples,
    )
    return _examine(subject, asked)


@command.command("checkers")
@click.argument("names", nargs=-1, type=click.Choice(tuple(CHECKERS)))
@click.option("--again", is_flag=True, help="Try once more what survived other tests than those of now.")
@click.option("--survivors", is_flag=True, help="Try only what survived and has no reason.")
@click.option(
    "--budget",
    type=click.FloatRange(1),
    default=6.0,
    show_default=True,
    metavar="SECONDS",
    help="Of tests for each fault: what they do not notice, a longer look seldom does.",
)
@common
def checkers(names: tuple[str, ...], again: bool, survivors: bool, budget: float, **asked: Any) -> ExitCode:
    """Faults of the judges' rules, noticed by their tests (95 % of each checker's). --sample: of each
    checker."""
    chosen = {name: CHECKERS[name] for name in CHECKERS if name in (names or CHECKERS)}
    parts = {
        name: [fault for file in each.files() for fault in faults_of(file, (TOP / file).read_text("utf-8"))]
        for name, each in chosen.items()
    }
    subject = Checkers(
        parts=parts, out=asked["out"], checkers=chosen, budget_s=budget, again=again, survivors=survivors
    )
    return _examine(subject, asked)


@command.command("model")
@click.argument("models", nargs=-1, type=click.Choice(sorted(PAGES)))
@number("--states", 20_000, "Of a row of TLC's tables: the explorer needs a second for so many.")
@common
def model(models: tuple[str, ...], states: int, **asked: Any) -> ExitCode:
    """Faults of the models' rules, compared with what TLC answered."""
    parts = {name: mutants_of(name) for name in models or sorted(PAGES)}
    subject = Models(parts=parts, out=asked["out"], asked={"states": states}, states=states)
    return _examine(subject, asked)


if __name__ == "__main__":
    program.run(command, "mutation")

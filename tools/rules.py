"""`python -m tools.rules`: prints where each rule of the protocol is kept.

A rule of the protocol stands in three places under one name (fencepost/traces/protections), and nowhere
else: a method of the implementation, a guard of the model, and its TLA+ twin. The judges do not repeat it:
they promise what breaks without it. The table is found in the sources, so that a rule that loses a home loses
its row.
"""

import re
from functools import cache
from pathlib import Path

import rich_click as click
from attrs import frozen

from fencepost.bugs import BUGS
from fencepost.traces.protections import PROTECTIONS, Protection
from tools import program
from tools.ledger import TOP

PACKAGE = TOP / "fencepost"


@frozen(kw_only=True)
class Home:
    """Where one rule stands. Files are relative to the package."""

    rule: Protection
    # Class.method, or the function, with its file.
    impl: tuple[str, str]
    # The file of the guard in the model, and of the one in TLA+.
    model: str
    tla: str


@cache
def sources(folder: str, ending: str) -> dict[str, str]:
    """Texts by path."""
    paths = sorted((PACKAGE / folder).rglob(f"*{ending}"))
    return {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in paths}


def implemented(rule: Protection) -> tuple[str, str]:
    """The method of the implementation that a planted bug replaces, with its file; ("", ""): none."""
    planted = BUGS.get(rule.bug)
    for one in planted.part.__mro__ if planted else ():
        if one.__module__.startswith("fencepost.impl.") and rule.name in vars(one):
            file = one.__module__.removeprefix("fencepost.").replace(".", "/")
            return f"{one.__name__}.{rule.name}", f"{file}.py"
    return "", ""


def guarded(folder: str, ending: str, name: str) -> str:
    """The file in which a rule can be dropped by its name; "": none."""
    asked = re.compile(rf"""\b[Kk]eeps\(\s*["']{name}["']""")
    return next((path for path, text in sources(folder, ending).items() if asked.search(text)), "")


def homes() -> list[Home]:
    """The rules that have all of their homes, in the order of the registry."""
    found = []
    for rule in PROTECTIONS:
        impl = implemented(rule)
        model, tla = guarded("model", ".py", rule.name), guarded("model/tla", ".tla", rule.name)
        if all(impl) and model and tla:
            found.append(Home(rule=rule, impl=impl, model=model, tla=tla))
    return found


def table(rows: list[Home]) -> str:
    """As Markdown."""
    lines = ["| rule | implementation | model | TLA+ |", "|---|---|---|---|"]
    for one in rows:
        (name, file), tla = one.impl, Path(one.tla).name
        lines.append(
            f"| `{one.rule.name}` ({one.rule.bug}) | `{name}` in `{file}` | `{one.model}` | `{tla}` |"
        )
    return "\n".join([*lines, ""])


@click.command("rules", help=__doc__)
def command() -> None:
    """Print it."""
    click.echo(table(homes()), nl=False)


if __name__ == "__main__":
    program.run(command, "rules")

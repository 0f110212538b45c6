"""`python -m tools.rules`: writes the table "rule -> home" between the marks of docs/reference/rules.md.

A rule of the protocol stands in three places under one name (fencepost/traces/protections.py), and nowhere
else: a method of the implementation, a guard of the model, and its TLA+ twin. The judges do not repeat it:
they promise what breaks without it. The table is found in the sources, so that a rule that loses a home loses
its row.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import rich_click as click
from attrs import frozen

from fencepost.traces.anomalies import ANOMALIES
from fencepost.traces.protections import PROTECTIONS, Protection
from tools import program
from tools.ledger import TOP
from tools.page import drawn

PAGE = TOP / "docs" / "reference" / "rules.md"
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
    # The worst anomaly that judges can find without the rule.
    anomaly: str


@cache
def sources(folder: str, ending: str) -> dict[str, str]:
    """Texts by path."""
    paths = sorted((PACKAGE / folder).rglob(f"*{ending}"))
    return {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in paths}


def methods(tree: ast.Module) -> Iterator[str]:
    """Qualified names of all functions of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef))


@cache
def implemented() -> dict[str, list[tuple[str, str]]]:
    """(qualified name, file) of the implementation's functions, by name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path, text in sources("impl", ".py").items():
        for name in methods(ast.parse(text)):
            found.setdefault(name.rpartition(".")[2], []).append((name, path))
    return found


def guarded(folder: str, ending: str, name: str) -> str:
    """The file in which a rule can be dropped by its name; "": none."""
    asked = re.compile(rf"""\b[Kk]eeps\(\s*["']{name}["']""")
    return next((path for path, text in sources(folder, ending).items() if asked.search(text)), "")


def anomaly_of(invariant: str) -> str:
    """The worst anomaly that breaks an invariant; "": none does."""
    broken = (one for one in ANOMALIES if one.breaks == invariant)
    return min(((one.rank, one.name) for one in broken), default=(0, ""))[1]


def homes() -> list[Home]:
    """The rules that have all of their homes, in the order of the registry."""
    found = []
    for rule in PROTECTIONS:
        methods = implemented().get(rule.name, ())
        model, tla = guarded("model", ".py", rule.name), guarded("model/tla", ".tla", rule.name)
        anomaly = anomaly_of(rule.breaks)
        if len(methods) == 1 and model and tla and anomaly:
            found.append(Home(rule=rule, impl=methods[0], model=model, tla=tla, anomaly=anomaly))
    return found


def table(rows: list[Home]) -> str:
    """As Markdown."""
    lines = [
        "| rule | says | implementation | model | TLA+ | breaks, and who sees it |",
        "|---|---|---|---|---|---|",
    ]
    for one in rows:
        name, file = one.impl
        lines.append(
            f"| `{one.rule.name}` ({one.rule.bug}) | {one.rule.says} | `{name}` in `{file}` | `{one.model}` "
            f"| `{Path(one.tla).name}` | {one.rule.breaks}: `{one.anomaly}` |"
        )
    return "\n".join([*lines, ""])


@click.command("rules", help=__doc__)
def command() -> None:
    """Write it anew."""
    drawn(PAGE, "rules").write(table(homes()))


if __name__ == "__main__":
    program.run(command, "rules")

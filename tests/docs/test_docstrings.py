"""Docstrings agree with the code: they name parameters that exist, and public functions name theirs.

`tests/docs/undocumented.txt` lists the public functions that do not name any of their parameters yet. The
list may only get shorter: a function that is documented, renamed or removed leaves it. After that, `python -m
tests.docs.test_docstrings` writes the new list.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TOP = Path(__file__).parents[2]
ALLOWED = Path(__file__).parent / "undocumented.txt"
FEW = 2
"""A function with fewer parameters says enough in its first sentence."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _parameters(function: Function) -> list[str]:
    """The names of the parameters, without self and cls."""
    of = function.args
    named = [one.arg for one in (*of.posonlyargs, *of.args, *of.kwonlyargs)]
    named += [one.arg for one in (of.vararg, of.kwarg) if one is not None]
    return [name for name in named if name not in ("self", "cls")]


def _functions(node: ast.AST, prefix: str = "", public: bool = True) -> Iterator[tuple[str, bool, Function]]:
    """(dotted name, whether it is public, function) of all functions and methods inside `node`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            shown = public and not child.name.startswith("_")
            if not isinstance(child, ast.ClassDef):
                yield name, shown, child
                shown = False
            yield from _functions(child, f"{name}.", shown)
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _functions(child, prefix, public)


@cache
def _modules() -> tuple[tuple[str, ast.Module], ...]:
    """(path, syntax tree) of each module of the package, in order."""
    paths = sorted((TOP / "fencepost").rglob("*.py"))
    return tuple((path.relative_to(TOP).as_posix(), ast.parse(path.read_text())) for path in paths)


def documented_parameters(docstring: str) -> list[str]:
    """The names in the section `Args:` of a docstring."""
    section = docstring.partition("Args:\n")[2]
    names: list[str] = []
    for line in section.split("\n"):
        if line and not line.startswith(" "):
            break
        entry = re.match(r"    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", line)
        names += [name.strip(" *") for name in entry[1].split(",")] if entry else []
    return names


def undocumented(path: str, module: ast.Module) -> Iterator[str]:
    """`path::name` of each public function with several parameters that names none of them. Overloads, which
    have no docstring, and private modules are left out."""
    if Path(path).name.startswith("_") and Path(path).name != "__init__.py":
        return
    for name, public, function in _functions(module):
        decorators = {ast.unparse(one).rpartition(".")[2] for one in function.decorator_list}
        named = [one for one in _parameters(function) if not one.startswith("_")]
        words = set(re.findall(r"\w+", ast.get_docstring(function) or ""))
        if public and len(named) >= FEW and "overload" not in decorators and not words & set(named):
            yield f"{path}::{name}"


def test_documented_parameters_exist() -> None:
    """Rule: a section `Args:` names the parameters of its function, all of them and no others."""
    wrong = [
        f"{path}::{name} documents {documented}, has {_parameters(function)}"
        for path, module in _modules()
        for name, _, function in _functions(module)
        if (documented := documented_parameters(ast.get_docstring(function) or ""))
        and set(documented) != {one for one in _parameters(function) if not one.startswith("_")}
    ]
    assert not wrong, "\n".join(wrong)


def test_public_functions_name_their_parameters() -> None:
    """Rule: the docstring of a public function with several parameters says what they are. The list of
    exceptions may only get shorter."""
    allowed = ALLOWED.read_text().split()
    found = [entry for path, module in _modules() for entry in undocumented(path, module)]
    assert not set(found) - set(allowed), "document the parameters of these functions"
    assert not set(allowed) - set(found), f"these are documented or gone: remove them from {ALLOWED.name}"


def test_a_fault_is_found() -> None:
    """Rule: both checks find a planted fault."""
    text = '''
def public(one, two):
    """Says nothing."""

def wrong(one, two):
    """Says too much.

    Args:
        one: the first.
        three: not there.
    """
'''
    module = ast.parse(text)
    assert list(undocumented("fencepost/x.py", module)) == ["fencepost/x.py::public"]
    assert [documented_parameters(ast.get_docstring(f) or "") for _, _, f in _functions(module)] == [
        [],
        ["one", "three"],
    ]


if __name__ == "__main__":
    ALLOWED.write_text(
        "".join(f"{entry}\n" for path, module in _modules() for entry in undocumented(path, module))
    )

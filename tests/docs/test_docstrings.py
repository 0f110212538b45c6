"""Docstrings agree with the code: they name parameters that exist, and public functions name theirs."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

TOP = Path(__file__).parents[2]
DRIVERS = "drivers/"
CALLS = {"mfusepy.Operations"}
"""Classes of libraries that do nothing but call methods of a fixed interface."""
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
    paths = sorted(path for folder in ("fencepost", DRIVERS) for path in (TOP / folder).rglob("*.py"))
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


def _says_nothing(function: Function) -> bool:
    """Whether a function with several parameters names none of them."""
    named = [one for one in _parameters(function) if not one.startswith("_")]
    words = set(re.findall(r"\w+", ast.get_docstring(function) or ""))
    return len(named) >= FEW and not words & set(named)


def _classes(module: ast.Module) -> Iterator[ast.ClassDef]:
    """The classes of a module that are not inside of a function."""
    yield from (node for node in module.body if isinstance(node, ast.ClassDef))


def _bases(of: ast.ClassDef) -> list[str]:
    """The names of the classes that it is made of."""
    return [re.split(r"[.\[]", ast.unparse(base).partition("[")[0])[-1] for base in of.bases]


@cache
def _known() -> dict[str, list[ast.ClassDef]]:
    """The classes of the package by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for _, module in _modules():
        for one in _classes(module):
            found.setdefault(one.name, []).append(one)
    return found


def _inherits(of: ast.ClassDef, method: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a class above this one documents the parameters of a method of this name: an override does
    what it says there, and its own docstring says what is different. The calls of a library's
    class are documented there."""
    if CALLS & {ast.unparse(base) for base in of.bases}:
        return True
    for name in set(_bases(of)) - seen:
        for base in _known().get(name, []):
            for function in base.body:
                if isinstance(function, Function) and function.name == method and not _says_nothing(function):
                    return True
            if _inherits(base, method, seen | {name}):
                return True
    return False


def undocumented(path: str, module: ast.Module) -> Iterator[str]:
    """`path::name` of each public function with several parameters that names none of them. Left out are
    overloads, which have no docstring; private modules; overrides of what is documented; commands, of which
    each option has its own help; drivers, which are programs; and what passes on whatever it is given."""
    if (Path(path).name.startswith("_") and Path(path).name != "__init__.py") or path.startswith(DRIVERS):
        return
    owners = {one.name: one for one in _classes(module)}
    for name, public, function in _functions(module):
        decorators = {
            ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in function.decorator_list
        }
        owner = owners.get(name.rpartition(".")[0])
        passes_on = function.args.vararg and function.args.kwarg and len(function.args.args) == 1
        if not public or passes_on or {"overload", "command"} & decorators or not _says_nothing(function):
            continue
        if owner is None or not _inherits(owner, function.name):
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
    """Rule: the docstring of a public function with several parameters says what they are."""
    found = [entry for path, module in _modules() for entry in undocumented(path, module)]
    assert not found, "\n".join(["document the parameters of these functions:", *found])


SAID = re.compile(r"(?:\A|(?<=[.;)])\s+|\n\n)([a-z][a-z_0-9]*(?:, [a-z][a-z_0-9]*)*): (?=\S)")
"""The names at the beginning of a sentence of a class docstring that says what they are."""
SHOWN = ("kafka/", "history/", "machines/", "checkers/models/", "checkers/linearizability/", "model/tlc/")
"""Rooms that the page of the API shows: what it says of fields are docstrings below them."""


def _names(of: ast.ClassDef, seen: frozenset[str] = frozenset()) -> set[str]:
    """Fields, attributes, methods and their parameters of a class and of those above it."""
    found = set()
    for node in ast.walk(of):
        if isinstance(node, ast.Name | ast.Attribute | ast.arg | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None))
            found.add(getattr(node, "name", None))
    for name in set(_bases(of)) - seen:
        for base in _known().get(name, []):
            found |= _names(base, seen | {name})
    return {name.lstrip("_") for name in found if name}


def missing_names(of: ast.ClassDef) -> set[str]:
    """What the docstring of a class with fields says something about, and what is not there."""
    fields = any(isinstance(node, ast.AnnAssign) for node in of.body)
    said = SAID.finditer(ast.get_docstring(of) or "") if fields else ()
    return {name for names in said for name in names[1].split(", ")} - _names(of)


def below_fields(of: ast.ClassDef) -> list[str]:
    """Fields with a docstring below them."""
    return [
        ast.unparse(field.target)
        for field, words in pairwise(of.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(words, ast.Expr)
        and isinstance(words.value, ast.Constant)
        and isinstance(words.value.value, str)
    ]


def test_documented_fields_exist() -> None:
    """Rule: a class says nothing of a field that it does not have (any more)."""
    wrong = [
        f"{path}::{one.name} documents {missing}"
        for path, module in _modules()
        for one in _classes(module)
        if (missing := missing_names(one))
    ]
    assert not wrong, "\n".join(wrong)


def test_fields_have_one_convention() -> None:
    """Rule: meaning, unit and bound of a field are in a comment line above it; only what the page of the API
    shows has docstrings."""
    wrong = [
        f"{path}::{one.name}: {found}"
        for path, module in _modules()
        if not path.removeprefix("fencepost/").startswith(SHOWN)
        for one in _classes(module)
        if (found := below_fields(one))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_field_that_is_gone_is_found() -> None:
    """Rule: both checks of fields find a planted fault."""
    (planted,) = ast.parse(
        'class A:\n """Says. one: is there; told: is gone."""\n one: int\n """X."""\n'
    ).body
    assert isinstance(planted, ast.ClassDef)
    assert missing_names(planted) == {"told"} and below_fields(planted) == ["one"]


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
    override = ast.parse('class Mine(Protection):\n    def isr_members_only(self, one, two):\n        "No."')
    assert [entry.partition("::")[2] for entry in undocumented("fencepost/x.py", override)] == [
        "Mine.isr_members_only"
    ]
    assert [documented_parameters(ast.get_docstring(f) or "") for _, _, f in _functions(module)] == [
        [],
        ["one", "three"],
    ]

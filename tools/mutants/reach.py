"""Which statements of the implementation each seed comes to, measured once for the unmutated code.

Owns the marks in the sources and the table of what was reached. A mutant whose statement a seed never comes
to does there what the original does, so that only the seeds that come to it are worth a run; and one whose
digest is that of the original has changed nothing. Must not know mutants nor outcomes.

Each statement inside of a function gets a mark in front: one assignment to a byte array. sys.settrace would
cost several times the run's own time.
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import define, field, frozen

from tools.mutants.subjects import module_of
from tools.mutation.checkers import TOP

HITS = "__statements_reached__"
SOURCES = ("impl", "sim", "campaign", "systems", "traces", "model")
"""Folders of the package that a run and its digest depend on."""


@define
class Statements:
    """Of one source: the first line of each statement inside of a function, in their order, and the mark of
    each."""

    lines: list[int] = field(factory=list)


class _Marker(ast.NodeTransformer):
    def __init__(self) -> None:
        self.statements = Statements()
        self.inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer, self.inside = self.inside, True
        self.generic_visit(node)
        self.inside = outer
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if not self.inside:
            return node
        for part in ("body", "orelse", "finalbody"):
            statements = getattr(node, part, None)
            if isinstance(statements, list) and statements and isinstance(statements[0], ast.stmt):
                setattr(
                    node, part, [more for statement in statements for more in self._marked(statement, node)]
                )
        return node

    def _marked(self, statement: ast.stmt, parent: ast.AST) -> list[ast.stmt]:
        if isinstance(parent, ast.ClassDef):
            return [statement]
        line = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])
        place = len(self.statements.lines)
        self.statements.lines.append(line)
        mark = ast.parse(f"{HITS}[{place}] = 1").body[0]
        for node in ast.walk(mark):
            ast.copy_location(node, statement)
        return [mark, statement]


def marked(source: str) -> tuple[ast.Module, Statements]:
    """The source with a mark in front of each statement, and where each mark is."""
    marker = _Marker()
    tree = marker.visit(ast.parse(source))
    return ast.fix_missing_locations(tree), marker.statements


@frozen
class MarkedSources(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads these modules with marks. files: by module; hits, statements: by file, filled as they are
    imported."""

    files: dict[str, str]
    hits: dict[str, bytearray] = field(factory=dict)
    statements: dict[str, Statements] = field(factory=dict)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Of those modules only."""
        if fullname not in self.files:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(TOP / self.files[fullname]))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the source."""
        file = self.files[module.__name__]
        module.__file__ = str(TOP / file)
        tree, statements = marked((TOP / file).read_text(encoding="utf-8"))
        self.statements[file] = statements
        self.hits[file] = module.__dict__[HITS] = bytearray(len(statements.lines))
        exec(compile(tree, module.__file__, "exec"), module.__dict__)  # this repository's own, with marks


@define
class Reached:
    """runs: (profile, seed) in order, with the digest of each. reached: by file, a statement's first line and
    a bit for each run that came to it."""

    runs: list[tuple[str, int]] = field(factory=list)
    digests: list[str] = field(factory=list)
    reached: dict[str, list[tuple[int, int]]] = field(factory=dict)

    def of(self, file: str, lines: tuple[int, int]) -> list[int]:
        """The runs that come to the innermost statement around these lines."""
        rows = self.reached.get(file)
        if rows is None:
            return []
        place = bisect_right(rows, (lines[0], 1 << (len(self.runs) + 1))) - 1
        bits = rows[place][1] if place >= 0 else 0
        return [number for number in range(len(self.runs)) if bits >> number & 1]

    def write(self, path: Path) -> None:
        """As JSON, the bits in hexadecimal."""
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = {file: [(line, f"{bits:x}") for line, bits in found] for file, found in self.reached.items()}
        path.write_text(json.dumps({"runs": self.runs, "digests": self.digests, "reached": rows}))


def read(path: Path) -> Reached | None:
    """What was measured, or None."""
    if not path.exists():
        return None
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Reached(
        runs=[(profile, seed) for profile, seed in known["runs"]],
        digests=known["digests"],
        reached={
            file: [(line, int(bits, 16)) for line, bits in rows] for file, rows in known["reached"].items()
        },
    )


def state_of_the_code() -> str:
    """A digest of everything that a run depends on."""
    state = blake2b(digest_size=8)
    for folder in SOURCES:
        for path in sorted((TOP / "fencepost" / folder).rglob("*.py")):
            state.update(path.relative_to(TOP).as_posix().encode() + path.read_bytes())
    return state.hexdigest()


def measure(files: Iterable[str], runs: Sequence[tuple[str, int]]) -> Reached:
    """Run each plan with marks in these sources. For a process of its own, that has imported none of them."""
    import sys

    finder = MarkedSources({module_of(file): file for file in files})
    assert not set(finder.files) & set(sys.modules), "imported already"
    sys.meta_path.insert(0, finder)
    from fencepost.campaign.run.run import run
    from fencepost.campaign.swarm.swarm import swarm

    found: dict[str, list[int]] = {}
    reached = Reached(runs=list(runs))
    for number, (profile, seed) in enumerate(runs):
        for hits in finder.hits.values():
            hits[:] = bytes(len(hits))
        reached.digests.append(run(swarm(seed, profile)).digest)
        for file, hits in finder.hits.items():
            bits = found.setdefault(file, [0] * len(hits))
            for place, hit in enumerate(hits):
                if hit:
                    bits[place] |= 1 << number
    for file, bits in found.items():
        rows: dict[int, int] = {}
        for line, one in zip(finder.statements[file].lines, bits, strict=True):
            rows[line] = rows.get(line, 0) | one
        reached.reached[file] = sorted(rows.items())
    return reached

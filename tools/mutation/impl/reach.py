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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import define, field, frozen

from tools.ledger import TOP, digest
from tools.mutation.fault import Fault, module_of
from tools.mutation.impl.infection import PROBE, Place, Probe, numbered, place_of, probed, probes_of, recorder

HITS = "__statements_reached__"
SOURCES = ("impl", "sim", "campaign", "systems", "traces", "model")
"""Folders of the package that a run and its digest depend on."""


@define
class Statements:
    """Of one source: the first line of each statement inside of a function, in their order, and the mark of
    each."""

    lines: list[int] = field(factory=list)


class _Marker(ast.NodeTransformer):
    def __init__(self, probes: Mapping[Place, list[Probe]]) -> None:
        self.statements = Statements()
        self.inside = False
        self.probes = dict(probes)

    def visit(self, node: ast.AST) -> Any:
        place = place_of(node) if isinstance(node, ast.expr) and self.inside else None
        probes = self.probes.pop(place, None) if place is not None else None
        visited = super().visit(node)
        return probed(visited, probes) if probes else visited

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


def marked(source: str, probes: Mapping[Place, list[Probe]] = {}) -> tuple[ast.Module, Statements]:
    """The source with a mark in front of each statement, and where each mark is; expressions with their
    probes."""
    marker = _Marker(probes)
    tree = marker.visit(ast.parse(source))
    return ast.fix_missing_locations(tree), marker.statements


@frozen
class MarkedSources(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads these modules with marks."""

    # By module.
    files: dict[str, str]
    # By file.
    probes: dict[str, dict[Place, list[Probe]]] = field(factory=dict)
    # A byte for each probed fault.
    differs: bytearray = field(factory=bytearray)
    # The marks of what ran during the import.
    early: dict[str, bytes] = field(factory=dict)
    # By file, filled as they are imported.
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
        tree, statements = marked((TOP / file).read_text(encoding="utf-8"), self.probes.get(file, {}))
        self.statements[file] = statements
        self.hits[file] = module.__dict__[HITS] = bytearray(len(statements.lines))
        module.__dict__[PROBE] = recorder(self.differs)
        exec(compile(tree, module.__file__, "exec"), module.__dict__)  # this repository's own, with marks
        self.early[file] = bytes(self.hits[file])


@define
class Reached:
    """runs: (profile, seed) in order, with the digest and the number of events of each. reached: by file, a
    statement's first line and a bit for each run that came to it."""

    runs: list[tuple[str, int]] = field(factory=list)
    digests: list[str] = field(factory=list)
    events: list[int] = field(factory=list)
    reached: dict[str, list[tuple[int, int]]] = field(factory=dict)
    # By the name of each probed fault: a bit for each run in which it gives another value.
    differs: dict[str, int] = field(factory=dict)
    # By file: first lines of statements that run while modules are imported.
    early: dict[str, list[int]] = field(factory=dict)

    def of_fault(self, fault: Fault) -> list[int]:
        """The runs that the fault can change, the short ones first."""
        numbers = self.of(fault.file, fault.lines)
        bits = self.differs.get(fault.name)
        if bits is not None:
            numbers = [number for number in numbers if bits >> number & 1]
        return sorted(numbers, key=lambda number: (self.events[number], number))

    def is_early(self, fault: Fault) -> bool:
        """Whether a statement of the fault runs while modules are imported."""
        first, last = fault.lines
        return any(first <= line <= last for line in self.early.get(fault.file, ()))

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
        more = {name: f"{bits:x}" for name, bits in self.differs.items()}
        path.write_text(
            json.dumps(
                {
                    "runs": self.runs,
                    "digests": self.digests,
                    "events": self.events,
                    "reached": rows,
                    "differs": more,
                    "early": self.early,
                }
            )
        )


def read(path: Path) -> Reached | None:
    """What was measured, or None."""
    if not path.exists():
        return None
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Reached(
        runs=[(profile, seed) for profile, seed in known["runs"]],
        digests=known["digests"],
        events=known["events"],
        differs={name: int(bits, 16) for name, bits in known["differs"].items()},
        early=known["early"],
        reached={
            file: [(line, int(bits, 16)) for line, bits in rows] for file, rows in known["reached"].items()
        },
    )


def state_of_the_code() -> str:
    """A digest of everything that a run depends on."""
    return digest(path for folder in SOURCES for path in (TOP / "fencepost" / folder).rglob("*.py"))


def measure(files: Iterable[str], runs: Sequence[tuple[str, int]], faults: Sequence[Fault] = ()) -> Reached:
    """Run each plan with marks in these sources, and probes for these faults. For a process of its own, that
    has imported none of them."""
    import sys

    probes = {
        file: probes_of(
            (TOP / file).read_text(encoding="utf-8"),
            [(number, fault) for number, fault in enumerate(faults) if fault.file == file],
        )
        for file in sorted({fault.file for fault in faults})
    }
    finder = MarkedSources({module_of(file): file for file in files}, probes, bytearray(len(faults)))
    assert not set(finder.files) & set(sys.modules), "imported already"
    sys.meta_path.insert(0, finder)
    from fencepost.campaign.swarm.swarm import swarm
    from fencepost.run.simulated.run import run

    finder.early.update((file, bytes(hits)) for file, hits in finder.hits.items())
    found: dict[str, list[int]] = {}
    reached = Reached(runs=list(runs))
    known = {number for of_file in probes.values() for number in numbered(of_file)}
    reached.differs = {faults[number].name: 0 for number in sorted(known)}
    for number, (profile, seed) in enumerate(runs):
        for hits in (*finder.hits.values(), finder.differs):
            hits[:] = bytes(len(hits))
        trace = run(swarm(seed, profile))
        reached.digests.append(trace.digest)
        reached.events.append(len(trace.events))
        for file, hits in finder.hits.items():
            bits = found.setdefault(file, [0] * len(hits))
            for place, hit in enumerate(hits):
                if hit:
                    bits[place] |= 1 << number
        for place in known:
            if finder.differs[place]:
                reached.differs[faults[place].name] |= 1 << number
    for file, bits in found.items():
        rows: dict[int, int] = {}
        lines = finder.statements[file].lines
        for line, one in zip(lines, bits, strict=True):
            rows[line] = rows.get(line, 0) | one
        reached.reached[file] = sorted(rows.items())
        reached.early[file] = sorted(
            {line for line, hit in zip(lines, finder.early.get(file, b""), strict=False) if hit}
        )
    return reached

"""Which small faults a Python source can be given.

A fault changes a rule, not a text: words of findings and errors, assertions, annotations, decorators, imports
and documentation are left alone. Faults are named by what they replace, in which function, so that a name
outlives an edit elsewhere in the file. Must not know tests, checkers or processes.
"""

import ast
from collections import Counter

from attrs import evolve

from tools.mutation.fault import Fault
from tools.mutation.finder import Finder

__all__ = ["Fault", "faults_of"]


def faults_of(file: str, source: str) -> list[Fault]:
    """Every fault of a source that still is Python, in the order of the text."""
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    finder = Finder(file, source, known=frozenset(names | attributes | {"min", "max", "any", "all"}))
    finder.visit(tree)
    seen: set[tuple[int, int, str]] = set()
    counted: Counter[tuple[str, str, str]] = Counter()
    kept = []
    for fault in sorted(finder.found, key=lambda fault: (fault.start, fault.end)):
        place = (fault.start, fault.end, fault.after)
        if place in seen or fault.before == fault.after:
            continue
        seen.add(place)
        again = (fault.scope, fault.before, fault.after)
        kept.append(evolve(fault, occurrence=counted[again]))
        counted[again] += 1
    return kept

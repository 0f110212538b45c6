"""Where a fault in an expression gives another value than the original: a run in which it never does is the
run of the unmutated code, and needs no trial.

Owns the probes. A probe evaluates the original, then the faulty expression, and compares. Only faulty
expressions without effects are probed: of all others each run that reaches the statement is tried. Must not
know runs nor outcomes. The idea is weak mutation (Howden, 1982).
"""

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import frozen

from tools.mutation.fault import Fault

PROBE = "__fault_differs__"
Place = tuple[int, int, int, int]
"""First line and column, last line and column, as in ast: columns are bytes."""
PURE_NODES = (
    ast.Attribute,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.Constant,
    ast.IfExp,
    ast.List,
    ast.Name,
    ast.Set,
    ast.Slice,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
)
PURE_CALLS = frozenset(
    {"abs", "any", "all", "bool", "frozenset", "int", "isinstance", "len", "list", "max", "min"}
) | frozenset({"range", "set", "sorted", "sum", "tuple"})
PURE_METHODS = frozenset(
    {"count", "endswith", "get", "index", "isdisjoint", "issubset", "items", "keys"}
) | frozenset({"startswith", "union", "values"})


@frozen
class Probe:
    """One fault that is an expression."""

    number: int
    after: ast.expr
    # Only whether the value is true matters.
    condition: bool


def is_pure(node: ast.AST) -> bool:
    """Whether evaluating the expression has no effect."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            called = part.func
            by_name = isinstance(called, ast.Name) and called.id in PURE_CALLS
            by_method = isinstance(called, ast.Attribute) and called.attr in PURE_METHODS
            if part.keywords or not (by_name or by_method):
                return False
        elif not isinstance(part, PURE_NODES):
            return False
    return True


def place_of(node: ast.expr) -> Place:
    """Where it is in its source."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def probes_of(source: str, faults: Iterable[tuple[int, Fault]]) -> dict[Place, list[Probe]]:
    """The probes for these numbered faults of one source, by the place of the original expression."""
    data = source.encode()
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    wanted: dict[tuple[int, int], list[tuple[int, Fault]]] = {}
    for number, fault in faults:
        wanted.setdefault((fault.start, fault.end), []).append((number, fault))
    tree = ast.parse(source)
    conditions = _conditions(tree)
    found: dict[Place, list[Probe]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            continue
        place = place_of(node)
        span = starts[place[0] - 1] + place[1], starts[place[2] - 1] + place[3]
        for number, fault in wanted.pop(span, ()):
            try:
                after = ast.parse(f"({fault.after.strip()})", mode="eval").body
            except SyntaxError:
                continue
            if is_pure(after):
                found.setdefault(place, []).append(Probe(number, after, id(node) in conditions))
    return found


def _conditions(tree: ast.AST) -> set[int]:
    """The ids of the expressions of which only the truth matters."""
    found: set[int] = set()

    def condition(node: ast.expr) -> None:
        found.add(id(node))
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                condition(value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            condition(node.operand)

    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            condition(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                condition(test)
    return found


def probed(node: ast.expr, probes: list[Probe]) -> ast.expr:
    """The expression with its probes around it: they get its value and return it."""
    rows = ", ".join(f"({probe.number}, {probe.condition}, lambda: 0)" for probe in probes)
    call = ast.parse(f"{PROBE}(0, ({rows},))", mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.args[1], ast.Tuple)
    call.args[0] = node
    for row, probe in zip(call.args[1].elts, probes, strict=True):
        assert isinstance(row, ast.Tuple) and isinstance(row.elts[2], ast.Lambda)
        row.elts[2].body = probe.after
    for part in ast.walk(call.args[1]):
        ast.copy_location(part, node)
    return ast.fix_missing_locations(ast.copy_location(call, node))


def recorder(hits: bytearray) -> Callable[[Any, tuple[tuple[int, bool, Callable[[], Any]], ...]], Any]:
    """The function that a probed source calls. It marks in `hits` each fault that gave another value."""

    def fault_differs(value: Any, probes: tuple[tuple[int, bool, Callable[[], Any]], ...]) -> Any:
        for number, condition, after in probes:
            if hits[number]:
                continue
            try:
                other = after()
                same = (
                    bool(other) == bool(value)
                    if condition
                    else other is value or (type(other) is type(value) and bool(other == value))
                )
            except Exception:  # the faulty expression raises: that is a difference
                same = False
            hits[number] = not same
        return value

    return fault_differs


def numbered(probes: Mapping[Place, list[Probe]]) -> set[int]:
    """The numbers of the faults that are probed."""
    return {probe.number for found in probes.values() for probe in found}

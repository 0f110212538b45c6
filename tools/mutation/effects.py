"""Faults of protocols: two effects in the other order, and the wrong one of two names of a type.

Owns the two. What else a source can be given is in tools/mutation. Must not know what the code is about.
"""

import ast
from itertools import pairwise

from tools.mutation.fault import Fault

PAIRS: tuple[tuple[str, str], ...] = (
    ("leader_epoch", "controller_epoch"),
    ("broker_epoch", "controller_epoch"),
    ("log_end_offset", "high_watermark"),
    ("log_start_offset", "high_watermark"),
    ("isr", "replicas"),
    ("pending_isr", "isr"),
    ("live_brokers", "shutting_down"),
    ("gone", "new"),
    ("base_offset", "required_offset"),
    ("next_offset", "base_offset"),
    ("epoch", "latest_epoch"),
    ("generation", "session"),
    ("join", "sync"),
    ("members", "pending"),
)
"""Names that are of one type and easily taken for each other."""
Effect = ast.Assign | ast.AugAssign | ast.Expr | ast.Delete


def effects_of(file: str, source: str) -> list[Fault]:
    """Every such fault of a source, in the order of the text."""
    tree, data = ast.parse(source), source.encode()
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    known = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found: list[Fault] = []
    counted: dict[tuple[str, str, str], int] = {}

    def add(kind: str, scope: str, first: ast.AST, last: ast.AST, after: str) -> None:
        start = starts[first.lineno - 1] + first.col_offset  # type: ignore[attr-defined]
        end = starts[last.end_lineno - 1] + last.end_col_offset  # type: ignore[attr-defined]
        before = " ".join(data[start:end].decode().split())
        again = (scope, before, after)
        counted[again] = counted.get(again, -1) + 1
        found.append(
            Fault(
                file=file,
                scope=scope,
                kind=kind,
                before=before,
                after=after,
                start=start,
                end=end,
                lines=(first.lineno, last.end_lineno),  # type: ignore[attr-defined]
                at_import=False,
                occurrence=counted[again],
            )
        )

    def text(node: ast.AST) -> str:
        start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return data[start : starts[node.end_lineno - 1] + node.end_col_offset].decode()  # type: ignore[attr-defined]

    def walk(node: ast.AST, scope: tuple[str, ...], inside: bool) -> None:
        function = isinstance(node, ast.FunctionDef)
        if function or isinstance(node, ast.ClassDef):
            scope, inside = (*scope, node.name), inside or function  # type: ignore[attr-defined]
        for part in ("body", "orelse"):
            statements = getattr(node, part, None)
            if inside and isinstance(statements, list):
                for one, other in pairwise(statements):
                    if _swappable(one) and _swappable(other):
                        indent = " " * one.col_offset
                        add(
                            "swapped effects",
                            ".".join(scope),
                            one,
                            other,
                            f"{text(other)}\n{indent}{text(one)}",
                        )
        if inside and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            for pair in PAIRS:
                if node.attr in pair:
                    other = pair[1 - pair.index(node.attr)]
                    if other in known:
                        add("wrong name", ".".join(scope), node, node, f"{text(node.value)}.{other}")
        for child in ast.iter_child_nodes(node):
            walk(child, scope, inside)

    walk(tree, (), inside=False)
    return found


def _swappable(statement: ast.stmt) -> bool:
    """An effect on something that outlives the function: not a local name, which the next statement may need,
    and no documentation."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets)
    return isinstance(statement, ast.Delete)

"""Which small faults a Python source can be given: a walk over it.

A fault changes a rule, not a text: words of findings and errors, assertions, annotations, decorators, imports
and documentation are left alone. Owns: which nodes of a syntax tree become which others. Must not know tests,
checkers or processes.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, evolve, field

from tools.mutation.fault import Fault

Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_PAIRS = (
    ("min", "max"),
    ("any", "all"),
    ("minimum", "maximum"),
    ("low", "high"),
    ("start", "end"),
    ("first", "last"),
    ("invoke", "complete"),
    ("invoke_time", "completion_time"),
    ("before", "after"),
    ("left", "right"),
)
SWAPPED = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
"""Names that are easily taken for each other."""
UNORDERED = frozenset({"min", "max", "isinstance", "getattr", "evolve", "cast"})
"""Calls whose arguments may change places without a meaning, or whose order is not a rule."""
WORDS = frozenset({"expected", "seen", "where", "hint", "reason", "says", "dtype", "check"})
"""Keyword arguments that are words for people, or types."""


def _is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


@define(eq=False)
class Finder(ast.NodeVisitor):
    """A walk over a source."""

    file: str
    text: str
    found: list[Fault] = field(factory=list)
    # Names of the functions and classes around.
    scopes: list[str] = field(factory=list)
    # Of the statement around.
    lines: tuple[int, int] = (1, 1)
    # Functions around.
    depth: int = 0
    source: bytes = field(init=False)
    starts: list[int] = field(init=False)
    # Names and attributes of the file, and builtins: only those are swapped in, as others would fail at once.
    known: frozenset[str] = frozenset()

    def __attrs_post_init__(self) -> None:
        self.source = self.text.encode()
        self.starts = [0]
        for line in self.source.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _range(self, node: ast.AST) -> tuple[int, int]:
        begin = self._at(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return begin, self._at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _add(self, kind: str, node: ast.AST, after: str, *, until: ast.AST | None = None) -> None:
        start, end = self._range(node)[0], self._range(until or node)[1]
        self.found.append(
            Fault(
                file=self.file,
                scope=".".join(self.scopes),
                kind=kind,
                before=" ".join(self.source[start:end].decode().split()),
                after=after,
                start=start,
                end=end,
                lines=self.lines,
                at_import=self.depth == 0,
            )
        )

    def _replace(self, kind: str, node: ast.AST, new: ast.expr) -> None:
        plain = isinstance(new, ast.Name | ast.Constant | ast.Attribute | ast.Call | ast.Subscript)
        text = ast.unparse(new)
        self._add(kind, node, text if plain else f"({text})")

    @contextmanager
    def _inside(self, node: Defining) -> Iterator[None]:
        function = not isinstance(node, ast.ClassDef)
        self.scopes.append(node.name)
        self.depth += function
        yield
        self.depth -= function
        self.scopes.pop()

    # ---- statements

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            last = node.end_lineno or node.lineno
            for part in ("test", "iter", "subject"):  # a compound statement is its head
                head = getattr(node, part, None)
                last = head.end_lineno if head is not None else last
            self.lines = (node.lineno, last)
        super().visit(node)

    def _define(self, node: Defining) -> None:
        with self._inside(node):
            returns = getattr(node, "returns", None)
            constants = _constants(returns)
            for statement in node.body:
                self._returns(statement, constants)
                self.visit(statement)
        if not isinstance(node, ast.ClassDef):
            for default in (*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
                self.visit(default)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _define  # noqa: N815 (ast's names)

    def _returns(self, statement: ast.stmt, constants: tuple[str, ...]) -> None:
        """Constant answers for every return below a statement that belongs to this function."""
        todo: list[ast.AST] = [statement]
        while todo:
            node = todo.pop()
            if isinstance(node, Defining | ast.Lambda):
                continue
            if isinstance(node, ast.Return) and node.value is not None:
                self.lines = (node.lineno, node.end_lineno or node.lineno)
                for constant in constants:
                    if ast.unparse(node.value) != constant:
                        self._add("constant answer", node.value, constant)
            todo.extend(ast.iter_child_nodes(node))

    def visit_Import(self, node: ast.Import) -> None: ...
    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...
    def visit_Assert(self, node: ast.Assert) -> None: ...
    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("deleted statement", node, "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant | ast.Yield | ast.YieldFrom):
            self._add("deleted statement", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add("deleted statement", node, "pass")
        other = COMPUTED.get(type(node.op))
        if other is not None:
            changed = ast.AugAssign(target=node.target, op=other(), value=node.value)
            self._add("computed", node, ast.unparse(changed))
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add("deleted statement", node, "pass")
        for part in (*node.targets, node.value):
            self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Break(self, node: ast.Break) -> None:
        self._add("forgotten case", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add("forgotten case", node, "pass")

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        self._branch(node)

    def _branch(self, node: ast.If | ast.IfExp | ast.While) -> None:
        self._add("forgotten case", node.test, "False")
        if not isinstance(node, ast.While):
            self._add("forgotten case", node.test, "True")
        self.generic_visit(node)

    visit_IfExp = visit_While = _branch  # noqa: N815 (ast's names)

    def visit_For(self, node: ast.For) -> None:
        self._add("forgotten case", node.iter, "()")
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        self.lines = (node.pattern.lineno, node.body[-1].end_lineno or node.body[-1].lineno)
        if not (isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None):
            self._add("forgotten case", node.pattern, "_ if False", until=node.guard)
        if node.guard is not None:
            self.visit(node.guard)
        for statement in node.body:
            self.visit(statement)

    # ---- expressions

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._add("dropped bound", condition, "True")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, op in enumerate(node.ops):
            for other in COMPARED[type(op)]:
                ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                self._replace("compared", node, ast.Compare(node.left, ops, node.comparators))
            if isinstance(op, ast.In | ast.NotIn):
                self._forget(node.comparators[index], ast.Tuple | ast.List)
        if len(node.ops) == 2:
            self._replace("dropped bound", node, ast.Compare(node.left, node.ops[:1], node.comparators[:1]))
            rest = ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
            self._replace("dropped bound", node, rest)
        self.generic_visit(node)

    def _forget(self, node: ast.AST, kinds: type | tuple[type, ...] | object) -> None:
        """Leave out each element of a collection in turn."""
        if isinstance(node, kinds) and len(node.elts) > 1:  # type: ignore[arg-type, attr-defined]
            for index in range(len(node.elts)):  # type: ignore[attr-defined]
                elements = [one for at, one in enumerate(node.elts) if at != index]  # type: ignore[attr-defined]
                new = ast.Set(elements) if isinstance(node, ast.Set) else ast.Tuple(elements, ast.Load())
                self._replace("forgotten case", node, new)

    def visit_Set(self, node: ast.Set) -> None:
        self._forget(node, ast.Set)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        if (
            len(node.keys) > 1
            and None not in node.keys
            and not all(_is_words(key) for key in node.keys if key)
        ):
            for index in range(len(node.keys)):
                keys = [key for at, key in enumerate(node.keys) if at != index]
                values = [value for at, value in enumerate(node.values) if at != index]
                self._replace("forgotten case", node, ast.Dict(keys, values))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace("dropped bound", node, ast.BoolOp(other, node.values))
        for index in range(len(node.values)):
            values = [value for at, value in enumerate(node.values) if at != index]
            new = values[0] if len(values) == 1 else ast.BoolOp(node.op, values)
            self._replace("dropped bound", node, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.Invert):
            self._replace("compared", node, node.operand)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            self._add("constant", node, "0")  # -1 stands for "none" almost everywhere; -2 would, too
            return
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        types = isinstance(node.op, ast.BitOr) and self.depth == 0  # a | b of a type's name
        if not (_is_words(node.left) or _is_words(node.right) or types):
            other = COMPUTED.get(type(node.op))
            if other is not None:
                self._replace("computed", node, ast.BinOp(node.left, other(), node.right))
            if isinstance(node.op, ast.BitAnd | ast.BitOr):
                self._replace("dropped bound", node, node.left)
                self._replace("dropped bound", node, node.right)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("constant", node, str(not value))
        elif isinstance(value, int):
            self._add("constant", node, str(value + 1))
            if value > 0:
                self._add("constant", node, str(value - 1))
        elif isinstance(value, str) and value in ("left", "right"):
            self._add("swapped names", node, repr(SWAPPED[value]))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and SWAPPED.get(node.id) in self.known:
            self._add("swapped names", node, SWAPPED[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load) and SWAPPED.get(node.attr) in self.known:
            self._replace("swapped names", node, ast.Attribute(node.value, SWAPPED[node.attr], node.ctx))
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        at = node.slice
        if isinstance(at, ast.UnaryOp) and isinstance(at.operand, ast.Constant):
            self._add("constant", at, "-2" if at.operand.value == 1 else "-1")
        self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        if node.lower is not None and node.upper is not None and node.step is None:
            upper, lower = ast.unparse(node.upper), ast.unparse(node.lower)
            self._add("dropped bound", node, f":{upper}")
            self._add("dropped bound", node, f"{lower}:")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        for index in range(len(node.args) - 1):
            one, other = node.args[index : index + 2]
            plain = all(isinstance(arg, ast.Name | ast.Attribute) for arg in (one, other))
            if plain and ast.unparse(node.func) not in UNORDERED:
                args = [*node.args[:index], other, one, *node.args[index + 2 :]]
                self._replace("swapped names", node, ast.Call(node.func, args, node.keywords))
        self.visit(node.func)
        for arg in node.args:
            self.visit(arg)
        for keyword in node.keywords:
            if keyword.arg not in WORDS:
                self.visit(keyword.value)


def _constants(returns: ast.expr | None) -> tuple[str, ...]:
    """What a function of this annotation could answer without looking."""
    if returns is None:
        return ()
    text = ast.unparse(returns)
    if text == "bool":
        return ("True", "False")
    if text == "int":
        return ("0",)
    if text.endswith("| None"):
        return ("None",)
    if text.startswith(("tuple[", "list[")) and ("..." in text or text.startswith("list")):
        return ("()" if text.startswith("tuple") else "[]",)
    return ()


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

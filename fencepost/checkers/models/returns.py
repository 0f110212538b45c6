"""Whether a function of a model ended without a `return`.

Owns the difference between `return None`, which is a state, and the end of a function, which is a mistake.
Must not know histories or searches.

Python gives None for both. The call is made again under a trace function, which sees the instruction that
left the function. The compiler gives the instruction of a `return` the place of that statement, except in
`try` and `with`, where a line of such a statement that ran counts as a `return`.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from attrs import frozen


@frozen
class Returns:
    """The `return` statements of a function."""

    # First line and column of each part of each one.
    places: frozenset[tuple[int | None, int | None]]
    # Lines of those in `try` and `with`.
    guarded: frozenset[int]


def forgets_return(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a call that gave None ended without a `return`.

    Args:
        function: a pure function or method. It is called once more.
        arguments: its arguments.

    Returns:
        True if it ran to its end; False if it reached a `return`, or if its source text is not known.
    """
    plain = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(plain, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name == "<lambda>":
        return False
    returns = _returns_of(code)
    if returns is None:
        return False
    left: list[int] = []
    lines: set[int] = set()

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not code:
            return None
        lines.add(frame.f_lineno)
        if event == "return":
            left.append(frame.f_lasti)
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    if not left or lines & returns.guarded:
        return False
    line, _, column, _ = list(code.co_positions())[left[-1] // 2]
    return (line, column) not in returns.places


@lru_cache(maxsize=64)
def _returns_of(code: CodeType) -> Returns | None:
    """The `return` statements of a function; None without its source text."""
    try:
        lines, first = inspect.getsourcelines(code)
        text = textwrap.dedent("".join(lines))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError):
        return None
    indent = len(lines[0]) - len(text.splitlines(keepends=True)[0])
    parts = [
        part
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Return)
        for part in ast.walk(statement)
        if isinstance(part, ast.stmt | ast.expr)
    ]
    guarded = [
        statement
        for block in ast.walk(tree)
        if isinstance(block, ast.Try | ast.TryStar | ast.With)
        for statement in ast.walk(block)
        if isinstance(statement, ast.Return)
    ]
    return Returns(
        places=frozenset((part.lineno + first - 1, part.col_offset + indent) for part in parts),
        guarded=frozenset(statement.lineno + first - 1 for statement in guarded),
    )

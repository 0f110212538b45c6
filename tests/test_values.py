"""One kind of value: what is frozen stays as it was made. Nobody sets a field of a finished value past its
class, and no value becomes one of another class, but in the one place that docs/decisions/hot-values.md
names."""

import ast
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
PACKAGE = TOP / "fencepost"
EXCEPTION = "fencepost/traces/making.py"
"""The one place, for speed."""
DECISION = TOP / "docs" / "decisions" / "hot-values.md"


def breaches(text: str) -> list[str]:
    """Where a module reaches past a frozen class: `object.__setattr__`, by whatever name, `__delattr__`, and
    assignments to `__class__`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in ("__setattr__", "__delattr__"):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Attribute) and node.attr == "__class__" and isinstance(node.ctx, ast.Store):
            found.append(f"{ast.unparse(node)} is assigned")
        if isinstance(node, ast.Constant) and node.value in ("__setattr__", "__class__"):
            found.append(repr(node.value))
    return found


def test_no_finished_value_is_changed():
    """Rule: of all modules only the one that the decision names does it, in one place."""
    found = {
        str(path.relative_to(TOP)): seen
        for path in sorted(PACKAGE.rglob("*.py"))
        if (seen := breaches(path.read_text()))
    }
    assert found == {EXCEPTION: ["value.__class__ is assigned"]}
    assert EXCEPTION.removeprefix("fencepost/") in DECISION.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "object.__setattr__(event, 'time', 5)",
        "_set = object.__setattr__",
        "super().__setattr__('x', 1)",
        "value.__class__ = Other",
        "getattr(object, '__setattr__')(event, 'time', 5)",
        "setattr(value, '__class__', Other)",
    ],
)
def test_a_breach_is_seen(text):
    """The test above can fail."""
    assert breaches(text)


def test_reading_a_class_is_no_breach():
    """Rule: only a change counts."""
    assert breaches("name = value.__class__.__name__") == []

"""The guards: each protection that a planted bug takes away is a method that does something; a bug that adds
a fault instead is marked as injected, and no other is."""

import ast
import inspect
import re
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

import fencepost.impl
from fencepost.bugs import BUGS
from fencepost.bugs.injected import INJECTED
from fencepost.bugs.storage import LOG_BUGS
from fencepost.bugs.storage.protections import STORAGE_PROTECTIONS
from fencepost.cli import run
from fencepost.traces.protections import PROTECTIONS
from tools.track_record import PAGE

IMPLEMENTATION = Path(fencepost.impl.__file__).parent
OF_THE_MODEL_ONLY = {
    *("undefined_has_no_end", "abort_open_first", "one_at_a_time", "decide_durably", "no_late_end"),
    *("no_late_marker", "deposed_is_silent", "marker_again"),
}
"""Protections that no one method of the implementation holds (traces/protections)."""
AROUND = {
    "KIP-101": "does not ask the question to which the guard is the answer",
    "KIP-98": "its log opens with a state of its own",
}
"""Bugs that go around their guard, and neither override it nor what names it."""
PLANTED = {**LOG_BUGS, **BUGS}


def does_nothing(body: str) -> bool:
    """Whether the body of a method, without its docstring, is empty, or returns a constant or an argument as
    it is."""
    (function,) = ast.parse(body).body
    assert isinstance(function, ast.FunctionDef)
    statements = [
        each
        for each in function.body
        if not isinstance(each, ast.Pass)
        and not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    if not statements:
        return True
    if len(statements) > 1 or not isinstance(statements[0], ast.Return):
        return False
    value = statements[0].value
    parts = value.elts if isinstance(value, ast.Tuple | ast.List | ast.Set) else [value]
    return all(part is None or isinstance(part, ast.Constant | ast.Name) for part in parts)


@cache
def bodies() -> dict[str, list[str]]:
    """The text of each function and method of the implementation, by name."""
    found: dict[str, list[str]] = {}
    for path in sorted(IMPLEMENTATION.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(ast.unparse(node))
    return found


@pytest.mark.parametrize(
    ("body", "nothing"),
    [
        ("def f(self):\n '''Says.'''", True),
        ("def f(self):\n pass", True),
        ("def f(self):\n return True", True),
        ("def f(self):\n return ()", True),
        ("def f(self):\n return None", True),
        ("def f(self, dead):\n return dead", True),
        ("def f(self, dead):\n return dead - self.live", False),
        ("def f(self):\n return self.ask()", False),
        ("def f(self, asked):\n if asked:\n  return True\n return False", False),
        ("def f(self):\n self.send()", False),
    ],
)
def test_what_does_nothing_is_seen(body, nothing):
    """The tests below can fail: these bodies do nothing, and those do something."""
    assert does_nothing(body) is nothing


@pytest.mark.parametrize(
    "protection", [*PROTECTIONS, *STORAGE_PROTECTIONS], ids=lambda each: f"{each.bug}-{each.name}"
)
def test_every_protection_is_a_method_that_does_something_unless_its_bug_is_injected(protection):
    """Rule: a guard has a body; exactly those of injected bugs have none, or are no method at all."""
    if protection.name in OF_THE_MODEL_ONLY:
        assert protection.name not in bodies() and protection.bug not in PLANTED
        return
    real = [body for body in bodies().get(protection.name, ()) if not does_nothing(body)]
    assert bool(real) is (protection.bug not in INJECTED)


@pytest.mark.parametrize("bug", sorted(PLANTED))
def test_a_planted_bug_overrides_its_guard_or_what_calls_it(bug):
    """Rule: what is planted takes this guard away, and no other thing stands under its name."""
    row = PLANTED[bug]
    replaced = next(part for part in row.part.__mro__ if ".bugs." not in part.__module__)
    guard = row.protection.name
    overridden = [
        name
        for part in takewhile(lambda part: part is not replaced, row.part.__mro__)
        for name, value in vars(part).items()
        if inspect.isroutine(value) and hasattr(replaced, name)
    ]
    assert overridden
    if bug in INJECTED or bug in AROUND:
        assert guard not in overridden or bug in INJECTED
        return
    assert guard in overridden or any(
        re.search(rf"\b{guard}\b", inspect.getsource(getattr(replaced, name))) for name in overridden
    )


@pytest.mark.parametrize("bug", sorted(PLANTED))
def test_injected_bugs_are_marked_wherever_bugs_are_listed(bug):
    """Rule: the track record and `campaign bugs show` say it of these and of no other."""
    injected = bug in INJECTED
    for row in [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {bug} | ")]:
        assert ("(injected)" in row) is injected


def test_the_commands_say_it(capsys, monkeypatch):
    """Rule: the list marks an injected bug, `show` says what it adds, and of others neither says anything."""
    monkeypatch.setenv("COLUMNS", "400")
    run(["campaign", "bugs", "list"])
    assert capsys.readouterr().out.count("(injected)") == sum(
        bug in INJECTED for table in (BUGS, LOG_BUGS) for bug in table
    )
    run(["campaign", "bugs", "show", "KAFKA-6650"])
    assert INJECTED["KAFKA-6650"] in capsys.readouterr().out
    run(["campaign", "bugs", "show", "KIP-101"])
    assert "injected" not in capsys.readouterr().out

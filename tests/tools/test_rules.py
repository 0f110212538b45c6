"""The table of rules and their homes."""

from importlib import import_module

import pytest
from click.testing import CliRunner

from tools import rules

HOMES = rules.homes()


def test_the_table_has_the_rules_of_the_sources() -> None:
    """Rule: forty rules have all of their homes, and each is a row of what the command prints."""
    said = CliRunner().invoke(rules.command).output
    assert len(HOMES) >= 40 and said.count("\n") == len(HOMES) + 2
    assert all(f"| `{one.rule.name}` ({one.rule.bug}) | `{one.impl[0]}` in" in said for one in HOMES)


@pytest.mark.parametrize("home", HOMES, ids=[home.rule.name for home in HOMES])
def test_each_name_is_there(home: rules.Home) -> None:
    """Rule: the method can be imported by the name in the table, and its class calls itself by it."""
    name, file = home.impl
    found = import_module("fencepost." + file.removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        found = getattr(found, part)
    assert getattr(found, "__doc__", None) or getattr(found, "fget", None) is not None


def test_a_rule_that_loses_a_home_loses_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a guard that the model or its twin does not have by this name is no home."""
    assert rules.guarded("model", ".py", "fetch_fencing") and not rules.guarded("model", ".py", "fetch_fence")
    assert not rules.guarded("model/tla", ".tla", "no_such_guard")
    monkeypatch.setattr(
        rules, "guarded", lambda folder, ending, name: "" if ending == ".tla" else "model/x.py"
    )
    assert rules.homes() == []

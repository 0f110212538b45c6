"""model/tlc/config.py: other values for constants."""

import pytest

from fencepost.model.tlc.config import read_config
from fencepost.traces.errors import FencepostError

TEXT = r"""\* CONSTANT Fake = 1
SPECIFICATION Spec (* CONSTANT
Fake = 2 *)
CONSTANTS
  N = -3  S = {a, {b, c}}
  M <- MCM  \* N = 9
  Name = "CONSTANT N = 4"
INVARIANTS Small Other
CHECK_DEADLOCK FALSE
CONSTANT Late = [Inner] 5
PROPERTY Live
"""


def test_constants_are_found():
    """Rule: comments, strings, nested sets and several statements are understood."""
    constants = read_config(TEXT, "x.cfg").constants
    assert constants == {
        "N": "-3", "S": "{a, {b, c}}", "M": "<-MCM", "Name": '"CONSTANT N = 4"', "Late": "[Inner]",
    } | {"Late": constants["Late"]}  # fmt: skip


def test_a_replaced_constant_is_assigned_once():
    """Rule: the old assignment is gone (TLC refuses two), the new one is there, everything else stays."""
    config = read_config(TEXT, "x.cfg", {"N": "4", "S": "{}", "M": "<-Other"})
    again = read_config(config.text, "x.cfg")
    assert (again.constants["N"], again.constants["S"], again.constants["M"]) == ("4", "{}", "<-Other")
    assert "-3" not in config.text
    assert "{b, c}" not in config.text
    assert "INVARIANTS Small Other" in config.text
    assert config.text.count("\n") == TEXT.count("\n") + 4


def test_deadlock_is_taken_out():
    """Rule: TLC 2.15 does not read CHECK_DEADLOCK; it becomes an option."""
    config = read_config(TEXT, "x.cfg")
    assert config.check_deadlock is False
    assert "CHECK_DEADLOCK" not in config.text
    assert read_config("SPECIFICATION Spec\n", "x.cfg").check_deadlock is None


def test_unchecked_looks_at_nothing():
    """Rule: counting all states of a variant that fails needs the invariants off."""
    config = read_config(TEXT, "x.cfg", unchecked=True)
    assert not any(word in config.text for word in ("INVARIANT", "Small", "Other", "PROPERTY", "Live"))
    assert "SPECIFICATION Spec" in config.text


@pytest.mark.parametrize("constants", [{"Nobody": "1"}, {"N": ""}, {"N": "1\nINVARIANT X"}])
def test_a_mistaken_constant_is_told(constants):
    """Rule: an unknown constant, and one that would smuggle in another statement, are the caller's
    mistake."""
    with pytest.raises(FencepostError, match=r"x\.cfg"):
        read_config(TEXT, "x.cfg", constants)

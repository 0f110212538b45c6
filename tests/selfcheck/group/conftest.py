"""The machine's assertions say what they compared, as those of tests do: a complaint is known by that."""

import pytest

pytest.register_assert_rewrite("tests.selfcheck.group.lockstep", "tests.selfcheck.group.group_machine")

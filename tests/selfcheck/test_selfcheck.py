"""Our own implementation, looked at from inside in many runs: the recorder, the memory of brokers, and their
steps."""

import pytest

from tests.selfcheck.checks import memory, recorder, steps
from tests.selfcheck.lab import chunks, watched


@pytest.mark.parametrize("drawn", chunks(), ids=lambda drawn: f"from-{drawn[0][1]}")
def test_rows_memory_and_steps_are_what_they_should_be(drawn):
    """Each row is what the network carried, each log is what its files say, and each step is the model's."""
    for profile, seed in drawn:
        seen = watched(profile, seed)
        for check in (recorder, memory, steps):
            assert check(seen) == [], (
                f"{check.__name__}: fencepost campaign --profile {profile} --seed {seed}"
            )

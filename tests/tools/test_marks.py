"""The measurement of marks: what a swarm reaches is counted, and what it never reaches is not passed over."""

import msgspec
from click.testing import CliRunner

from tools.marks import command


def test_a_mark_that_is_never_reached_is_told() -> None:
    """Three calm seeds reach one of the two marks that a calm plan can: it has its first seed, the other
    decides the exit code."""
    told = CliRunner().invoke(command, ["calm", "--seeds", "0:3", "--jobs", "1", "--json"])
    assert told.exit_code == 3
    (profile,) = msgspec.json.decode(told.stdout)["profiles"]
    assert profile == {
        "profile": "calm",
        "runs": 3,
        "marks": {"log_start_moved": 1},
        "first": {"log_start_moved": 2},
    }

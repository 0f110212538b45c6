"""`cluster groups` without a cluster: what it refuses, in one sentence. With one: test_cluster.py."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list"], "expected a cluster that was brought up here, saw no cluster.json"),
        (["describe", "g"], "expected a cluster that was brought up here, saw no cluster.json"),
        (
            ["reset-offsets", "g", "--topic", "t", "--to-latest"],
            "expected a cluster that was brought up here",
        ),
        (
            ["reset-offsets", "g", "--topic", "t"],
            "expected one of --to-earliest, --to-latest, --to-offset and --shift-by",
        ),
        (
            ["reset-offsets", "g", "--topic", "t", "--to-latest", "--to-offset", "3"],
            "expected one of --to-earliest",
        ),
        (["reset-offsets", "g", "--to-latest"], "--topic"),
    ],
)
def test_mistakes_are_one_sentence(fencepost, tmp_path: Path, arguments: list[str], said: str) -> None:
    """Rule: what cannot be done is said before anything is asked of a broker; exit code 2."""
    told = fencepost("cluster groups", *arguments, "--directory", tmp_path)
    assert told.code == 2 and said in told.err, told.err

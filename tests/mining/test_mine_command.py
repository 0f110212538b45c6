"""What is wrong with the options of `fencepost mine` is told in one sentence before anything runs."""

from pathlib import Path

import pytest

from fencepost.cli import run

WRONG = [
    (
        ["--timeout", "5"],
        "expected --model with --initial, --parameter, --timeout, --memory and --most, saw none",
    ),
    (["--format", "xml"], "expected --format out of auto, fencepost, "),
    (["--model", "register", "--initial", "{"], "expected --initial as JSON (a text in quotes), saw '{'"),
    (["--model", "no-such-model"], "no-such-model"),
    (["--giant", "0"], "Invalid value for '--giant'"),
]


@pytest.mark.parametrize(("options", "says"), WRONG)
def test_wrong_options_are_told(options: list[str], says: str, tmp_path: Path, capsys) -> None:
    """Exit code 2, one sentence, no traceback, nothing written."""
    (tmp_path / "in" / "traces").mkdir(parents=True)
    code = run(["mine", str(tmp_path / "in"), "--out", str(tmp_path / "out"), *options])
    told = capsys.readouterr().err
    assert (code, says in told.replace("\n", " "), "Traceback" in told) == (2, True, False), told
    assert not (tmp_path / "out").exists()

"""tools/program.py: how a program of tools/ ends."""

import signal
import sys
from typing import Any

import pytest
import rich_click as click

from fencepost.traces.errors import EnvironmentError_, ExitCode
from tools import program

MISTAKE = EnvironmentError_(expected="Maven", seen="none", where="PATH", hint="install it")


@pytest.mark.parametrize(
    ("ending", "code", "words"),
    [
        (None, 0, ""),
        (ExitCode.FINDINGS, 1, ""),
        (MISTAKE, 2, "expected Maven, saw none"),
        (click.UsageError("no such option"), 2, "sweep: no such option"),
        (KeyboardInterrupt(), 130, "sweep: interrupted; what was finished is kept"),
    ],
    ids=("nothing", "findings", "mistake", "usage", "interrupted"),
)
def test_a_program_ends_with_a_code_and_a_sentence(ending: Any, code: int, words: str, capsys, monkeypatch):
    """Rule: one sentence, a documented code, and no traceback."""

    @click.command
    def command() -> Any:
        if isinstance(ending, BaseException):
            raise ending
        return ending

    monkeypatch.setattr(sys, "argv", ["sweep"])
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            program.run(command, "sweep")
    finally:
        signal.signal(signal.SIGTERM, before)
    said = capsys.readouterr().err.strip()
    assert ended.value.code == code
    assert words in said and bool(said) is bool(words) and "\n" not in said

"""tools/program.py: how a program of tools/ runs its cases, and ends."""

import signal
import sys
from typing import Any

import pytest
import rich_click as click

from fencepost.console.output import Output
from fencepost.traces.errors import EnvironmentError_, ExitCode
from tools import program
from tools.program import FAILED, OK, SKIPPED, Done, chosen, run_cases

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


NAMES = ("kafka 3", "kafka 3: console", "sarama")


def test_words_choose_names():
    """Rule: a name is itself, any other word all names with it; the order is that of the names."""
    assert chosen(NAMES, ()) == list(NAMES)
    assert chosen(NAMES, ("kafka 3",)) == ["kafka 3"]
    assert chosen(NAMES, ("sarama", "kafka")) == list(NAMES)
    with pytest.raises(click.UsageError, match=r"expected words out of kafka 3; .*; sarama, saw cobol"):
        chosen(NAMES, ("sarama", "cobol"))


@pytest.mark.parametrize(("outcome", "code"), [(OK, 0), (SKIPPED, 0), (FAILED, 1)])
def test_each_outcome_is_said_and_kept_before_the_next(outcome, code, capsys):
    """Rule: only a failure is a finding, and those after it run, too."""
    kept = []

    def case(name, outcome, why):
        def run():
            kept.append(f"{name} runs")
            return Done(case=name, outcome=outcome, why=why)

        return run

    cases = {"a": case("a", outcome, "because"), "b": case("b", OK, "")}
    ended = run_cases(cases, (), Output(), keep=lambda done: kept.append(done.case))
    assert ended == ExitCode(code) and kept == ["a runs", "a", "b runs", "b"]
    assert capsys.readouterr().out.splitlines() == [f"a: {outcome}: because", "b: ok"]

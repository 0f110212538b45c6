"""What the page of the command line promises of every command: examples in its help, one JSON object with
--json at every exit, names that are nearly right answered with those that may be meant."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import rich_click as click

from fencepost import cli
from fencepost.checkers.judges import CHECKS
from fencepost.cli import LINES_OF_THEIR_OWN, SUB_COMMANDS, WAITING
from fencepost.console.options import Named
from tests.command_tree import found, runs, takes_arguments, walk

PROGRAM = [sys.executable, "-m", "fencepost"]
LIMIT_S = 600


EVERY = dict(walk(cli.group))
LEAVES = {words: command for words, command in EVERY.items() if runs(command)}
GROUPS = {words: command for words, command in EVERY.items() if not takes_arguments(command)}


def named(words: tuple[str, ...]) -> str:
    return " ".join(words)


def test_the_tree_is_all_of_it() -> None:
    """Rule: what these tests walk is every sub-command, those of groups too."""
    assert {words[0] for words in EVERY if words} == set(SUB_COMMANDS)
    assert {
        ("cluster", "kill"),
        ("campaign", "bugs", "show"),
        ("model", "tlc", "simulate"),
        ("cluster", "elect", "preferred"),
    } <= LEAVES.keys()


@pytest.mark.parametrize("words", EVERY, ids=named)
def test_help_has_examples_of_the_command(fencepost, words) -> None:
    """Rule: every command's help fits 80 columns and shows examples of this very command."""
    told = fencepost(named(words), "--help")
    assert told.code == 0 and max(map(len, told.out.split("\n"))) <= 80
    assert f"fencepost {' '.join(words)}".strip() in (EVERY[words].help or "").split("\b", 1)[1]


EXAMPLES = [
    (words, line.strip())
    for words, command in EVERY.items()
    for line in (command.help or "").split("\b", 1)[-1].splitlines()
    if line.strip().startswith("fencepost ")
]


@pytest.mark.parametrize(
    ("words", "example"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_examples_are_commands(words, example, tmp_path, monkeypatch) -> None:
    """Rule: an example names commands and options that there are, and gives them values that they take."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.json").write_text("{}")
    told = shlex.split(re.split(r" [|<>] |\\$", example)[0])[1:]
    command, left = found(told)
    paths = [parameter for parameter in command.params if isinstance(parameter.type, click.Path)]
    for parameter in paths:  # what an example names need not be here
        monkeypatch.setattr(parameter.type, "exists", False)
    command.make_context(example, left, resilient_parsing=False)


SPEAKS_JSON = frozenset({("proxy", "links")})
"""Their input and output are lines of JSON."""


@pytest.mark.parametrize("words", LEAVES, ids=named)
def test_json_is_an_option(words) -> None:
    """Rule: every command has --json, but for those that speak nothing else."""
    if words in SPEAKS_JSON:
        return
    assert any("--json" in parameter.opts for parameter in LEAVES[words].params)


@pytest.mark.parametrize("words", LEAVES, ids=named)
def test_a_usage_error_is_one_object(fencepost, words, tmp_path, monkeypatch) -> None:
    """Rule: a mistake of the caller, too, ends with one JSON object that says what is wrong, and the exit
    code."""
    monkeypatch.chdir(tmp_path)
    told = fencepost(named(words), "--no-such-option", "--json")
    assert told.code == 2
    if words[:2] == LINES_OF_THEIR_OWN:
        assert told.out == ""
        return
    assert told.json["exit_code"] == 2 and "--no-such-option" in told.json["error"]
    assert told.json["error"] in told.err


@pytest.mark.parametrize("words", LEAVES, ids=named)
def test_any_end_is_one_object(fencepost, words, monkeypatch) -> None:
    """Rule: an interrupt, a full disk and a mistake of our own end with one JSON object too."""
    monkeypatch.setattr(cli._LazyGroup, "get_command", lambda *_: EVERY[words[:1]])
    for raised, code in (
        (KeyboardInterrupt(), 130),
        (OSError(28, "No space left", "x"), 2),
        (AssertionError(), 2),
    ):

        def broken(*_: object, raised: BaseException = raised, **__: object) -> None:
            raise raised

        monkeypatch.setattr(LEAVES[words], "make_context", broken)
        told = fencepost(named(words), "--json")
        assert told.code == code
        if words[:2] != LINES_OF_THEIR_OWN:
            assert told.json["exit_code"] == code and told.json["error"]


def test_what_has_said_its_object_says_no_second(fencepost, monkeypatch) -> None:
    """Rule: a command that ends badly after its object writes no other."""
    from fencepost.console.output import Output

    def late(**_: object) -> None:
        Output(True).emit({"done": True})
        raise KeyboardInterrupt

    monkeypatch.setattr(LEAVES["campaign", "bugs", "list"], "callback", late)
    told = fencepost("campaign bugs list --json")
    assert told.code == 130 and told.json == {"done": True}


def test_an_interrupt_of_a_process_is_one_object(tmp_path: Path) -> None:
    """Rule: Ctrl-C in a real run: exit code 130, one object, no traceback."""
    arguments = ["campaign", "bugs", "hunt", "--jobs", "1", "--json"]
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + LIMIT_S
    while process.poll() is None and not _children(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and "Traceback" not in err
    assert out.count("\n") == 1 and msgspec.json.decode(out)["exit_code"] == 130


def _children(pid: int) -> str:
    return subprocess.run(
        ["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, check=False
    ).stdout


# ---- names


def _misspelt(name: str) -> str:
    """Without its last letter; long enough to be recognised."""
    return name[:-1]


@pytest.mark.parametrize("words", GROUPS, ids=named)
def test_a_command_that_is_nearly_right(fencepost, words) -> None:
    """Rule: for each group of commands the near one is suggested."""
    with click.Context(GROUPS[words]) as context:
        wanted = max(GROUPS[words].list_commands(context), key=len)
    told = fencepost(named(words), _misspelt(wanted))
    assert told.code == 2
    assert re.search(rf"[Dd]id you mean .*'{wanted}'", told.sentence), told.sentence


OPTIONS = [
    (words, option)
    for words, command in LEAVES.items()
    for parameter in command.params
    for option in parameter.opts
    if option.startswith("--") and len(option) > 6
]


@pytest.mark.parametrize("words", LEAVES, ids=named)
def test_an_option_that_is_nearly_right(fencepost, words) -> None:
    """Rule: for each command the near option is suggested."""
    wanted = max((option for of, option in OPTIONS if of == words), key=len, default=None)
    if wanted is not None:
        told = fencepost(named(words), _misspelt(wanted))
        assert told.code == 2 and f"'{wanted}'" in told.sentence, told.sentence


def test_choices_are_all_of_the_kind_that_suggests() -> None:
    """Rule: no option has a bare list of choices, whose error suggests nothing."""
    for words, command in EVERY.items():
        for parameter in command.params:
            assert not isinstance(parameter.type, click.Choice) or isinstance(parameter.type, Named), (
                words,
                parameter.name,
            )


NAMES = [
    (["campaign", "--profile", "defalt"], "default"),
    (["campaign", "--bug", "kip-101"], "KIP-101"),
    (["campaign", "--checks", "lgo"], "log"),
    (["campaign", "--faults", "crahs"], "crash"),
    (["campaign", "--engine", "sparc"], "spark"),
    (["check", "x", "--model", "regster"], "register"),
    (["check", "x", "--profile", "strog"], "strong"),
    (["check", "x", "--format", "jepsen-kafk"], "jepsen-kafka"),
    (["check", "x", "--topic-setting", "t:cleanup.polcy=compact"], "cleanup.policy"),
    (["mine", "x", "--model", "regster"], "register"),
    (["mine", "x", "--format", "jepsen-lg"], "jepsen-log"),
    (["watch", ".", "--out", "../out", "--profile", "strog"], "strong"),
    (["campaign", "bugs", "show", "KAFKA-6976"], "KAFKA-6975"),
    (["campaign", "bugs", "hunt", "kip-279"], "KIP-279"),
    (["model", "explore", "replicaton"], "replication"),
    (["model", "explore", "group", "--check", "OFFSET-SAVE"], "OFFSET-SAFE"),
    (["model", "explore", "replication", "--drop", "truncate_by_epok"], "truncate_by_epoch"),
    (["model", "tlc", "check", "Replicaton"], "Replication"),
    (["model", "tlc", "simulate", "--size", "medum"], "medium"),
    (["mine", "convert", "x", "y", "--to", "parket"], "parquet"),
    (["cluster", "produce", "t", "--partitioner", "stiky"], "sticky"),
    (["cluster", "consume", "t", "--commit", "snc"], "sync"),
    (["cluster", "topics", "creat"], "create"),
]


@pytest.mark.parametrize(
    ("words", "meant"), NAMES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_name_that_is_nearly_right(fencepost, words, meant, tmp_path, monkeypatch) -> None:
    """Rule: wherever a name is given, the near one is suggested."""
    monkeypatch.chdir(tmp_path)
    told = fencepost(named(words))
    assert told.code == 2
    assert re.search(rf"[Dd]id you mean .*'{re.escape(meant)}'", told.sentence), told.sentence
    assert not list(tmp_path.iterdir())


def test_waiting_commands_are_commands() -> None:
    """Rule: the exceptions by name are names of sub-commands."""
    assert LINES_OF_THEIR_OWN in LEAVES and set(SUB_COMMANDS) >= WAITING


def test_the_option_checks_names_every_check(fencepost) -> None:
    """Rule: its help is written by hand, so that --help imports no judge; it lists the table's checks."""
    shown = " ".join(fencepost("check --help").out.replace("│", " ").split())
    listed = shown.partition("separated by commas:")[2].partition(". [default")[0]
    assert [name.split()[0] for name in listed.split(",")] == list(CHECKS)

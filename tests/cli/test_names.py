"""The names at the top are few and in groups; a name of an earlier version still works, unlisted."""

import pytest
import rich_click as click

from fencepost import cli
from fencepost.cli import GROUPS, OLD_NAMES, SUB_COMMANDS

MOST_AT_THE_TOP = 16
"""More than that no reader of `--help` compares."""


def test_the_top_is_short_and_in_groups(fencepost) -> None:
    """Rule: `fencepost --help` has few names, each in one of the groups that say what it is for."""
    told = fencepost("--help")
    assert len(SUB_COMMANDS) <= MOST_AT_THE_TOP
    assert [title.split(":")[0] for title in GROUPS] == ["Judge", "Break", "Look", "Run"]
    places = [told.out.index(f"─ {title} ") for title in GROUPS]
    assert places == sorted(places)
    assert sorted(SUB_COMMANDS) == sorted(name for names in GROUPS.values() for name in names)


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_works_and_says_the_new_one(fencepost, old) -> None:
    """Rule: what scripts of 0.1 call does the same; one line on standard error has the new name, and no help
    lists the old one."""
    new = OLD_NAMES[old]
    told, meant = fencepost(old, "--help"), fencepost(*new.split(), "--help")
    assert told.code == 0 and told.out == meant.out and meant.err == ""
    assert told.err == (
        f"fencepost: `fencepost {old}` is now `fencepost {new}`; the old name works through 0.2\n"
    )
    assert f"fencepost {new} " in told.out and old not in SUB_COMMANDS
    assert cli.group.get_command(click.Context(cli.group), old) is None


def test_an_old_name_does_the_work(fencepost) -> None:
    """The whole line is the same, and standard output with it; what follows --json is one object."""
    told, meant = fencepost("drivers list --json"), fencepost("torture drivers list --json")
    assert (told.code, told.json) == (meant.code, meant.json) and told.json["drivers"]
    wrong = fencepost("topics creat --json")
    assert wrong.code == 2 and "create" in wrong.json["error"]


def test_a_command_with_arguments_has_commands_below_it(fencepost, tmp_path, monkeypatch) -> None:
    """The first word decides: `mine FOLDER` judges, `mine explain FOLDER` explains; a folder that is called
    as a command is given as ./explain."""
    monkeypatch.chdir(tmp_path)
    below = fencepost("mine explain nowhere")
    assert below.code == 2 and "nowhere" in below.sentence
    assert "`fencepost mine explain --help`" in fencepost("mine explain").err
    shown = fencepost("mine --help").out
    assert "fencepost mine [OPTIONS] FILE|FOLDER..." in shown and "explain" in shown.split("Commands")[1]

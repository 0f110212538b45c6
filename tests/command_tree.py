"""The commands of the program as a tree, for tests of all of them and of what pages show."""

from collections.abc import Iterator, Sequence

import rich_click as click

from fencepost.cli import group
from fencepost.console.branching import Branching


def runs(command: click.Command) -> bool:
    """Whether it does something itself, and does not only hold others."""
    return not isinstance(command, click.Group) or isinstance(command, Branching)


def takes_arguments(command: click.Command) -> bool:
    """Whether a word after it may be no command: a file, a name."""
    return runs(command) and (
        not isinstance(command, click.Group) or any(isinstance(one, click.Argument) for one in command.params)
    )


def walk(
    command: click.Command, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below one, and itself, with the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                yield from walk(below, (*words, name))


def found(words: Sequence[str]) -> tuple[click.Command, list[str]]:
    """The command that a line calls, and its arguments; "COMMAND" stands for any. Raises LookupError for one
    that there is not."""
    command, left = group, list(words)
    while isinstance(command, click.Group) and left and not left[0].startswith("-"):
        if left[0] == "COMMAND":
            return command, []
        with click.Context(command) as context:
            below = command.get_command(context, left[0])
        if below is None and takes_arguments(command):
            break
        if below is None:
            raise LookupError(f"{left[0]} is no command of {command.name}")
        command, left = below, left[1:]
    return command, left

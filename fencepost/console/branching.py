"""A command that takes arguments of its own and has commands below it: `mine FOLDER`, and `mine explain`.

Owns which of the two a command line means. Must not know any command.
"""

from typing import Any

import rich_click as click

from fencepost.traces.errors import unknown_name


class Branching(click.RichGroup):
    """The first word decides: the name of a command below means that command, anything else is for this one.
    A file of such a name is given as ./NAME."""

    allow_extra_args = False
    allow_interspersed_args = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "invoke_without_command": True})

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command that is meant. info_name, args, parent, extra: click's."""
        below = self.commands.get(args[0]) if args else None
        if below is not None:
            return below.make_context(f"{info_name} {args[0]}", args[1:], parent=parent, **extra)
        takes_arguments = any(isinstance(one, click.Argument) for one in self.params)
        if args and not args[0].startswith("-") and not takes_arguments:
            context = self.context_class(self, info_name=info_name, parent=parent)
            raise click.UsageError(f"No such command {unknown_name(args[0], self.commands)}.", context)
        return super().make_context(info_name, args, parent=parent, **extra)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """As of a command without others below it: they have a list of their own. ctx: click's."""
        return click.Command.collect_usage_pieces(self, ctx)

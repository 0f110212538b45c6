"""Where a command's words go: results to standard output, everything else to standard error.

Owns: the two consoles, progress bars, the one JSON object of --json. Must not know: what is said.

With --json standard output carries one JSON object and nothing else; what a person would have read goes to standard error.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from attrs import define, field
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 160
"""Columns of a table that goes to a file or a pipe, where there is no terminal to ask."""


class _PatientConsole(Console):
    """A console whose reader may leave (`| head`) without changing the command's exit code."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return _PatientConsole(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


@define
class Output:
    """What a command says. json: --json was given."""

    json: bool = False
    errors: Console = field(factory=lambda: _console(stderr=True), init=False)
    _results: Console = field(factory=lambda: _console(stderr=False), init=False)

    @property
    def people(self) -> Console:
        """Where a person reads."""
        return self.errors if self.json else self._results

    def say(self, *parts: "Text | Table | str") -> None:
        """A result for a person; long lines are left to the terminal to wrap."""
        for part in parts:
            self.people.print(part, soft_wrap=not isinstance(part, Table))

    def note(self, text: str) -> None:
        """Something beside the result: what goes on, what to do next."""
        self.errors.print(text, soft_wrap=True, style="dim" if self.errors.is_terminal else None)

    def emit(self, value: dict[str, Any]) -> None:
        """The one JSON object of --json; nothing without it."""
        if self.json:
            try:
                sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
                sys.stdout.flush()
            except BrokenPipeError:
                self._results.on_broken_pipe()

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator["Bar"]:
        """A progress bar on a terminal; silent in a pipe."""
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[extra]}"),
            TimeRemainingColumn(),
            console=self.errors,
            transient=True,
            disable=not self.errors.is_terminal,
        ) as progress:
            yield Bar(progress, progress.add_task(what, total=total, extra=""))


@define
class Bar:
    """A progress bar under way."""

    progress: Progress
    task: TaskID

    def to(self, done: int, extra: str = "") -> None:
        """How far it is."""
        self.progress.update(self.task, completed=done, extra=extra)


def table(*columns: str, title: str | None = None) -> Table:
    """A plain table; a column whose name starts with > is aligned to the right."""
    made = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for column in columns:
        made.add_column(
            Text(column.lstrip(">")), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    return made


def add_row(to: Table, *cells: object, style: str = "") -> None:
    """A row of plain cells: nothing in them is taken for markup."""
    to.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in cells), style=style)

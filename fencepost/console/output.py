"""Where a command's words go: results to standard output, everything else to standard error.

Owns: the two consoles, progress bars, the one JSON object of --json. Must not know: what is said.

With --json standard output carries one JSON object and nothing else; what a person would have read goes to
standard error.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import msgspec
from attrs import define, field
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from fencepost.console.heartbeat import heartbeat
from fencepost.console.tables import add_row as add_row
from fencepost.console.tables import fitted, lines_shown
from fencepost.console.tables import table as table

PIPE_WIDTH = 160
"""Columns of a table that goes to a file or a pipe, where neither a terminal nor COLUMNS says how many."""


class _PatientConsole(Console):
    """A console whose reader may leave (`| head`) without changing the command's exit code."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    told = os.environ.get("COLUMNS", "").isdecimal() or stream.isatty()
    width = None if told else PIPE_WIDTH
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
        """A result for a person; long lines are left to the terminal to wrap. What cannot be printed is
        escaped."""
        for part in parts:
            shown = fitted(part, self.people) if isinstance(part, Table) else part
            shown = lines_shown(shown) if isinstance(shown, str) else shown
            self.people.print(shown, soft_wrap=not isinstance(shown, Table))

    def note(self, text: str) -> None:
        """Something beside the result: what goes on, what to do next."""
        self.errors.print(lines_shown(text), soft_wrap=True, style="dim" if self.errors.is_terminal else None)

    def emit(self, value: dict[str, Any]) -> None:
        """The one JSON object of --json; nothing without it."""
        if self.json:
            said.objects += 1
            try:
                sys.stdout.write(_plain_json(msgspec.json.encode(value).decode()) + "\n")
                sys.stdout.flush()
            except BrokenPipeError:
                self._results.on_broken_pipe()

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator["Bar"]:
        """A progress bar on a terminal; in a pipe a line every half minute. total: None where nobody
        knows."""
        terminal = self.errors.is_terminal
        counted = (BarColumn(), MofNCompleteColumn()) if total is not None else (SpinnerColumn(),)
        left = TimeRemainingColumn() if total is not None else TimeElapsedColumn()
        with Progress(
            *(TextColumn("{task.description}"), *counted, TextColumn("{task.fields[extra]}"), left),
            console=self.errors,
            transient=True,
            disable=not terminal,
        ) as progress:
            bar = Bar(progress, progress.add_task(what, total=total, extra=""))
            said.bars += 1
            try:
                with nullcontext() if terminal else heartbeat(lambda seconds: self.note(bar.said(seconds))):
                    yield bar
            finally:
                said.bars -= 1


def _plain_json(text: str) -> str:
    """The same JSON with escapes for what cannot be printed: outside of strings there is none of it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


@define
class Said:
    """What this process has said."""

    objects: int = 0
    """JSON objects of --json. An exit with none of them gets one that says why (cli/__init__.py)."""
    bars: int = 0
    """Progress bars under way; each reports by itself."""


said = Said()


@define
class Bar:
    """A progress bar under way."""

    progress: Progress
    task: TaskID

    def to(self, done: int, extra: str = "", *, total: int | None = None) -> None:
        """How far it is. total: where it is known only now."""
        self.progress.update(self.task, total=total, completed=done, extra=extra)

    def said(self, seconds: float) -> str:
        """How far it is, in a line."""
        (task,) = (one for one in self.progress.tasks if one.id == self.task)
        count = "" if task.total is None else f": {task.completed:g} of {task.total:g}"
        extra = f", {task.fields['extra']}" if task.fields["extra"] else ""
        return f"{task.description}{count}{extra}, after {seconds:.0f} s"

"""The output of a command: results to standard output, everything else to standard error.

Owns the two consoles, progress bars, and the one JSON object of --json. Must not know the content.

With --json standard output has one JSON object and nothing else; output for people goes to standard error.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
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
from fencepost.traces.errors import ExitCode

PIPE_WIDTH = 160
"""The width of a table in a file or pipe, if neither a terminal nor COLUMNS gives one."""


class _PatientConsole(Console):
    """A console with a reader that may stop early (`| head`) without changing the command's exit code."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    has_width = os.environ.get("COLUMNS", "").isdecimal() or stream.isatty()
    width = None if has_width else PIPE_WIDTH
    return _PatientConsole(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


@define
class Output:
    """The output of a command."""

    # Whether --json was given.
    json: bool = False
    errors: Console = field(factory=lambda: _console(stderr=True), init=False)
    _results: Console = field(factory=lambda: _console(stderr=False), init=False)

    @property
    def people(self) -> Console:
        """The console for people."""
        return self.errors if self.json else self._results

    def say(self, *parts: "Text | Table | str") -> None:
        """Print a result for people; the terminal wraps long lines. Unprintable characters are escaped."""
        for part in parts:
            shown = fitted(part, self.people) if isinstance(part, Table) else part
            shown = lines_shown(shown) if isinstance(shown, str) else shown
            self.people.print(shown, soft_wrap=not isinstance(shown, Table))

    def note(self, text: str) -> None:
        """Print information other than the result: progress, what to do next."""
        self.errors.print(lines_shown(text), soft_wrap=True, style="dim" if self.errors.is_terminal else None)

    def emit(self, value: dict[str, Any]) -> None:
        """Print the one JSON object of --json; no effect without --json."""
        if self.json:
            said.objects += 1
            try:
                sys.stdout.write(_plain_json(msgspec.json.encode(value).decode()) + "\n")
                sys.stdout.flush()
            except BrokenPipeError:
                self._results.on_broken_pipe()

    def end(self, code: ExitCode, value: dict[str, Any]) -> ExitCode:
        """The end of a command: print the one JSON object, with the exit code in it, and return the code."""
        self.emit({**value, "exit_code": int(code)})
        return code

    def listed(self, name: str, items: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> ExitCode:
        """The end of a command that lists something: a row of a table for each item, or the items as JSON.

        Args:
            name: of the list in the JSON object.
            items: what is listed.
            columns: the heading of each column with the field that is in it; a list is joined with commas.

        Returns:
            the exit code for nothing found.
        """
        rows = table(*columns)
        for item in items:
            cells = (item[key] for key in columns.values())
            add_row(rows, *(", ".join(cell) if isinstance(cell, list) else cell for cell in cells))
        self.say(rows)
        return self.end(ExitCode.NOTHING_FOUND, {name: items})

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator["Bar"]:
        """A progress bar on a terminal; in a pipe a line every half minute.

        Args:
            what: the text of the bar.
            total: the number of steps; None if it is not known.

        Returns:
            the bar, as a context.
        """
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
    """The same JSON with escapes for unprintable characters, which occur only in strings."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


@define
class Said:
    """What this process has printed."""

    # JSON objects of --json. If there are none at the exit, one with the reason is printed (cli/__init__.py).
    objects: int = 0
    # Visible progress bars; each reports by itself.
    bars: int = 0


said = Said()


@define
class Bar:
    """A visible progress bar."""

    progress: Progress
    task: TaskID

    def to(self, done: int, extra: str = "", *, total: int | None = None) -> None:
        """Set the progress.

        Args:
            done: the finished steps.
            extra: more text.
            total: the number of steps, if it becomes known only now.
        """
        self.progress.update(self.task, total=total, completed=done, extra=extra)

    def said(self, seconds: float) -> str:
        """The progress as one line."""
        (task,) = (one for one in self.progress.tasks if one.id == self.task)
        count = "" if task.total is None else f": {task.completed:g} of {task.total:g}"
        extra = f", {task.fields['extra']}" if task.fields["extra"] else ""
        return f"{task.description}{count}{extra}, after {seconds:.0f} s"

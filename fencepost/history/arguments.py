"""What the callers of the recorder give it: values, functions, numbers.

Owns: what is accepted, and the sentence about everything else. Must not know recordings or judges. A value
that JSON would change on the way is refused: a NaN that becomes a null, or a set in another order each time,
would convict the innocent.
"""

import math
import os
import reprlib
from pathlib import Path
from typing import Any

import msgspec

from fencepost.traces.decoding import MOST_LEVELS, TOO_DEEP
from fencepost.traces.errors import EnvironmentError_, FencepostError, TraceError

LEAST_INTEGER, MOST_INTEGER = -(1 << 63), (1 << 64) - 1
"""Integers beyond are read back as floating-point numbers, of which two that differ may be equal."""
LONGEST_TIMEOUT_S = 7 * 24 * 3600.0
"""A week: what is longer is a mistake, and the clocks of threads overflow at 292 years."""


def shown(value: object) -> str:
    """A value in an error: short, whatever it is."""
    try:
        return f"{reprlib.repr(value):.80}"
    except Exception:  # a __repr__ of the caller's, or an integer with too many digits
        return f"a value of type {type(value).__name__}"


def json_text(value: Any, what: str) -> str | None:
    """A value as the JSON text of a column; None for None. Raises TraceError for what has none, or not the
    same one."""
    if value is None:
        return None
    try:
        _check(value, MOST_LEVELS)
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TraceError(
            expected="a value that JSON can hold",
            seen=f"{shown(value)} ({error})",
            where=what,
            hint="record a number, a text, a list of those, or an id in its place",
        ) from None


def _check(value: Any, levels: int) -> None:
    """Raises ValueError for what JSON would change."""
    if isinstance(value, str | bool):
        return
    if isinstance(value, int):
        if not LEAST_INTEGER <= value <= MOST_INTEGER:
            raise ValueError("integers have at most 64 bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("JSON has no such number")
    elif isinstance(value, set | frozenset):
        raise ValueError("a set has no order; record sorted(...)")
    elif isinstance(value, list | tuple | dict):
        if levels == 0:
            raise ValueError(TOO_DEEP)
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise ValueError("keys are texts")
            value = value.values()
        for one in value:
            _check(one, levels - 1)


def check_errors(errors: object, where: str) -> None:
    """Refuse anything but kinds of exceptions in a tuple, as `except` takes them.

    Args:
        errors: what was given.
        where: the argument, for the message.

    Raises:
        FencepostError: if it is anything else.
    """
    fine = isinstance(errors, tuple) and all(
        isinstance(one, type) and issubclass(one, BaseException) for one in errors
    )
    if not fine:
        raise FencepostError(
            expected="a tuple of exception classes, such as (ConnectionRefusedError,)",
            seen=shown(errors),
            where=f"{where}: fail",
        )


def error_text(error: object) -> str | None:
    """An error as it is recorded: a text, or what kind of exception it is. Raises FencepostError."""
    if isinstance(error, BaseException):
        return type(error).__name__
    if error is None or isinstance(error, str):
        return error
    raise FencepostError(
        expected="an error: its name, or an exception", seen=shown(error), where="a recorded operation"
    )


def check_callable(function: object, expected: str, where: str) -> None:
    """Refuse what cannot be called.

    Args:
        function: what was given.
        expected: what it should be, for the message.
        where: the argument, for the message.

    Raises:
        FencepostError: if it cannot be called.
    """
    if not callable(function):
        raise FencepostError(expected=expected, seen=shown(function), where=where)


def check_timeout(timeout_s: object, where: str) -> None:
    """Refuse anything but a number of seconds above zero.

    Args:
        timeout_s: what was given.
        where: the argument, for the message.

    Raises:
        FencepostError: if it is anything else.
    """
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not 0 < float(timeout_s) <= LONGEST_TIMEOUT_S:  # type: ignore[arg-type]
        raise FencepostError(
            expected=f"a number of seconds above 0 and up to {LONGEST_TIMEOUT_S:,.0f}",
            seen=shown(timeout_s),
            where=f"{where}: timeout_s",
        )


def folder_of(path: object, where: str) -> Path:
    """A path of a file or folder. Raises FencepostError for what is none."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise FencepostError(expected="a path", seen=shown(path), where=where)
    return Path(path)


def make_folder(folder: Path) -> None:
    """With what is above it. Raises EnvironmentError_."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentError_(
            expected="a folder that can be made", seen=error.strerror or str(error), where=str(folder)
        ) from None


def check_count(count: object, where: str) -> None:
    """Refuse anything but a whole number from 0 on.

    Args:
        count: what was given.
        where: the argument, for the message.

    Raises:
        FencepostError: if it is anything else.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise FencepostError(expected="a whole number from 0 on", seen=shown(count), where=where)

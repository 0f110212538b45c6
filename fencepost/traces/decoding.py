"""JSON and MessagePack that came from outside, decoded to a bounded depth.

Owns: the most levels of nesting that any text or payload may have. Must not know: what the values mean.

The libraries recurse with every level. Text of 100,000 brackets would raise RecursionError, which no
reader expects, at a depth that depends on the caller's own stack. Here it is an ordinary DecodeError, at
the same depth everywhere.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

MOST_LEVELS = 64
"""Levels of nesting. A plan has 5 and a history's values have few; serde_json allows 128, Jackson 1,000."""
TOO_DEEP = f"more than {MOST_LEVELS} levels of nesting"
T = TypeVar("T")


def from_json(text: str | bytes, kind: Any = Any) -> Any:
    """The value of a JSON text, of type `kind`. Raises msgspec.DecodeError, also for nesting beyond
    MOST_LEVELS and for text that is not UTF-8."""
    try:
        value = msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise msgspec.DecodeError(TOO_DEEP) from None
    except UnicodeError as error:
        raise msgspec.DecodeError(str(error)) from None
    brackets = (b"[", b"{") if isinstance(text, bytes) else ("[", "{")
    if kind is Any and sum(map(text.count, brackets)) > MOST_LEVELS:  # type: ignore[arg-type]
        check_levels(value)
    return value


def rows_of(path: Path, kind: Callable[..., T]) -> tuple[T, ...]:
    """The rows of a table of our own, a JSON object in each line, in order. path: the file in the package;
    kind: made from a row's names and values."""
    return tuple(kind(**from_json(line)) for line in path.read_text(encoding="utf-8").splitlines())


def from_msgpack(data: bytes | msgspec.Raw, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    """The value of a MessagePack payload. data: the payload; decoder: of the expected type. Raises
    msgspec.DecodeError, also for endless nesting and for text that is not UTF-8."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise msgspec.DecodeError(TOO_DEEP) from None
    except UnicodeError as error:
        raise msgspec.DecodeError(str(error)) from None


def check_levels(value: Any) -> None:
    """Refuse a value of lists and dictionaries with more than MOST_LEVELS levels. Raises
    msgspec.DecodeError."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    raise msgspec.DecodeError(TOO_DEEP)

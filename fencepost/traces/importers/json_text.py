"""Rows of a history in JSON: an array of objects, or one object after another.

Owns text -> values, and the refusal of everything that JSON cannot express exactly, with its line. Must not
know what a history is.

Refused: a field twice, NaN and infinities (also as a number too large), integers beyond 64 bits, half a
surrogate pair, endless nesting.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec
from attrs import define, field

from fencepost.traces.decoding import TOO_DEEP, check_levels
from fencepost.traces.errors import TraceError
from fencepost.traces.importers.window import Window

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
LONGEST_NUMBER = 400
"""Characters; no 64-bit integer and no float needs as many."""
_BETWEEN = re.compile(r"[\s,]*")


@define(eq=False)
class JsonReader:
    """The values of a text, one after another."""

    window: Window
    # Of the value under way.
    line: int = 1
    decoder: json.JSONDecoder = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=self._constant,
            parse_int=self._integer,
            parse_float=self._float,
        )

    def refuse(self, expected: str, seen: str, line: int | None = None) -> TraceError:
        """The error for a line. expected, seen: for the message; line: None for the present one."""
        return TraceError(
            expected=expected, seen=seen, where=f"{self.window.where}:{self.line if line is None else line}"
        )

    def _constant(self, name: str) -> NoReturn:
        raise self.refuse("JSON", name)

    def _integer(self, digits: str) -> int:
        value = int(digits) if len(digits) < LONGEST_NUMBER else INT64_MAX + 1
        if not INT64_MIN <= value <= INT64_MAX:
            raise self.refuse("64-bit integers", digits[:40])
        return value

    def _float(self, digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise self.refuse("numbers that a 64-bit float can hold", digits[:40])
        return value

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise self.refuse("each field once", "one of them twice")
        return made

    def value(self, position: int) -> tuple[Any, int]:
        """The value at a position, and where it ends."""
        window = self.window
        while True:
            try:
                row, end = self.decoder.raw_decode(window.text, position)
            except json.JSONDecodeError as error:
                if window.more():
                    continue  # it continues
                raise self.refuse("a JSON object", error.msg, window.line + error.lineno - 1) from None
            except RecursionError:
                raise self.refuse("a JSON object", TOO_DEEP) from None
            if end < len(window.text) or not window.more():
                break  # a number at the end of the window may continue
        try:
            check_levels(row)
        except msgspec.DecodeError as error:
            raise self.refuse("a JSON object", str(error)) from None
        if "\\u" in window.text[position:end]:
            self._check_text(row)
        return row, end

    def _check_text(self, value: Any) -> None:
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise self.refuse("text", "half a surrogate pair") from None
        elif isinstance(value, list):
            for item in value:
                self._check_text(item)
        elif isinstance(value, dict):
            for name, item in value.items():
                self._check_text(name)
                self._check_text(item)


def json_rows(window: Window) -> Iterator[tuple[Any, int]]:
    """Each row with the number of its line. Raises TraceError."""
    reader = JsonReader(window)
    position = _behind(window, 0)
    inside = window.text.startswith("[", position)
    position = _behind(window, position + inside)
    while position < len(window.text) and not (inside and window.text[position] == "]"):
        reader.line = window.line_of(position)
        row, position = reader.value(position)
        yield row, reader.line
        position = window.forget(_behind(window, position))
    if inside:
        if position >= len(window.text):
            raise reader.refuse("a closing ]", "the end of the file", window.line_of(position))
        position += 1
    while window.more():
        pass
    rest = window.text[position:].strip()
    if rest:
        raise reader.refuse("nothing after the history", repr(rest[:20]), window.line_of(position))


def _behind(window: Window, position: int) -> int:
    """The next position that is neither space nor comma."""
    while True:
        match = _BETWEEN.match(window.text, position)
        position = match.end() if match else position
        if position < len(window.text) or not window.more():
            return position

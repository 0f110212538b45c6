"""A small strict reader of EDN, the notation of Jepsen's histories.

Owns: text -> values, with the line of everything that it does not understand. Must not know what a history
is.

nil, booleans, numbers, strings, characters, keywords, lists, vectors, maps, sets, comments and discards (#_).
Keywords become `Keyword`, lists and vectors `list`, maps `dict` (keys: keywords, texts and numbers), sets
`frozenset`. A tag is understood if it says "this is a record" (#some.Record{...}, as Clojure prints them) or
"this is a pair" (a MapEntry or tuple). Inside a value everything else is `Opaque`: symbols, ratios, other
tags, and what would not stay what it is on the way to JSON (integers beyond 64 bits, numbers too large for a
float, decimals that a float does not hold, keys that become one). Who needs such a value refuses it.
"""

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from attrs import define, frozen

from fencepost.traces.decoding import MOST_LEVELS
from fencepost.traces.errors import TraceError
from fencepost.traces.importers.window import Window


@frozen
class Keyword:
    """:name, without its colon."""

    name: str


@frozen
class Opaque:
    """What has no JSON value."""

    # Its beginning, for messages.
    text: str
    # What would have one.
    expected: str


class KeyedPair(list[Any]):
    """[key value] with a tag that says so (Clojure's MapEntry, tuples of jepsen.independent)."""


_PAIRS = re.compile(r"(?:map-?entry|tuple)$", re.IGNORECASE)
"""The end of their tags."""
_TOKEN = re.compile(
    r"""(?P<space>[\s,]+)|(?P<comment>;[^\n]*)|(?P<discard>\#_)|(?P<strange>\#"[^"\\]*(?:\\.[^"\\]*)*"|\#<[^>\n]*>)
    |(?P<open>\#\{|[\[({])|(?P<close>[\])}])
    |(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<character>\\(?:newline|return|space|tab|formfeed|backspace|u[0-9a-fA-F]{4}|\S))
    |(?P<keyword>:[^\s,;"()\[\]{}]+)|(?P<tag>\#:{0,2}[A-Za-z][^\s,;"()\[\]{}]*)|(?P<atom>[^\s,;"()\[\]{}\\]+)""",
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)N?")
_FLOAT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?M?")
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
LONGEST_NUMBER = 400
"""Characters; no 64-bit integer and no float needs as many."""
_CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|[tnrbf"\\])')
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\"}
_CHARACTERS = {
    "newline": "\n",
    "return": "\r",
    "space": " ",
    "tab": "\t",
    "formfeed": "\f",
    "backspace": "\b",
}
_WORDS: dict[str, Any] = {"nil": None, "true": True, "false": False}


@define
class EdnReader:
    """Values out of a text, one after another."""

    window: Window
    # Where the next token begins in the window.
    position: int = 0

    def refuse(self, expected: str, seen: str, position: int) -> TraceError:
        """The error for the text at `position`. expected, seen: for the message."""
        window = self.window
        return TraceError(expected=expected, seen=seen, where=f"{window.where}:{window.line_of(position)}")

    def token(self) -> tuple[str, str, int]:
        """Kind, text and position of the next token that means something; kind "" at the end."""
        window = self.window
        while self.position < len(window.text) or window.more():
            start = self.position
            match = _TOKEN.match(window.text, start)
            if (match is None or match.end() == len(window.text)) and window.more():
                continue  # it may continue
            if match is None:
                raise self.refuse("EDN", repr(window.text[start : start + 20]), start)
            self.position = match.end()
            if match.lastgroup not in ("space", "comment"):
                return str(match.lastgroup), match.group(), start
        return "", "", self.position

    def skip_into(self, opens: str) -> bool:
        """Step over an opening bracket if it comes next."""
        start = self.position
        kind, text, _ = self.token()
        if kind == "open" and text == opens:
            return True
        self.position = start
        return False

    def values(self, closes: str = "", depth: int = 0) -> Iterator[tuple[Any, int]]:
        """Each value up to the closing bracket (or the end of the text), with the number of its line (0
        within another value). closes: the bracket, "" for none; depth: of nesting. The text of complete
        outermost values is dropped."""
        opened = self.window.line_of(self.position) if closes else 0
        while True:
            if not depth:
                self.position = self.window.forget(self.position)
            kind, text, start = self.token()
            if not kind:
                if closes:
                    where = f"{self.window.where}:{opened}"
                    raise TraceError(expected=f"a closing {closes}", seen="the end of the file", where=where)
                return
            if kind == "close":
                if text != closes:
                    raise self.refuse(
                        f"a closing {closes}" if closes else "a value", f"a closing {text}", start
                    )
                return
            if kind == "discard":
                self.value(*self.token(), depth)
                continue
            line = self.window.line_of(start) if not depth else 0
            yield self.value(kind, text, start, depth), line

    def value(self, kind: str, text: str, start: int, depth: int) -> Any:
        """The value that begins with this token. kind, text: of the token; start: its position; depth: of
        nesting."""
        if depth > MOST_LEVELS:
            raise self.refuse(f"at most {MOST_LEVELS} levels of nesting", "more", start)
        match kind:
            case "open":
                return self._collection(text, start, depth)
            case "string":
                return self._string(text[1:-1], start)
            case "character":
                name = text[1:]
                text = _CHARACTERS.get(name) or (chr(int(name[1:], 16)) if len(name) == 5 else name)
                return self._whole(text, start)
            case "keyword":
                return Keyword(text[1:])
            case "tag":
                return self._tagged(text, start, depth)
            case "atom":
                return self._atom(text)
            case "strange":
                return Opaque(text[:40], "a value that EDN has")
        raise self.refuse("a value", repr(text) if text else "the end of the file", start)

    def _string(self, text: str, start: int) -> str:
        def escaped(match: re.Match[str]) -> str:
            name = match.group(1)
            return chr(int(name[1:], 16)) if name[0] == "u" else _ESCAPES[name]

        if "\\" not in text:
            return text
        if "\\" in _ESCAPE.sub("", text):
            raise self.refuse("an escape that EDN has", repr(text), start)
        return self._whole(_ESCAPE.sub(escaped, text), start)

    def _whole(self, text: str, start: int) -> str:
        """The text with its surrogate pairs joined, as \\u writes them."""
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self.refuse("text", "half a surrogate pair", start) from None

    def _atom(self, text: str) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            value = int(text.rstrip("N")) if len(text) < LONGEST_NUMBER else INT64_MAX + 1
            return value if INT64_MIN <= value <= INT64_MAX else Opaque(text[:40], "64-bit integers")
        if _FLOAT.fullmatch(text):
            return self._float(text)
        return Opaque(repr(text), "nil, true, false, a number, a text, a keyword or a collection")

    def _float(self, text: str) -> float | Opaque:
        value = float(text.rstrip("M"))
        exact = not text.endswith("M") or Decimal(repr(value)) == Decimal(text[:-1])
        if not math.isfinite(value) or not exact:
            return Opaque(text[:40], "numbers that a 64-bit float can hold")
        return value

    def _tagged(self, tag: str, start: int, depth: int) -> Any:
        kind, text, at = self.token()
        value = self.value(kind, text, at, depth + 1)
        if text == "[" and _PAIRS.search(tag):
            return KeyedPair(value)
        if text == "{" and "." in tag:
            return value
        return Opaque(tag, "a record as the only kind of tag")

    def _collection(self, opens: str, start: int, depth: int) -> Any:
        items = [value for value, _ in self.values(_CLOSES[opens], depth + 1)]
        if opens in "[(":
            return items
        keys = items if opens == "#{" else items[::2]
        if opens == "{" and len(items) % 2:
            raise self.refuse("a value for every key of a map", "one key without", start)
        if not all(isinstance(key, Keyword | str | int | float | None) for key in keys):
            expected = "keywords, texts, numbers, booleans or nil in a set or as keys"
            return self._strange(expected, "a collection", start, depth)
        names_read = keys if opens == "#{" else [str(plain(key)) for key in keys]
        if len(set(names_read)) != len(keys):
            return self._strange("each key once", "one of them twice", start, depth)
        return frozenset(keys) if opens == "#{" else dict(zip(keys, items[1::2], strict=True))

    def _strange(self, expected: str, seen: str, start: int, depth: int) -> Opaque:
        """What a set or map is that has no JSON value. Raises TraceError for a row."""
        if not depth:
            raise self.refuse(expected, seen, start)
        return Opaque(seen, expected)


def plain(value: Any) -> Any:
    """A value of EDN as one of JSON: keywords by their name, sets as sorted lists, maps with text keys."""
    if isinstance(value, Keyword):
        return value.name
    if isinstance(value, list):
        return type(value)(plain(item) for item in value)
    if isinstance(value, frozenset):
        return sorted(
            (plain(item) for item in value), key=lambda item: (str(type(item)), item is None or item)
        )
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    return value


def opaque_in(value: Any) -> Opaque | None:
    """The first part of a value that has no JSON value."""
    if isinstance(value, Opaque):
        return value
    if isinstance(value, list | dict):
        parts = value if isinstance(value, list) else value.values()
        return next((found for part in parts if (found := opaque_in(part)) is not None), None)
    return None


def readable(value: Any) -> Any:
    """A value for people: what has no JSON value is its text."""
    if isinstance(value, Opaque):
        return value.text
    if isinstance(value, list):
        return [readable(item) for item in value]
    if isinstance(value, dict):
        return {name: readable(item) for name, item in value.items()}
    return value

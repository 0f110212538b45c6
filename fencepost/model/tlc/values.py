"""TLA+ values as Python values, parsed from TLC's output and printed as TLC reads them.

Owns the correspondence. Must not know frames, states or any specification.

    TRUE, FALSE                     bool
    -5                              int
    "a\\n"                           str
    r1                              ModelValue("r1")
    {1, 2}, 1..3                    frozenset
    <<1, "a">>, << >>               tuple
    [a |-> 1], (0 :> 1 @@ 2 :> 3)   Function, a read-only mapping with a hash

In TLA+ a sequence is a function with domain 1..n, and a record is a function with strings as domain. So every
value has one Python form, independent of TLC's notation: a function with domain 1..n (including the empty
one) is a tuple. In Python 1 and True are equal. TLC refuses to compare them, so a set contains only one of
the two.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Union

from attrs import define, field, frozen

from fencepost.traces.errors import FencepostError

DEEPEST = 150
"""The deepest nesting of values that is read. Reason: a specification's own values are nested a handful deep,
and Python's stack is finite."""

LARGEST_INTERVAL = 1_000_000
"""The most members of `a..b` that are enumerated."""

Value = Union[bool, int, str, "ModelValue", tuple["Value", ...], frozenset["Value"], "Function"]


class TlaValueError(FencepostError, ValueError):
    """A text that is not a TLA+ value, or a Python value without a TLA+ form."""


@frozen(order=True)
class ModelValue:
    """A value that equals only itself: `r1` in a configuration."""

    name: str

    def __str__(self) -> str:
        return self.name


class Function(Mapping[Value, Value]):
    """A TLA+ function, read-only. `as_value` makes one from pairs, or the tuple that it is."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[Value, Value]) -> None:
        self._items = dict(items)
        self._hash: int | None = None

    def __getitem__(self, key: Value) -> Value:
        return self._items[key]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return self._items == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"Function({self._items!r})"


def as_value(pairs: Iterable[tuple[Value, Value]]) -> Value:
    """The function given by `pairs` (the first one wins, as in f @@ g); a tuple if its domain is 1..n."""
    items: dict[Value, Value] = {}
    for key, value in pairs:
        items.setdefault(key, value)
    if all(type(key) is int for key in items):
        ordered = [items.get(index) for index in range(1, len(items) + 1)]
        if None not in ordered:
            return tuple(value for value in ordered if value is not None)
    return Function(items)


def record(**fields: Value) -> Value:
    """A record. A record always has a field, so it is never a tuple."""
    assert fields
    return as_value((name, value) for name, value in fields.items())


# ---- reading

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<name>[A-Za-z0-9_]*[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>-?\d+)
    | (?P<symbol><<|>>|\|->|:>|@@|\.\.|[{}\[\](),])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_UNESCAPE = re.compile(r"\\(.)", re.DOTALL)


@define
class _Reader:
    """tokens: (kind, text) still to come, from `at` on."""

    text: str
    tokens: list[tuple[str, str]] = field(factory=list)
    at: int = 0

    def __attrs_post_init__(self) -> None:
        position, end = 0, len(self.text.rstrip())
        while position < end:
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self.error(f"{self.text[position : position + 20].strip()!r}")
            kind = match.lastgroup
            assert kind is not None
            self.tokens.append((kind, match.group(kind)))
            position = match.end()

    def error(self, seen: str) -> TlaValueError:
        return TlaValueError(expected="a TLA+ value", seen=seen, where=_shortened(self.text))

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, symbol: str) -> bool:
        """Whether the next token is this symbol; if so, it is consumed."""
        if self.at < len(self.tokens) and self.tokens[self.at] == ("symbol", symbol):
            self.at += 1
            return True
        return False

    def need(self, symbol: str) -> None:
        if not self.take(symbol):
            raise self.error(f"{self.peek()!r} where {symbol!r} should be")

    def items(self, close: str, depth: int) -> list[Value]:
        """Values separated by commas up to `close`."""
        if self.take(close):
            return []
        found = [self.value(depth)]
        while self.take(","):
            found.append(self.value(depth))
        self.need(close)
        return found

    def value(self, depth: int) -> Value:
        if depth > DEEPEST:
            raise self.error(f"more than {DEEPEST} levels of nesting")
        if self.at >= len(self.tokens):
            raise self.error("the end of the text")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "string":
            return _UNESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])
        if kind == "number":
            return self._interval(int(text)) if self.take("..") else int(text)
        if kind == "name":
            return {"TRUE": True, "FALSE": False}.get(text, ModelValue(text))
        if text == "<<":
            return tuple(self.items(">>", depth + 1))
        if text == "{":
            return frozenset(self.items("}", depth + 1))
        if text == "[":
            return self._record(depth + 1)
        if text == "(":
            return self._function(depth + 1)
        raise self.error(repr(text))

    def _interval(self, low: int) -> Value:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "the end of the text")
        self.at += 1
        if kind != "number" or int(text) - low >= LARGEST_INTERVAL:
            raise self.error(f"{text!r} as the end of an interval from {low}")
        return frozenset(range(low, int(text) + 1))

    def _record(self, depth: int) -> Value:
        pairs: list[tuple[Value, Value]] = []
        while True:
            kind, name = self.tokens[self.at] if self.at < len(self.tokens) else ("", "the end of the text")
            if kind != "name":
                raise self.error(f"{name!r} where a field's name should be")
            self.at += 1
            self.need("|->")
            pairs.append((name, self.value(depth)))
            if not self.take(","):
                break
        self.need("]")
        return as_value(pairs)

    def _function(self, depth: int) -> Value:
        pairs: list[tuple[Value, Value]] = []
        while True:
            key = self.value(depth)
            if not pairs and self.take(")"):
                return key
            self.need(":>")
            pairs.append((key, self.value(depth)))
            if not self.take("@@"):
                break
        self.need(")")
        return as_value(pairs)


def parse(text: str) -> Value:
    """The value of a text. Raises TlaValueError, also for values that TLC does not evaluate (SUBSET S, [S ->
    T])."""
    reader = _Reader(text)
    value = reader.value(0)
    if reader.at < len(reader.tokens):
        raise reader.error(f"{reader.peek()!r} after the value")
    return value


# ---- printing

_NAME = re.compile(r"[A-Za-z0-9_]*[A-Za-z][A-Za-z0-9_]*\Z", re.ASCII)
_RESERVED = frozenset(
    {
        "ASSUME",
        "ASSUMPTION",
        "AXIOM",
        "CASE",
        "CHOOSE",
        "CONSTANT",
        "CONSTANTS",
        "DOMAIN",
        "ELSE",
        "ENABLED",
        "EXCEPT",
        "EXTENDS",
        "FALSE",
        "IF",
        "IN",
        "INSTANCE",
        "LAMBDA",
        "LET",
        "LOCAL",
        "MODULE",
        "OTHER",
        "STRING",
        "BOOLEAN",
        "SUBSET",
        "THEN",
        "THEOREM",
        "TRUE",
        "UNCHANGED",
        "UNION",
        "VARIABLE",
        "VARIABLES",
        "WITH",
    }
)
_TO_ESCAPE = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"}


def show(value: Value) -> str:
    """The value in TLA+, on one line. Equal values have the same text (sets and domains are sorted)."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(_TO_ESCAPE.get(character, character) for character in value) + '"'
    if isinstance(value, ModelValue):
        return value.name
    if isinstance(value, tuple):
        return f"<<{', '.join(show(item) for item in value)}>>" if value else "<< >>"
    if isinstance(value, frozenset):
        return "{" + ", ".join(show(item) for item in sorted(value, key=_order)) + "}"
    if isinstance(value, Function):
        keys = sorted(value, key=_order)
        if keys and all(_is_field(key) for key in keys):
            return "[" + ", ".join(f"{key} |-> {show(value[key])}" for key in keys) + "]"
        return "(" + " @@ ".join(f"{show(key)} :> {show(value[key])}" for key in keys) + ")"
    raise TlaValueError(
        expected="a boolean, integer, string, model value, tuple, frozenset or Function",
        seen=type(value).__name__,
        where="a TLA+ value",
    )


def _is_field(key: Value) -> bool:
    return (
        isinstance(key, str)
        and _NAME.match(key) is not None
        and key not in _RESERVED
        and not key.startswith(("WF_", "SF_"))
    )


_RANKS: tuple[tuple[type, int], ...] = (
    (bool, 0),
    (int, 1),
    (str, 2),
    (ModelValue, 3),
    (tuple, 4),
    (frozenset, 5),
)


def _order(value: Value) -> tuple[int, int, str]:
    """A total order without comparisons between kinds: kind, then number or length, then text."""
    rank = next((rank for kind, rank in _RANKS if isinstance(value, kind)), 6)
    if isinstance(value, int):
        return rank, int(value), ""
    if isinstance(value, tuple | frozenset | Function):
        return rank, len(value), show(value)
    return rank, 0, str(value)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def plain(value: Value) -> object:
    """The value for JSON: sets and tuples become lists, functions objects (keys are TLA+ texts unless they
    are strings), model values their names."""
    convert: Callable[[Value], object] = plain
    if isinstance(value, ModelValue):
        return value.name
    if isinstance(value, tuple):
        return [convert(item) for item in value]
    if isinstance(value, frozenset):
        return [convert(item) for item in sorted(value, key=_order)]
    if isinstance(value, Function):
        return {
            key if isinstance(key, str) else show(key): convert(value[key])
            for key in sorted(value, key=_order)
        }
    return value

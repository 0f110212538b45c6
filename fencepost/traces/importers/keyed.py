"""Values [key value] of jepsen.independent: whether a history has them, and the history split by key.

Owns the shape of such values. Must not know notations, or how entries are paired.

The invocations decide. `[key nil]` of a read and `[key [old new]]` of a cas are certain signs, as is a pair
with a tag of Clojure's. `[a b]` of another function may as well be one value. In a history of
jepsen.independent every value is a pair, so one that is none speaks against all.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from attrs import define, evolve, field, frozen

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.conventions import Conventions, Tell
from fencepost.traces.importers.edn import KeyedPair
from fencepost.traces.importers.entries import ASKS_NOTHING, HistoryEntry, key_text
from fencepost.traces.importers.entry_places import is_integer

NOT_KEYED = "--not-keyed takes all values as they are"
_NOTHING_ASKED = frozenset(function.value for function in ASKS_NOTHING)


class Sign(Enum):
    """What an invocation says of all values."""

    PAIR = "a pair"
    PERHAPS = "a pair, or one value with two parts"
    NONE = "no pair"


def by_key(
    entries: list[HistoryEntry], conventions: Conventions, where: str, tell: Tell
) -> list[HistoryEntry]:
    """The entries, with their keys split off if their values are pairs. where: the file; tell: is called
    with what was taken. Raises TraceError if only some of them are pairs."""
    if conventions.keyed is False:
        return entries
    if conventions.keyed is None and not _Shape.of(entries).decide(where):
        return entries
    split = _Split(where, (lambda key: key is not None) if conventions.keyed else _is_key)
    made = [split.entry(entry) for entry in entries]
    tell(
        f"{where}: values are taken as [key value] of jepsen.independent: {len(split.keys)} keys, each a "
        f"history of its own (--not-keyed takes them as they are)"
    )
    return made


def _is_key(value: Any) -> bool:
    return is_integer(value) or isinstance(value, str)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_key(value[0])


def _sign_of(entry: HistoryEntry) -> Sign:
    value = entry.value
    if entry.key is not None or not _is_pair(value):
        return Sign.NONE
    if isinstance(value, KeyedPair):
        return Sign.PAIR
    if entry.function == "cas":
        return Sign.PAIR if isinstance(value[1], list) and len(value[1]) == 2 else Sign.NONE
    asks_nothing = entry.function in _NOTHING_ASKED and value[1] is None
    return Sign.PAIR if asks_nothing else Sign.PERHAPS


def _misfit(entry: HistoryEntry, where: str, why: str) -> TraceError:
    seen = "nothing" if entry.value is None else repr(entry.value)[:80]
    if entry.key is not None:
        seen = f"the key {entry.key!r}"
    return TraceError(
        expected=f"[key value] of jepsen.independent as value of {entry.function}{why}",
        seen=seen,
        where=f"{where}:{entry.line}",
        hint=NOT_KEYED,
    )


@frozen
class _Shape:
    """The invocations of a history by what they say, and its completions."""

    signs: dict[Sign, list[HistoryEntry]]
    completed: list[HistoryEntry]

    @classmethod
    def of(cls, entries: Iterable[HistoryEntry]) -> "_Shape":
        signs: dict[Sign, list[HistoryEntry]] = defaultdict(list)
        completed: list[HistoryEntry] = []
        for entry in entries:
            (signs[_sign_of(entry)] if entry.type == "invoke" else completed).append(entry)
        return cls(signs, completed)

    def decide(self, where: str) -> bool:
        """Whether the history is keyed. Raises TraceError for half a match."""
        pairs, perhaps, none = (self.signs.get(sign, []) for sign in Sign)
        if not pairs and not perhaps:
            return False
        if not none:
            return True
        like = (pairs or perhaps)[0]
        misfit = none[0] if pairs else self._contradiction(perhaps, none)
        if misfit is not None:
            raise _misfit(misfit, where, f", as in line {like.line}")
        return False

    def _contradiction(self, perhaps: list[HistoryEntry], none: list[HistoryEntry]) -> HistoryEntry | None:
        """What contradicts that pairs are values of their own: another value of the same function, or a
        read that shows no pair where pairs are written."""
        functions = {entry.function for entry in perhaps}
        other = next((entry for entry in none if entry.function in functions), None)
        if other is not None or "write" not in functions:
            return other
        shown = (entry for entry in self.completed if entry.type == "ok" and entry.function == "read")
        return next((e for e in shown if e.value is not None and not isinstance(e.value, list)), None)


@define
class _Split:
    """Splits the key off values."""

    where: str
    # Whether a value may be a key.
    is_key: Callable[[Any], bool]
    # Keys that were met, by their text.
    keys: dict[str | None, Any] = field(factory=dict)

    def entry(self, entry: HistoryEntry) -> HistoryEntry:
        """The entry with its key. Where an operation did not succeed, its completion may be without value, or
        have an error in its place. Raises TraceError."""
        value = entry.value
        pair = isinstance(value, list) and len(value) == 2 and self.is_key(value[0])
        if entry.key is not None or not pair:
            if entry.key is None and entry.type in ("fail", "info"):
                return entry
            raise _misfit(entry, self.where, "")
        if self.keys.setdefault(key_text(value[0]), value[0]) != value[0]:
            raise TraceError(
                expected="keys that differ as texts",
                seen=f"{value[0]!r} and {self.keys[key_text(value[0])]!r}",
                where=f"{self.where}:{entry.line}",
                hint=NOT_KEYED,
            )
        return evolve(entry, key=value[0], value=value[1])

"""Texts under keys that are made of identifiable pieces.

Owns the decision for `key-value`. Must not know the arithmetic of zones.

If no put or appended text is a prefix of another one, the result of a get splits into pieces in one way only.
The first piece is that of a put (or the initial text), and the appended pieces follow in order. A put, the
appends after it that gets show, and these gets form a chain, like the values of a cas-register. A chain is a
cluster of `zones`. If no get shows an append, no get happens between it and the next put. So it may happen
between any two chains, like a put without a read. If such an operation has an unknown outcome, it never
happened.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from attrs import define, field

from fencepost.checkers.linearizability.deciders.zones import (
    BEFORE_ALL,
    Decided,
    ZoneCluster,
    conflict,
    in_turn,
)
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.models.registers import KeyValue

NOBODY = -1
"""The maker of the initial text."""


@define
class Chain:
    """A put and the operations that depend on it (positions in the part).

    makers: the put (NOBODY for the initial text), then its appends in order. readers: for each number of
    makers, from one on, the gets that show this many. witness: the get that shows most.
    """

    makers: list[int]
    readers: list[list[int]]
    witness: int


@define
class Texts:
    """The operations of one key by text."""

    # The operations of one key, by invocation.
    part: Sequence[Asked]
    # The initial text.
    initial: str
    # All put or appended texts, sorted.
    pieces: list[str]
    # The position of the operation that wrote each of `pieces`.
    makers: list[int]
    # The length of the longest piece.
    longest: int
    # Positions of the puts.
    puts: set[int]
    # Positions of the appends.
    appends: set[int]
    # For each result the positions of the gets that returned it.
    shown: dict[str, list[int]]
    # The chain of each put, by its position.
    chains: dict[int, Chain] = field(factory=dict)
    # For each append that a get shows: the put of its chain, and the number of makers before it.
    place: dict[int, tuple[int, int]] = field(factory=dict)

    def taken_apart(self, text: str, begin: int = 0) -> list[int] | None:
        """The makers of the pieces of `text` from its character `begin` on; None if the text is not a
        sequence of pieces."""
        found, at = [], begin
        while at < len(text):
            nearest = bisect_right(self.pieces, text[at : at + self.longest]) - 1
            if nearest < 0 or not text.startswith(self.pieces[nearest], at):
                return None
            found.append(self.makers[nearest])
            at += len(self.pieces[nearest])
        return found

    def explains(self, text: str) -> list[int]:
        """All operations that can have contributed to a text."""
        return [op for op in self.taken_apart(text) or () if op != NOBODY]


def decide_key_value(model: KeyValue, part: Sequence[Asked]) -> Decided | None:
    """Decide one key. O(n log n) plus the length of all texts.

    Args:
        model: the model; it gives the initial text.
        part: the operations on one key.

    Returns:
        the answer; None if texts are ambiguous.
    """
    texts = _texts(model.initial, part)
    if texts is None:
        return None
    refused = _chained(texts)
    if refused is not None:
        return refused
    clusters = []
    for chain in texts.chains.values():
        groups = [
            group
            for maker, gets in zip(chain.makers, chain.readers, strict=True)
            for group in ([maker], gets)
        ]
        if chain.makers[0] == NOBODY:
            groups[0] = []
        late = in_turn(part, groups)
        if late is not None:
            return _proof(texts, late, "one had completed before the other, which it depends on, was invoked")
        clusters.append(_cluster(part, groups, chain.makers[0] == NOBODY))
    for op in (*texts.puts, *texts.appends):
        if part[op].known and op not in texts.chains and op not in texts.place:
            clusters.append(ZoneCluster((op,), part[op].complete, part[op].invoke, op, op))
    answer = conflict(clusters, "two texts were current at the same time")
    return _proof(texts, answer.convicting, answer.because) if answer.convicting else answer


def _texts(initial: object, part: Sequence[Asked]) -> Texts | None:
    """The operations by text; None if some value is no text or can be split in two ways."""
    written: list[tuple[str, int]] = []
    puts: set[int] = set()
    appends: set[int] = set()
    shown: dict[str, list[int]] = {}
    for op, asked in enumerate(part):
        call = asked.call
        if call.function != "get":
            written.append((call.argument, op))
            (puts if call.function == "put" else appends).add(op)
        elif asked.known:
            if call.result is None:
                return None
            shown.setdefault(call.result, []).append(op)
    if not isinstance(initial, str):
        return None
    if initial:
        written.append((initial, NOBODY))
    written.sort()
    before = None
    for piece, _ in written:
        if not piece or (before is not None and piece.startswith(before)):
            return None
        before = piece
    longest = max((len(piece) for piece, _ in written), default=0)
    pieces, makers = [piece for piece, _ in written], [op for _, op in written]
    return Texts(part, initial, pieces, makers, longest, puts, appends, shown)


def _chained(texts: Texts) -> Decided | None:
    """Make the chains. Returns the conviction of a text that no operations can have made, or of two texts
    that exclude each other."""
    open_texts: list[
        tuple[str, int, int]
    ] = []  # texts that the next text may extend: their chains, and the number of makers
    for text, gets in sorted(texts.shown.items()):
        while open_texts and not text.startswith(open_texts[-1][0]):
            open_texts.pop()
        begin, root, count = open_texts[-1] if open_texts else ("", NOBODY, 0)
        makers = texts.taken_apart(text, len(begin))
        if makers is None:
            return _unmade(texts, gets[0])
        if not count:
            if texts.initial or (makers and makers[0] in texts.puts):
                if not makers or makers[0] in texts.appends:
                    return _unmade(texts, gets[0])
                root = makers.pop(0)
            if root not in texts.chains:
                texts.chains[root] = Chain([root], [[]], gets[0])
            count = 1
        refused = _continued(texts, root, count, makers, gets)
        if refused is not None:
            return refused
        if text:  # after the empty text, the next piece may also be a put
            open_texts.append((text, root, count + len(makers)))
    return None


def _continued(texts: Texts, root: int, count: int, makers: list[int], gets: list[int]) -> Decided | None:
    """A text that shows this many makers of a chain, followed by these makers."""
    chain = texts.chains[root]
    for number, op in enumerate(makers, start=count):
        if op not in texts.appends:
            return _unmade(texts, gets[0])
        if texts.place.get(op, (root, number)) != (root, number):
            other = texts.chains[texts.place[op][0]].witness
            return _proof(texts, (gets[0], other), "one append happened twice")
        if number == len(chain.makers):
            texts.place[op] = root, number
            chain.makers.append(op)
            chain.readers.append([])
            chain.witness = gets[0]
        elif chain.makers[number] != op:
            return _proof(texts, (gets[0], chain.witness), "the same text was continued in two ways")
    chain.readers[count + len(makers) - 1] += gets
    return None


def _cluster(part: Sequence[Asked], groups: Sequence[Sequence[int]], initial: bool) -> ZoneCluster:
    cluster = ZoneCluster(first=BEFORE_ALL) if initial else ZoneCluster()
    for group in groups:
        for op in group:
            cluster.add(op, part[op])
    return cluster


def _unmade(texts: Texts, get: int) -> Decided:
    return _proof(texts, (get,), "no puts and appends make the text that it shows")


def _proof(texts: Texts, convicting: Iterable[int], because: str) -> Decided:
    """The answer, with the gets that show the position of its appends, and all operations that can explain
    them."""
    witnesses = [texts.chains[texts.place[op][0]].witness for op in convicting if op in texts.place]
    proof = tuple(dict.fromkeys((*convicting, *witnesses)))
    shown = [texts.part[op].call.result for op in proof if texts.part[op].call.function == "get"]
    explaining = [op for text in shown for op in texts.explains(text)]
    return Decided(convicting=proof, scope=tuple(dict.fromkeys((*proof, *explaining))), because=because)

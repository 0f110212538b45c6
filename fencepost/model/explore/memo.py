"""Answers of Python about local values, stored so that compiled code can look them up.

Owns the numbers of values, the numbers of combinations of values, and the places of the answers. Must not
know states, levels or limits.

Each value has one number over all slots (by kind of slot, because a renaming may treat equal values of two
kinds differently). A combination is numbered by a chain of pairs: ((first, second), third) ...
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field
from numba import njit
from numpy.typing import NDArray

from fencepost.model.explore.pairs import MOST_INNER, MOST_NODES, PairTable, find_or_add, inner_key
from fencepost.model.explore.transition_system import Action, Symmetry, Value

UNKNOWN = -1
ASKED = -2
"""Answers: not asked yet; about to be asked."""

Numbers = NDArray[np.int32]
Flags = NDArray[np.bool_]
NO_QUESTION = (1 << 64) - 1
"""A key that no pair has, because there are fewer nodes."""


def grown(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    """The array with room for `size`, doubled; new entries are `fill`."""
    if array.shape[0] >= size:
        return array
    after = np.full((max(size, 2 * array.shape[0]), *array.shape[1:]), fill, array.dtype)
    after[: array.shape[0]] = array
    return after


@define
class Values:
    """The numbers of values."""

    # The kind of each slot.
    kinds: tuple[int, ...]
    # The renamings.
    symmetries: tuple[Symmetry, ...] = ()
    # The value of each number.
    of: list[Value] = field(factory=list)
    # The kind of each number.
    kind_of: list[int] = field(factory=list)
    # (kind, value) -> number.
    numbers: dict[tuple[int, Value], int] = field(factory=dict)
    # For each renaming: the number of the renamed value, by number.
    renamed: Numbers = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.renamed = np.zeros((len(self.symmetries), 1 << 10), np.int32)

    def number(self, slot: int, value: Value) -> int:
        """The number of a value at a slot. The values that it can be renamed to get numbers too."""
        kind = self.kinds[slot]
        known = self.numbers.get((kind, value))
        if known is not None:
            return known
        number = self._add(kind, value)
        for at, symmetry in enumerate(self.symmetries):
            place, after = symmetry.places[slot], symmetry.rename(slot, value)
            self.renamed[at, number] = self.number(place, after)
        return number

    def _add(self, kind: int, value: Value) -> int:
        number = len(self.of)
        assert number < MOST_INNER, "the memory limit comes first"
        self.of.append(value)
        self.kind_of.append(kind)
        self.numbers[kind, value] = number
        if self.symmetries and number >= self.renamed.shape[1]:
            wider = np.zeros((len(self.symmetries), 2 * self.renamed.shape[1]), np.int32)
            wider[:, : self.renamed.shape[1]] = self.renamed
            self.renamed = wider
        return number


@define
class Chains:
    """The combinations of some questions."""

    # Slots that each question reads, and how many.
    reads: Numbers
    arity: Numbers
    # Number of the question among the nodes of chains.
    node: Numbers
    # The pairs of a chain, and their numbers.
    table: PairTable
    # The answer by the number of the combination, UNKNOWN if there is none. Combination 0 is for a question
    # that need not be asked; its answer is 0.
    answer: Numbers

    @classmethod
    def of(cls, questions: Sequence[tuple[int, ...]]) -> "Chains":
        """No answers yet, for questions about these slots."""
        widest = max((len(question) for question in questions), default=1)
        reads = np.zeros((len(questions), widest), np.int32)
        for at, question in enumerate(questions):
            reads[at, : len(question)] = question
        arity = np.array([len(question) for question in questions], np.int32)
        links = np.maximum(arity - 1, 1)
        assert int(links.sum()) < MOST_NODES, "too many rules"
        node = (np.cumsum(links) - links).astype(np.int32)
        chains = cls(reads, arity, node, PairTable.empty(), np.full(1 << 12, UNKNOWN, np.int32))
        find_or_add(chains.table.keys, chains.table.index, chains.table.count, np.uint64(NO_QUESTION))
        chains.answer[0] = 0
        return chains

    def look(self, rows: Numbers, wanted: Flags) -> tuple[Numbers, list[list[int]]]:
        """The combination of each row for each question if `wanted`, otherwise 0; and (combination, row,
        question) of those without an answer, without duplicates."""
        questions = len(self.arity)
        self.table.reserve(len(rows) * int(np.maximum(self.arity - 1, 1).sum()))
        self.answer = grown(self.answer, self.table.keys.size, UNKNOWN)
        found = np.zeros((len(rows), questions), np.int32)
        asked = np.empty((len(rows) * questions, 3), np.int32)
        many = _look_up(
            rows,
            wanted,
            self.reads,
            self.arity,
            self.node,
            self.table.keys,
            self.table.index,
            self.table.count,
            self.answer,
            found,
            asked,
        )
        return found, asked[:many].tolist()

    @property
    def bytes(self) -> int:
        """The memory in bytes."""
        return self.table.bytes + self.answer.nbytes


@njit(cache=True)
def _look_up(
    rows: Any,
    wanted: Any,
    reads: Any,
    arity: Any,
    node: Any,
    keys: Any,
    index: Any,
    count: Any,
    answer: Any,
    found: Any,
    asked: Any,
) -> Any:
    """See `Chains.look`. Returns the number without an answer."""
    many = 0
    for at in range(rows.shape[0]):
        for question in range(arity.size):
            if not wanted[at, question]:
                continue
            number = np.int64(rows[at, reads[question, 0]])
            for place in range(1, max(arity[question], 2)):
                other = rows[at, reads[question, place]] if place < arity[question] else 0
                number = find_or_add(keys, index, count, inner_key(node[question] + place - 1, number, other))
            found[at, question] = number
            if answer[number] == UNKNOWN:
                answer[number] = ASKED
                asked[many, 0] = number
                asked[many, 1] = at
                asked[many, 2] = question
                many += 1
    return many


@define
class Outcomes:
    """The answers of rules. An answer is a range: first[combination], with `Chains.answer` as its length."""

    first: Numbers
    # By outcome.
    actions: list[Action]
    # Numbers of the written values.
    written: Numbers
    # The number of the action's name.
    name: Numbers
    # The violated step invariant, -1 for none.
    broken: Numbers

    @classmethod
    def empty(cls, most_written: int) -> "Outcomes":
        """No answers yet."""
        return cls(
            np.zeros(1 << 12, np.int32),
            [],
            np.zeros((1 << 10, max(1, most_written)), np.int32),
            np.zeros(1 << 10, np.int32),
            np.zeros(1 << 10, np.int32),
        )

    def add(self, action: Action, written: Sequence[int], name: int, broken: int) -> None:
        """Add an outcome.

        Args:
            action: the action.
            written: numbers of the written values.
            name: the number of the action's name.
            broken: the violated step invariant, -1 for none.
        """
        at = len(self.actions)
        self.written = grown(self.written, at + 1)
        self.name, self.broken = grown(self.name, at + 1), grown(self.broken, at + 1)
        self.actions.append(action)
        self.written[at, : len(written)] = written
        self.name[at], self.broken[at] = name, broken

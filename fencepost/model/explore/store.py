"""The visited states of an exploration, numbered in the order of discovery.

Owns rows and the path back. Must not know the meaning of a number in a row.
"""

from typing import Any

import numpy as np
from attrs import define, field
from numba import njit

from fencepost.model.explore.memo import Numbers, grown
from fencepost.model.explore.pairs import MOST_ROOTS, PairTable, insert_row, read_rows, tree_of

NO_STATE = -1
"""The predecessor of an initial state."""


@njit(cache=True)
def _insert_rows(
    rows: Any,
    parents: Any,
    hints: Any,
    tree: Any,
    keys: Any,
    index: Any,
    count: Any,
    root_keys: Any,
    root_index: Any,
    root_count: Any,
    parent: Any,
    hint: Any,
) -> None:
    work = np.empty(rows.shape[1] + tree.shape[0], np.int64)
    for at in range(rows.shape[0]):
        before = root_count[0]
        number = insert_row(rows[at], tree, work, keys, index, count, root_keys, root_index, root_count)
        if number == before:
            parent[number] = parents[at]
            hint[number] = hints[at]


@njit(cache=True)
def _numbers_of(
    rows: Any,
    tree: Any,
    keys: Any,
    index: Any,
    count: Any,
    root_keys: Any,
    root_index: Any,
    root_count: Any,
    numbers: Any,
) -> None:
    work = np.empty(rows.shape[1] + tree.shape[0], np.int64)
    for at in range(rows.shape[0]):
        numbers[at] = insert_row(rows[at], tree, work, keys, index, count, root_keys, root_index, root_count)


@define
class Store:
    """parent: the predecessor, in its explorer's numbers. hint: how the state was reached (an outcome, or the
    parent's worker)."""

    tree: Numbers
    inner: PairTable = field(factory=PairTable.empty)
    roots: PairTable = field(factory=PairTable.empty)
    parent: Numbers = field(factory=lambda: np.zeros(1 << 12, np.int32))
    hint: Numbers = field(factory=lambda: np.zeros(1 << 12, np.int32))

    @classmethod
    def of(cls, slots: int) -> "Store":
        """An empty store for states of this many slots."""
        return cls(tree_of(slots))

    def __len__(self) -> int:
        return len(self.roots)

    def growth(self, more: int) -> int:
        """The additional bytes while room for this many more states is made."""
        return self.inner.growth(more * len(self.tree)) + 2 * self.roots.growth(more)

    def add(self, rows: Numbers, parents: Numbers, hints: Numbers) -> None:
        """Number the rows that are new."""
        more = len(rows)
        assert len(self) + more < MOST_ROOTS, "the limit on states comes first"
        self.inner.reserve(more * len(self.tree))
        self.roots.reserve(more)
        self.parent = grown(self.parent, self.roots.keys.size)
        self.hint = grown(self.hint, self.roots.keys.size)
        _insert_rows(
            rows, parents, hints, self.tree, self.inner.keys, self.inner.index, self.inner.count,
            self.roots.keys, self.roots.index, self.roots.count, self.parent, self.hint,
        )  # fmt: skip

    def add_initial(self, rows: Numbers) -> None:
        """Number initial states."""
        nothing = np.full(len(rows), NO_STATE, np.int32)
        self.add(rows, nothing, nothing)

    def numbers(self, rows: Numbers) -> Numbers:
        """The numbers of rows that were all added before."""
        before, found = len(self), np.empty(len(rows), np.int32)
        inner, roots = self.inner, self.roots
        inner.reserve(len(rows) * len(self.tree))
        roots.reserve(len(rows))
        _numbers_of(
            rows, self.tree, inner.keys, inner.index, inner.count, roots.keys, roots.index, roots.count, found
        )
        assert len(self) == before, "a row was not known"
        return found

    def rows(self, first: int, end: int) -> Numbers:
        """The rows of the states `first` to `end` - 1.

        Args:
            first: the first state.
            end: the state after the last one.

        Returns:
            one row per state.
        """
        rows = np.empty((end - first, len(self.tree) + 1), np.int32)
        read_rows(first, rows, self.tree, self.inner.keys, self.roots.keys)
        return rows

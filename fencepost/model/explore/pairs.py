"""Exact numbers for pairs of numbers, compiled: the storage of the visited states and of the memo of
transitions.

Owns the hash table and the trees on it. Must not know the meaning of a number.

A state is a row of small numbers, one for each slot. Rows are stored as trees of pairs: two neighbours get a
number together, then two of those, up to the root, which has the state's number. Most inner pairs occur in
very many states, so a state costs little more than its root: eight bytes of key and four to eight of index.
Nothing is hashed away: two rows have the same number if and only if they are equal. (Laarman, van de Pol,
Weber: Parallel recursive state compression for free, SPIN 2011.)

A key of the inner table is the node's number in its tree (10 bits) and both children (27 bits each). One of
the root table is both children (32 bits each).
"""

from typing import Any

import numpy as np
from attrs import define
from numba import njit
from numpy.typing import NDArray

INNER_BITS = 27
MOST_INNER = 1 << INNER_BITS
"""Numbers of inner pairs and of values are below this. Their index alone would take half a gigabyte, so the
memory limit is reached first."""
MOST_NODES = 1 << 10
MOST_ROOTS = (1 << 31) - 1
FREE = -1

Keys = NDArray[np.uint64]
Index = NDArray[np.int32]
Numbers = NDArray[np.int32]


@njit(cache=True, inline="always")
def _mix(key: Any) -> Any:
    """The finalizer of splitmix64: every bit of the key affects every bit of the position."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@njit(cache=True)
def find_or_add(keys: Any, index: Any, count: Any, key: Any) -> Any:
    """The number of `key`; a new number if it has none. The caller has reserved room."""
    mask = np.uint64(index.size - 1)
    at = _mix(key) & mask
    while True:
        number = index[at]
        if number == FREE:
            number = count[0]
            keys[number] = key
            index[at] = number
            count[0] = number + 1
            return number
        if keys[number] == key:
            return number
        at = (at + np.uint64(1)) & mask


@njit(cache=True)
def _place_all(keys: Any, index: Any, count: Any) -> None:
    """Fill an empty index with the first `count` keys."""
    mask = np.uint64(index.size - 1)
    for number in range(count):
        at = _mix(keys[number]) & mask
        while index[at] != FREE:
            at = (at + np.uint64(1)) & mask
        index[at] = number


@njit(cache=True, inline="always")
def inner_key(node: Any, left: Any, right: Any) -> Any:
    """The key of a pair at a node of a tree."""
    return (
        (np.uint64(node) << np.uint64(2 * INNER_BITS))
        | (np.uint64(left) << np.uint64(INNER_BITS))
        | np.uint64(right)
    )


@define
class PairTable:
    """keys: by number. index: open addressing, at most half full. count: the number of keys, in an array so
    that compiled code can change it."""

    keys: Keys
    index: Index
    count: NDArray[np.int64]

    @classmethod
    def empty(cls, capacity: int = 1 << 12) -> "PairTable":
        """A table with room for some."""
        return cls(
            np.empty(capacity, np.uint64), np.full(2 * capacity, FREE, np.int32), np.zeros(1, np.int64)
        )

    def __len__(self) -> int:
        return int(self.count[0])

    @property
    def bytes(self) -> int:
        """The memory in bytes."""
        return self.keys.nbytes + self.index.nbytes

    def growth(self, more: int) -> int:
        """The additional bytes during `reserve(more)`, with the old and the new table in memory; 0 if there
        is room."""
        capacity = self._capacity_for(more)
        return 0 if capacity == self.keys.size else capacity * 16

    def _capacity_for(self, more: int) -> int:
        capacity = self.keys.size
        while capacity < len(self) + more:
            capacity *= 2
        return capacity

    def reserve(self, more: int) -> None:
        """Make room for `more` further keys."""
        capacity = self._capacity_for(more)
        if capacity == self.keys.size:
            return
        keys = np.empty(capacity, np.uint64)
        keys[: len(self)] = self.keys[: len(self)]
        self.keys = keys
        self.index = np.full(2 * capacity, FREE, np.int32)
        _place_all(self.keys, self.index, len(self))


def tree_of(slots: int) -> Numbers:
    """The inner nodes of a balanced tree over `slots` leaves, children first: rows of (left, right); leaves
    are 0 .. slots - 1, node i is slots + i.

    The last row is the root.
    """
    assert slots >= 2, "a single value needs no tree"
    nodes: list[tuple[int, int]] = []

    def build(first: int, end: int) -> int:
        if end - first == 1:
            return first
        middle = (first + end + 1) // 2
        left, right = build(first, middle), build(middle, end)
        nodes.append((left, right))
        return slots + len(nodes) - 1

    build(0, slots)
    return np.array(nodes, np.int32)


@njit(cache=True)
def insert_row(
    row: Any,
    tree: Any,
    work: Any,
    keys: Any,
    index: Any,
    count: Any,
    root_keys: Any,
    root_index: Any,
    root_count: Any,
) -> Any:
    """The number of a row of slots; a new number for a new row. work: room for all nodes of the tree."""
    slots, last = row.size, tree.shape[0] - 1
    for slot in range(slots):
        work[slot] = row[slot]
    for node in range(last):
        key = inner_key(node, work[tree[node, 0]], work[tree[node, 1]])
        work[slots + node] = find_or_add(keys, index, count, key)
    key = (np.uint64(work[tree[last, 0]]) << np.uint64(32)) | np.uint64(work[tree[last, 1]])
    return find_or_add(root_keys, root_index, root_count, key)


@njit(cache=True)
def read_row(number: Any, row: Any, tree: Any, work: Any, keys: Any, root_keys: Any) -> None:
    """Copy the row with this number into `row`."""
    slots, last = row.size, tree.shape[0] - 1
    key = root_keys[number]
    work[tree[last, 0]] = np.int64(key >> np.uint64(32))
    work[tree[last, 1]] = np.int64(key & np.uint64(0xFFFFFFFF))
    for node in range(last - 1, -1, -1):
        key = keys[work[slots + node]]
        work[tree[node, 0]] = np.int64((key >> np.uint64(INNER_BITS)) & np.uint64(MOST_INNER - 1))
        work[tree[node, 1]] = np.int64(key & np.uint64(MOST_INNER - 1))
    for slot in range(slots):
        row[slot] = work[slot]


@njit(cache=True)
def read_rows(first: Any, rows: Any, tree: Any, keys: Any, root_keys: Any) -> None:
    """Copy the rows numbered from `first` on into `rows`."""
    work = np.empty(rows.shape[1] + tree.shape[0], np.int64)
    for at in range(rows.shape[0]):
        read_row(first + at, rows[at], tree, work, keys, root_keys)

"""Rows with the same key, found without a sort: the primitive of the rules about content.

Must not know what a key is. A rule about equal keys ("one value at each offset") compares each row with the
first one that has its key. So the rows of a healthy log are looked at once, and only those that differ are
sorted. Offsets, values and appends of a log are numbers without large gaps, so that a table has a place for
each; numbers with gaps are ranked by a sort first.
"""

import numpy as np

from fencepost.checkers.arrow_arrays import Array
from fencepost.checkers.sorting import FEW, GAPS


def _places(keys: Array) -> tuple[Array, int]:
    """A number below a bound for each key, equal for equal keys; and the bound."""
    low, high = int(keys.min()), int(keys.max())
    if high - low < GAPS * len(keys) + FEW:
        return keys - low, high - low + 1
    distinct, places = np.unique(keys, return_inverse=True)
    return places.reshape(-1), len(distinct)


def first_rows(keys: Array) -> Array:
    """For each row the first row with the same key.

    Args:
        keys: of the rows.

    Returns:
        row numbers, not above the row's own.
    """
    rows = np.arange(len(keys))
    if not len(keys):
        return rows
    places, bound = _places(keys)
    first = np.empty(bound, np.int64)
    first[places[::-1]] = rows[::-1]  # of several values for one place the last is kept
    found: Array = first[places]
    return found


def disputed(keys: Array, what: Array, first: Array | None = None) -> Array:
    """The keys of rows that differ.

    Args:
        keys: of the rows.
        what: in which rows of one key may differ.
        first: for each row the first one with the same key, if it is known.

    Returns:
        these keys, sorted.
    """
    first = first_rows(keys) if first is None else first
    return np.unique(keys[what[first] != what])

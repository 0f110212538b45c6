"""Orders and distinct numbers of long columns, in linear time for columns as histories have them.

Owns the algorithms. Must not know what the numbers mean. The answers are those of NumPy's `lexsort` and
`unique`, which compare or hash: in ten million rows they miss the processor's caches at nearly every step,
and each row costs several times what it costs in ten thousand. Columns of histories are mostly ascending, or
a few ascending columns that alternate (logs, processes), or small numbers. So a column that ascends is left
as it is. Otherwise one pass distributes it by its leading 16 bits (NumPy sorts those by radix). Only what is
out of order then is compared.
"""

from collections.abc import Sequence

import numpy as np

from fencepost.checkers.arrow_arrays import Array

DIGIT_BITS = 16
"""NumPy's stable sort of integers of 16 bits is a radix sort."""
SPARE = 4
"""Distinct numbers are found by a table of all numbers between the smallest and the largest one if it has at
most so many entries for each number: about the memory of a sort."""
GAPS = 8
"""A table has up to this many places per row, eight bytes each. More than that is mostly gaps, and a sort
costs less than the memory."""
FEW = 1 << 16
"""A table of this many places is always made: half a megabyte."""
LARGEST_CODE = 1 << 62
"""Packed numbers are below this, so that they fit into 64 bits with room for one more bit."""


def ascends(numbers: Array) -> bool:
    """Whether no number is below the one before."""
    return bool((numbers[1:] >= numbers[:-1]).all())


def stable_order(numbers: Array) -> Array:
    """The indices of these integers in ascending order; equal ones keep their order."""
    if ascends(numbers):
        return np.arange(len(numbers))
    if numbers.dtype.itemsize * 8 <= DIGIT_BITS:
        return np.argsort(numbers, kind="stable")
    low, high = int(numbers.min()), int(numbers.max())
    shift = max(0, (high - low).bit_length() - DIGIT_BITS)
    if high - low >= 1 << 63:  # a difference of two of them would overflow
        return np.argsort(numbers, kind="stable")
    order: Array = np.argsort(((numbers - low) >> shift).astype(np.uint16), kind="stable")
    if not shift:
        return order
    found = numbers[order]
    return order if ascends(found) else order[np.argsort(found, kind="stable")]


def order_by(keys: Sequence[Array]) -> Array:
    """The order by several columns of integers, as `np.lexsort` answers: the last key counts most."""
    order = stable_order(keys[0])
    for key in keys[1:]:
        order = order[stable_order(key[order])]
    return order


def numbered(numbers: Array) -> tuple[Array, Array]:
    """The distinct numbers in ascending order, and the index of each number among them, as `np.unique` with
    `return_inverse` answers."""
    if not len(numbers):
        return numbers, np.zeros(0, np.int64)
    numbers = numbers.astype(np.int64, copy=False)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > SPARE * len(numbers):
        order = stable_order(numbers)
        new = _first_of_each(numbers[order])
        index = np.empty(len(numbers), np.int64)
        index[order] = np.cumsum(new) - 1
        return numbers[order[new]], index
    place = numbers - low
    used = np.zeros(high - low + 1, np.bool_)
    used[place] = True
    found = np.flatnonzero(used)
    if len(found) == len(used):
        return found + low, place
    return found + low, (np.cumsum(used) - 1)[place]


def packed(columns: Sequence[Array]) -> Array:
    """One number for each row of several columns of integers of equal length: equal where the rows are equal,
    and in the order of the rows (the first column counts most). The numbers mean nothing else. Whatever
    64-bit integers the columns hold, the packed ones are from 0 to below LARGEST_CODE: a column of too wide
    a range is replaced by its ranks.
    """
    codes, count = np.zeros(len(columns[0]), np.int64), 1
    if not len(codes):
        return codes
    for column in columns:
        lowest = int(column.min())
        span = int(column.max()) - lowest + 1
        if span == 1:
            continue
        if count * span < LARGEST_CODE:
            codes *= span
            codes += column
            codes -= lowest  # what overflows before this line does not after it
            count *= span
            continue
        (_, ranks), (_, codes) = numbered(column), numbered(codes)
        width = int(ranks.max()) + 1  # neither has more values than there are rows
        codes, count = codes * width + ranks, (int(codes.max()) + 1) * width
    return codes


def heads_of(index: Array, count: int) -> Array:
    """For each of `count` numbers, all of which occur, the first position at which `index` has it."""
    first = np.empty(count, np.int64)
    first[index[::-1]] = np.arange(len(index) - 1, -1, -1)
    return first


def first_of_each(numbers: Array) -> tuple[Array, Array]:
    """The distinct numbers in ascending order, and the index of the first one of each."""
    order = stable_order(numbers)
    first = order[_first_of_each(numbers[order])]
    return numbers[first], first


def _first_of_each(ascending: Array) -> Array:
    new = np.ones(len(ascending), np.bool_)
    new[1:] = ascending[1:] != ascending[:-1]
    return new


def is_among(numbers: Array, others: Array) -> Array:
    """For each number whether it is one of the others.

    Args:
        numbers: integers.
        others: integers.
    """
    if not len(others):
        return np.zeros(len(numbers), np.bool_)
    others = others[stable_order(others)]
    at = np.minimum(np.searchsorted(others, numbers), len(others) - 1)
    found: Array = others[at] == numbers
    return found


def place_of(keys: Array, wanted: Array) -> Array:
    """Where each wanted number is among the keys.

    Args:
        keys: numbers, sorted.
        wanted: numbers.

    Returns:
        the first place of each among the keys; -1 for one that is not there.
    """
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), -1)
    low, high = int(keys[0]), int(keys[-1])
    if high - low < GAPS * (len(keys) + len(wanted)) + FEW:
        table = np.full(high - low + 2, -1)  # the last one is for numbers outside
        table[keys[::-1] - low] = np.arange(len(keys))[::-1]
        found: Array = table[np.where((wanted >= low) & (wanted <= high), wanted - low, -1)]
        return found
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)

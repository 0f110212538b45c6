"""Orders and distinct numbers are those that NumPy answers, for columns of any shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers import sorting

EDGE = np.iinfo(np.int64)
SMALL = st.integers(-3, 3)
FAR = st.one_of(SMALL, st.integers(-(1 << 20), 1 << 40), st.sampled_from((EDGE.min, EDGE.max)))
COLUMNS = st.lists(st.one_of(SMALL, FAR), max_size=30) | st.lists(FAR, max_size=30).map(sorted)


def _column(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.int64)


@given(COLUMNS)
def test_one_column(numbers):
    """Equal numbers keep their order; distinct ones and first ones are those of `np.unique`."""
    column = _column(numbers)
    assert sorting.stable_order(column).tolist() == np.argsort(column, kind="stable").tolist()
    distinct, first, index = np.unique(column, return_index=True, return_inverse=True)
    assert [found.tolist() for found in sorting.numbered(column)] == [distinct.tolist(), index.tolist()]
    assert [found.tolist() for found in sorting.first_of_each(column)] == [distinct.tolist(), first.tolist()]


@given(st.lists(st.tuples(FAR, SMALL, FAR), max_size=30))
def test_packed_rows(rows):
    """Packed numbers are equal where rows are, and in their order, whatever 64-bit integers the rows hold."""
    columns = [_column([row[n] for row in rows]) for n in range(3)]
    codes = sorting.packed(columns)
    assert all(0 <= code < sorting.LARGEST_CODE for code in codes.tolist())
    distinct, index = sorting.numbered(codes)
    assert index.tolist() == [sorted(set(rows)).index(row) for row in rows]
    assert sorting.heads_of(index, len(distinct)).tolist() == [rows.index(row) for row in sorted(set(rows))]


@given(st.lists(st.tuples(st.booleans(), FAR, SMALL), max_size=30))
def test_several_columns(rows):
    """The last column counts most."""
    keys = (
        np.array([row[0] for row in rows], np.bool_),
        *(_column([row[n] for row in rows]) for n in (1, 2)),
    )
    assert sorting.order_by(keys).tolist() == np.lexsort(keys).tolist()


@given(COLUMNS, COLUMNS)
def test_members(numbers, others):
    """Each number is looked up among all others."""
    assert sorting.is_among(_column(numbers), _column(others)).tolist() == [one in others for one in numbers]


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
def test_narrow_columns(kind):
    """The distance of two numbers may not fit into their own type."""
    column = np.array([100, -100, 7, 100, -100], kind)
    assert sorting.stable_order(column).tolist() == [1, 4, 2, 0, 3]
    assert [found.tolist() for found in sorting.numbered(column)] == [[-100, 7, 100], [2, 0, 1, 2, 0]]


def test_columns_of_several_logs():
    """Ascending columns that alternate, far from each other: the leading bits alone put them in order."""
    column = (np.arange(400) % 8) * (1 << 50) + np.arange(400)
    assert sorting.stable_order(column).tolist() == np.argsort(column, kind="stable").tolist()
    shuffled = np.random.default_rng(7).permutation(column)
    assert sorting.stable_order(shuffled).tolist() == np.argsort(shuffled, kind="stable").tolist()

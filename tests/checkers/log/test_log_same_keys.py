"""The primitive of equal keys: a table and a sort give the same rows as a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.log import same_keys
from fencepost.checkers.log.evidence import conflicts
from fencepost.checkers.log.same_keys import disputed, first_rows
from fencepost.checkers.sorting import place_of

LEAST, MOST = -(1 << 63), (1 << 63) - 1
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from((LEAST, LEAST + 1, MOST - 1, MOST, 1 << 40)))
ROWS = st.lists(st.tuples(NUMBERS, st.integers(0, 2)), max_size=12)


@pytest.fixture(params=["table", "sort"], autouse=True, scope="module")
def engine(request):
    """Both ways, also for the numbers that would fit into a table."""
    kept = same_keys.GAPS, same_keys.FEW
    if request.param == "sort":
        same_keys.GAPS, same_keys.FEW = 0, 0
    yield
    same_keys.GAPS, same_keys.FEW = kept


@given(ROWS)
def test_first_rows_and_disputed_keys(rows) -> None:
    """Rule: each row knows the first of its key; a key is disputed if two of its rows differ."""
    keys, what = (np.array([row[n] for row in rows], np.int64) for n in (0, 1))
    first: dict[int, int] = {}
    for number, key in enumerate(keys.tolist()):
        first.setdefault(key, number)
    assert first_rows(keys).tolist() == [first[key] for key in keys.tolist()]
    by_key = {
        key: {w for k, w in zip(keys.tolist(), what.tolist(), strict=True) if k == key} for key in first
    }
    assert disputed(keys, what).tolist() == sorted(key for key, seen in by_key.items() if len(seen) > 1)


@given(st.lists(NUMBERS, max_size=8), st.lists(NUMBERS, max_size=8))
def test_place_of(keys, wanted) -> None:
    """Rule: the first place of a number among sorted ones, or -1."""
    keys = sorted(keys)
    places = place_of(np.array(keys, np.int64), np.array(wanted, np.int64))
    assert places.tolist() == [keys.index(one) if one in keys else -1 for one in wanted]


@given(st.lists(st.tuples(NUMBERS, st.integers(-1, 1), st.integers(0, 2)), max_size=10), st.booleans())
def test_conflicts_are_of_equal_keys(rows, two) -> None:
    """Rule: each pair agrees in its keys and differs; each combination of keys that has such rows has one."""
    columns = [np.array([row[n] for row in rows], np.int64) for n in range(3)]
    keys = tuple(columns[: 1 + two])
    of = [tuple(int(key[i]) for key in keys) for i in range(len(rows))]
    seen: dict[tuple, set[int]] = {}
    for key, row in zip(of, rows, strict=True):
        seen.setdefault(key, set()).add(row[2])
    found = list(conflicts(keys, columns[2]))
    assert all(of[i] == of[j] and rows[i][2] != rows[j][2] for i, j in found)
    assert [of[i] for i, _ in found] == sorted(of[i] for i, _ in found)
    assert {of[i] for i, _ in found} == {key for key, what in seen.items() if len(what) > 1}

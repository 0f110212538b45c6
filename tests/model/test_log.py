"""model/log.py: the sequential specification of a partition's log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model import log

VALUES = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple)


def test_append_answers_with_the_log_end() -> None:
    """Rule: the base offset of an append is the log end before it."""
    assert log.step((7, 8), log.Append((9,)), 2) == (7, 8, 9)
    assert log.step((7, 8), log.Append((9,)), 1) is None
    assert log.step((7, 8), log.Append(()), 2) is None


@pytest.mark.parametrize(
    ("page", "legal"),
    [
        (log.Page((8, 9), 3), True),
        (log.Page((8,), 3), True),
        (log.Page((), 3), True),
        (log.Page((8, 9)), True),
        (log.Page((9,), 3), False),
        (log.Page((8, 9, 1), 3), False),
        (log.Page((8,), 2), False),
    ],
)
def test_poll_returns_what_stands_there(page: log.Page, legal: bool) -> None:
    """Rule: a poll returns contiguous records from its offset, perhaps fewer than there are, and its end is
    exact."""
    assert (log.step((7, 8, 9), log.Poll(1), page) is not None) is legal


def test_a_poll_beyond_the_end_is_empty() -> None:
    """Rule: nothing is read where nothing stands, nor below offset 0."""
    assert log.step((7,), log.Poll(5), log.Page((), 1)) == (7,)
    assert log.step((7,), log.Poll(-1), log.Page((7,))) is None


@given(st.lists(VALUES, max_size=5))
def test_list_offsets_counts_the_records(batches: list[tuple[int, ...]]) -> None:
    """Rule: the end offset is the number of records appended."""
    state = log.init()
    for batch in batches:
        after = log.step(state, log.Append(batch), len(state))
        assert after is not None
        state = after
    assert log.step(state, log.ListOffsets(), sum(map(len, batches))) == state
    assert log.step(state, log.ListOffsets(), len(state) + 1) is None


def test_operations_describe_themselves() -> None:
    """Rule: a finding can name an operation in one clause."""
    assert log.describe(log.Append((3, 4)), 0) == "append [3, 4] at offset 0"
    assert log.describe(log.Poll(1), log.Page((4,), 2)) == "poll from 1: [4], end 2"
    assert log.describe(log.ListOffsets(), 2) == "list offsets: the end is 2"

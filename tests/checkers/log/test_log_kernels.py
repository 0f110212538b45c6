"""The log judge's kernels by themselves, each against what it says it does, done the long way round."""

from itertools import product
from random import Random

import numpy as np
import pytest

from fencepost.checkers.log.appends_and_reads import _group_order
from fencepost.checkers.log.bounds import _worst, clearing
from fencepost.checkers.log.holes import Holes, _counts_suffice, _deadlines, _parted, _search
from fencepost.checkers.log.parts import gather
from fencepost.checkers.log.session import regressions

SEEDS = 150


def numbers(values) -> np.ndarray:
    return np.array(list(values), np.int64)


def test_the_widest_contradictions() -> None:
    """Rule: of one clock and of two, the pair with the widest gap is found, and only contradictions."""
    met = [0, 0]
    for n in range(3 * SEEDS):
        random = Random(f"worst {n}")
        lows, highs = (
            sorted(
                (random.randint(0, 4), random.randint(0, 9), random.randint(0, 2))
                for _ in range(random.randint(1, 5))
            )
            for _ in range(2)
        )
        columns = [numbers(column) for rows in (lows, highs) for column in zip(*rows, strict=True)]
        found = _worst(*columns, 3)
        for same, (low, high) in ((True, found[:2]), (False, found[2:])):
            gaps = [a[1] - b[1] for a, b in product(lows, highs) if a[0] <= b[0] and (a[2] == b[2]) is same]
            widest = max(gaps, default=0)
            assert (low >= 0) == (widest > 0) == (high >= 0)
            if low >= 0:
                a, b = lows[low], highs[high]
                assert a[0] <= b[0] and (a[2] == b[2]) is same and a[1] - b[1] == widest
                met[same] += 1
    assert min(met) > 20
    assert [clearing(low, high) for low, high in ((5, 4), (6, 4), (7, 4))] == [1, 1, 2]


def test_what_one_process_saw_before() -> None:
    """Rule: for each read an earlier one of its key with the highest value, if that is higher; overlapping
    reads of one process are in no order."""
    for n in range(SEEDS):
        random = Random(f"regressions {n}")
        rows = [
            (
                random.randint(0, 2),
                at := random.randint(0, 6),
                at + random.randint(0, 3),
                random.randint(0, 4),
            )
            for _ in range(random.randint(0, 8))
        ]
        for concurrent in (False, True):
            key, invoke, completion, value = (numbers(row[i] for row in rows) for i in range(4))
            found = regressions(key.reshape(1, -1), invoke, completion, value, np.full(len(rows), concurrent))
            for i, (k, began, ended, seen) in enumerate(rows):
                earlier = [
                    other[3]
                    for j, other in enumerate(rows)
                    if other[0] == k
                    and (other[2] < began if concurrent else (other[1], other[2], j) < (began, ended, i))
                ]
                highest = max(earlier, default=-1)
                assert (found[i] >= 0) == (highest > seen)
                assert found[i] < 0 or (rows[found[i]][3] == highest and rows[found[i]][0] == k)


def test_orders_of_groups() -> None:
    """Rule: groups stand together, and say where they begin."""
    for groups in ([], [0, 0, 1, 2], [2, 0, 2, 1, 0], [1, 0]):
        order, first = _group_order(numbers(groups), 4)
        assert [groups[i] for i in np.arange(len(groups))[order]] == sorted(groups)
        assert first.tolist() == [sum(g < at for g in groups) for at in range(5)]


def test_slices_one_after_another() -> None:
    """Rule: rows that follow each other are one slice, others are gathered."""
    start = numbers((0, 2, 2, 5, 6))
    for rows in ([], [0], [1], [0, 1, 2], [2, 3], [0, 2], [0, 3], [3, 0], [2, 2]):
        starts, flat = gather(start, numbers(rows))
        expected = [position for row in rows for position in range(start[row], start[row + 1])]
        assert np.arange(6)[flat].tolist() == expected
        assert np.diff(starts).tolist() == [start[row + 1] - start[row] for row in rows]


def holes(
    lengths: list[int], sizes: list[int], *, joined: list[bool] | None = None, open_ended: bool = False
) -> Holes:
    return Holes(
        start=np.cumsum([0, *lengths])[:-1],
        length=numbers(lengths),
        joined=np.array(joined or [False] * len(lengths)),
        open_ended=open_ended,
        size=numbers(sizes),
        invoke=numbers([0] * len(sizes)),
        clock=numbers([0] * len(sizes)),
    )


FITS = [
    ([3], [2, 1], [0, 0], {}, True),
    ([3], [2, 2], [0, 0], {}, False),
    ([2, 2], [2, 2], [0, 1], {}, True),
    ([2, 2], [2, 2], [1, 1], {}, False),
    ([2, 1], [3], [0], {}, False),
    ([2, 1], [3], [0], {"joined": [False, True]}, True),
    ([2, 2], [3], [0], {"joined": [False, True]}, False),
    ([2, 1], [4], [0], {"joined": [False, True]}, False),
    ([2, 1], [4], [0], {"joined": [False, True], "open_ended": True}, True),
    ([2, 1], [4, 1], [0, 0], {"open_ended": True}, False),
    ([2, 1], [2, 4], [0, 0], {"open_ended": True}, True),
    ([4, 3], [3, 3, 1], [0, 0, 0], {}, True),
    ([4, 3], [3, 3, 1], [0, 0, 1], {}, False),
    ([1, 1, 1], [3], [0], {"joined": [False, True, True]}, True),
]


@pytest.mark.parametrize(("lengths", "sizes", "first", "more", "fits"), FITS)
def test_batches_fit_into_holes(lengths, sizes, first, more, fits) -> None:
    """Rule: each run is filled by whole batches that reach it; across a part only where runs are joined,
    beyond the end only where it is open."""
    assert _search(holes(lengths, sizes, **more), numbers(first)) is fits


def test_counts_are_necessary() -> None:
    """Rule: up to each run there are as many records of candidates as holes."""
    for sizes, first, enough in (
        ([2, 2], [0, 1], True),
        ([2, 1], [0, 1], False),
        ([4], [1], False),
        ([4], [0], True),
        ([2, 2, 9], [0, 1, 2], True),
    ):
        assert _counts_suffice(holes([2, 2], sizes), numbers(first)) is enough


def test_runs_and_deadlines() -> None:
    """Rule: a run is cut at what stands inside it, not at its ends; a deadline is the earliest bound at or
    above an offset."""
    start, stop = _parted(numbers((0, 6)), numbers((4, 9)), numbers((-1, 0, 2, 2, 4, 5, 6, 8, 9, 12)))
    assert (start.tolist(), stop.tolist()) == ([0, 2, 6, 8], [2, 4, 8, 9])
    assert [part.tolist() for part in _parted(numbers(()), numbers(()), numbers((1,)))] == [[], []]
    index, time = numbers((3, 1, 3, 5)), numbers((7, 2, 4, 9))
    assert _deadlines(index, time, numbers((0, 1, 2, 3, 4, 5, 6))).tolist() == [
        2,
        2,
        4,
        4,
        9,
        9,
        np.iinfo(np.int64).max,
    ]

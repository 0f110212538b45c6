"""The log judge's kernels by themselves, each against what it says it does, done the long way round."""

from itertools import product
from random import Random

import numpy as np
import pytest

from fencepost.checkers.log.appends_and_reads import _group_order, _ranks
from fencepost.checkers.log.bounds import _worst, clearing
from fencepost.checkers.log.holes import Holes, _counts_suffice, _deadlines, _parted, _search
from fencepost.checkers.log.parts import gather
from fencepost.checkers.log.screen.kernels import (
    ACK,
    ENDED,
    EPOCH,
    INVOKE,
    LONG_AGO,
    SHOWN,
    VALUE,
    Slots,
    batch_torn,
    chain_breaks,
    clear,
    epochs_regress,
    find_hashed,
    find_sorted,
    hash_values,
    holes_unfilled,
    known_size,
)
from fencepost.checkers.log.screen.special import BLOCK, _block_maxima, _falls, _latest
from fencepost.checkers.log.session import regressions
from fencepost.checkers.operation_columns import NEVER

SEEDS = 150


def numbers(values) -> np.ndarray:
    return np.array(list(values), np.int64)


def empty(size: int) -> Slots:
    slots = Slots(np.ones((size, 6), np.int64), np.ones(size, np.bool_), np.full(1, -1, np.int64))
    clear(slots, size)
    return slots


def random_slots(random: Random) -> tuple[Slots, int]:
    """A few offsets of which nothing, or much, is known; and how many."""
    size = random.randint(1, 6)
    slots = empty(size)
    for k in range(size):
        for column in (INVOKE, ACK, SHOWN, ENDED):
            if random.random() < 0.4:
                slots.slot[k, column] = random.randint(0, 6)
        if random.random() < 0.5:
            slots.slot[k, EPOCH] = random.randint(0, 4)
        slots.joined[k] = k > 0 and random.random() < 0.3
    return slots, size


def test_offsets_are_emptied() -> None:
    """Rule: nothing is left of the log before; what lies behind stays."""
    slots = Slots(np.ones((3, 6), np.int64), np.ones(3, np.bool_), np.full(1, -1, np.int64))
    clear(slots, 2)
    assert slots.slot[1, [VALUE, INVOKE, ACK, SHOWN, ENDED, EPOCH]].tolist() == [
        0,
        NEVER,
        NEVER,
        NEVER,
        LONG_AGO,
        -1,
    ]
    assert slots.joined.tolist() == [False, False, True] and slots.slot[2].tolist() == [1] * 6


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_breaks_where_two_bounds_contradict(seed: int) -> None:
    """Rule: a lower bound at or below an offset above an upper one there; who saw one record of a batch saw
    all before it in the batch's slots."""
    broken = 0
    for n in range(SEEDS):
        slots, size = random_slots(Random(f"chain {seed} {n}"))
        shown = slots.slot[:, SHOWN].tolist()
        for k in range(1, size):
            shown[k] = min(shown[k], shown[k - 1]) if slots.joined[k] else shown[k]
        lower = [
            max(
                [-1]
                + [
                    int(slots.slot[i, column])
                    for i in range(k + 1)
                    for column, none in ((INVOKE, NEVER), (ENDED, LONG_AGO))
                    if slots.slot[i, column] != none
                ]
            )
            for k in range(size)
        ]
        expected = any(lower[k] > min(int(slots.slot[k, ACK]), shown[k]) for k in range(size))
        assert chain_breaks(slots, size) is expected
        broken += expected
    assert 10 < broken < SEEDS - 10


def test_ends_inside_batches_and_epochs_that_fall() -> None:
    """Rule: an end stands between batches; epochs do not decrease, unknown ones aside; the log reaches to its
    last record or claimed end."""
    for n in range(SEEDS):
        slots, size = random_slots(Random(f"torn {n}"))
        ends, filled = (
            [k for k in range(size) if slots.slot[k, column] != none]
            for column, none in ((ENDED, LONG_AGO), (INVOKE, NEVER))
        )
        assert batch_torn(slots, size) == any(slots.joined[k] for k in ends)
        epochs = [int(epoch) for epoch in slots.slot[:, EPOCH] if epoch >= 0]
        assert epochs_regress(slots, size) is (epochs != sorted(epochs))
        assert known_size(slots, size) == max([0, *ends, *(k + 1 for k in filled)])


def test_holes_need_appends_in_time() -> None:
    """Rule: to each hole belongs an append of its own, invoked no later than anything that shows the log
    longer."""
    short = 0
    for n in range(SEEDS):
        random = Random(f"holes {n}")
        slots, size = random_slots(random)
        candidates = sorted(random.randint(0, 7) for _ in range(random.randint(0, 4)))
        for timed in (True, False):
            holes = [k for k in range(size) if slots.slot[k, INVOKE] == NEVER]
            ends = [
                min(int(slots.slot[i, column]) for i in range(k, size) for column in (ACK, SHOWN))
                for k in holes
            ]
            deadlines = sorted(ends) if timed else [NEVER] * len(holes)
            # the earliest deadline takes the earliest append
            expected = len(candidates) < len(holes) or any(
                a > d for a, d in zip(candidates, deadlines, strict=False)
            )
            assert holes_unfilled(slots, size, numbers(candidates), timed) is expected
            short += expected
    assert 20 < short < 2 * SEEDS - 20


def test_values_are_found() -> None:
    """Rule: sorted or hashed, each value is found where it stands within the slice, and nothing else is."""
    for n in range(40):
        random = Random(f"values {n}")
        values = [
            random.randint(-(2**62), 2**62) if n % 2 else random.randint(0, 60)
            for _ in range(random.randint(0, 40))
        ]
        begin = random.randint(0, len(values))
        stop = random.randint(begin, len(values))
        asked = [*values, -1, 7, 61, 2**61]
        sorted_ = numbers(sorted(set(values)))
        low, high = min(begin, len(sorted_)), min(stop, len(sorted_))
        table, repeated = hash_values(numbers(values), begin, stop)
        assert repeated is (len(set(values[begin:stop])) < stop - begin)
        assert len(table) >= max(16, 2 * (stop - begin)) and (len(table) & (len(table) - 1)) == 0
        for value in asked:
            found = find_sorted(sorted_, low, high, value)
            inside = value in sorted_[low:high].tolist()
            assert (found >= 0) is inside and (
                not inside or (low <= found < high and sorted_[found] == value)
            )
            hashed = find_hashed(table, numbers(values), np.int64(value))
            inside = value in values[begin:stop]
            assert (hashed >= 0) is inside and (
                not inside or (begin <= hashed < stop and values[hashed] == value)
            )


def test_the_latest_excuse_of_a_stretch() -> None:
    """Rule: whole blocks and single offsets together give the maximum, whatever the ends."""
    for n in range(60):
        random = Random(f"blocks {n}")
        since = numbers(
            random.randint(0, 1000)
            for _ in range(random.choice((1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 230)))
        )
        latest = _block_maxima(since)
        begin = random.choice((-2, 0, 1, BLOCK - 1, BLOCK, random.randint(0, len(since))))
        for stop in {len(since), random.randint(0, len(since)), BLOCK, 2 * BLOCK, BLOCK + 1}:
            if stop <= len(since):
                part = since[max(begin, 0) : stop]
                assert _latest(since, latest, begin, stop) == (part.max() if len(part) else LONG_AGO)


def test_bounds_that_fall() -> None:
    """Rule: no lower bound so far is above an upper one."""
    for n in range(SEEDS):
        random = Random(f"falls {n}")
        size = random.randint(0, 5)
        lower, upper = ([random.randint(0, 6) for _ in range(size)] for _ in range(2))
        assert _falls(numbers(lower), numbers(upper)) is any(
            lower[i] > upper[k] for k in range(size) for i in range(k + 1)
        )


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


def test_ranks_and_orders() -> None:
    """Rule: dense, sparse or negative, codes are numbered in their order; groups stand together, and say
    where they begin."""
    for codes in (
        [],
        [3, 1, 3, 0],
        [-1, 5, -1],
        [10**12, 5, 10**12],
        [1028 + 4, 0],
        [1024 + 9, 0],
        list(range(5)),
    ):
        distinct, rank = _ranks(numbers(codes))
        assert distinct.tolist() == sorted(set(codes))
        assert [sorted(set(codes)).index(code) for code in codes] == rank.tolist()
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

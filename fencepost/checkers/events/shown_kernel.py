"""HW-MONO over columns: may a log end that a client was shown have gone back?

Owns one pass over the ends of each trace. It suspects too much if a leader took over again or if clocks err;
the plain code decides whether that excuses the regression.
"""

from fencepost.checkers.compiled import compiled, compiled_within
from fencepost.checkers.operation_columns import Array

MOST_TERMS = 512
"""The most terms (partitions times leader epochs) of one trace. A trace with more is suspicious."""
MOST_SHIFTS = 64
"""Bound on the sorting steps per end: a trace that is further out of order than this on average is
suspicious."""


ALLOWED_KEY, ALLOWED_START, ALLOWED_END = range(3)
"""Columns of `allowed`: a partition, and the offsets whose loss is allowed."""


@compiled_within
def end_of_loss(begins: Array, allowed: Array, trace: int, key: int, offset: int) -> int:
    """The first offset from `offset` on whose loss is not allowed."""
    for k in range(begins[trace], begins[trace + 1]):
        one = allowed[k]
        if one[ALLOWED_KEY] == key and one[ALLOWED_START] <= offset < one[ALLOWED_END]:
            offset = one[ALLOWED_END]
    return offset


@compiled_within
def put_in_order(order: Array, first: int, last: int, times: Array) -> bool:
    """Sort order[first:last] by time. Rows are almost sorted, so insertion sort is fast. Returns False if
    they are not."""
    left = MOST_SHIFTS * (last - first)
    for k in range(first, last):
        order[k] = k
        at = k
        while at > first and times[order[at - 1]] > times[k]:
            order[at] = order[at - 1]
            at -= 1
            left -= 1
        order[at] = k
        if left < 0:
            return False
    return True


@compiled_within
def note(terms: Array, known: int, key: int, epoch: int, end: int) -> int:
    """Note an end that was shown. Returns the new number of terms. terms: (key, leader epoch, highest
    end)."""
    for k in range(known):
        if terms[k, 0] == key and terms[k, 1] == epoch:
            terms[k, 2] = max(terms[k, 2], end)
            return known
    if known < MOST_TERMS:
        terms[known, 0] = key
        terms[known, 1] = epoch
        terms[known, 2] = end
    return known + 1


@compiled_within
def above(terms: Array, known: int, key: int, epoch: int, end: int, listed: bool) -> bool:
    """Whether a higher end than `end` was shown before: in this leader epoch, or (to ListOffsets) in a lower
    one."""
    for k in range(known):
        if terms[k, 0] == key and terms[k, 2] > end:
            term = terms[k, 1]
            if term == epoch or (listed and term < epoch):
                return True
    return False


@compiled
def screen_shown(
    start: Array,
    invoke: Array,
    completion: Array,
    key: Array,
    epoch: Array,
    end: Array,
    listed: Array,
    begins: Array,
    allowed: Array,
    orders: Array,
    terms: Array,
    suspicious: Array,
) -> None:
    """Mark the traces in which an end may have gone back; those of trace t stand from start[t] to start[t +
    1]. begins, allowed: the loss that is allowed, that of trace t from begins[t] on. orders, terms: room."""
    by_invoke, by_completion = orders[0], orders[1]
    for trace in range(len(start) - 1):
        first, last = start[trace], start[trace + 1]
        if suspicious[trace]:
            continue
        if not (
            put_in_order(by_invoke, first, last, invoke)
            and put_in_order(by_completion, first, last, completion)
        ):
            suspicious[trace] = True
            continue
        known, noted = 0, first
        for k in range(first, last):
            later = by_invoke[k]
            while noted < last and completion[by_completion[noted]] < invoke[later]:
                one = by_completion[noted]
                known = note(terms, known, key[one], epoch[one], end[one])
                noted += 1
            back = end_of_loss(begins, allowed, trace, key[later], end[later])
            if known > MOST_TERMS or above(terms, known, key[later], epoch[later], back, listed[later]):
                suspicious[trace] = True
                break

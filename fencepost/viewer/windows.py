"""The windows that are tried, the largest first, until a page's data are small enough.

Owns the position of a window around the proof. Must not know what a page shows of it.
"""

from collections.abc import Iterator, Sequence

from fencepost.viewer.tracks import Window

FIRST_SHRINK, SHRINK = 40_000, 0.7
"""Moments of the largest window that is tried, and by what factor the next one is smaller."""
SMALLEST_WINDOW = 200
"""Moments; a window this small is kept whatever its size, so that a page always shows something."""


def windows(count: int, targets: Sequence[int]) -> Iterator[Window]:
    """Windows to try, each smaller than the one before. They hold the targets as long as these fit, with
    twice as much before them as after, because causes come first; then the last target.

    Parameters: count: of moments. targets: steps, ascending.
    """
    yield Window(0, count)
    size = min(count, FIRST_SHRINK)
    while size > SMALLEST_WINDOW:
        size = max(int(size * SHRINK), SMALLEST_WINDOW)
        first, last = (targets[0], targets[-1]) if targets else (count - 1, count - 1)
        spare = size - (last - first + 1)
        begin = first - spare * 2 // 3 if spare >= 0 else last + 1 - size * 9 // 10
        begin = max(min(begin, count - size), 0)
        yield Window(begin, begin + size)

"""A fact that changes from step to step, and the window that a page holds of it.

Owns: the value of a fact at a step, how facts are cut to a window, and which windows are tried, the largest
first, until a page's data are small enough. Must not know which facts there are.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from attrs import define, field, frozen

FIRST_SHRINK, SHRINK = 40_000, 0.7
"""Moments of the largest window that is tried, and by what factor the next one is smaller."""
SMALLEST_WINDOW = 200
"""Moments; a window this small is kept whatever its size, so that a page always shows something."""
Value = Any
"""What JSON can hold: a number, a text, None, or a list or an object of them."""
Key = TypeVar("Key", bound=Hashable)


@frozen
class Window:
    """The steps [first, end) of a trace that a page holds."""

    first: int
    end: int

    def inside(self, step: int) -> int:
        """A step as the page counts it: -1 for what happened before the window, its length for what happened
        after."""
        return min(max(step, self.first - 1), self.end) - self.first

    def holds(self, step: int) -> bool:
        """Whether the step is in the window."""
        return self.first <= step < self.end


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


@define
class Track:
    """steps: ascending, where the fact changed. values: what it became there. Before the first step the fact
    is not known."""

    steps: list[int] = field(factory=list)
    values: list[Value] = field(factory=list)

    def set(self, step: int, value: Value) -> None:
        """The fact has this value from `step` on. Steps must not descend; the last value of a step counts."""
        assert not self.steps or step >= self.steps[-1], f"step {step} comes after {self.steps[-1]}"
        if self.values and self.values[-1] == value:
            return
        if self.steps and self.steps[-1] == step:
            self.values[-1] = value
            return
        self.steps.append(step)
        self.values.append(value)

    @property
    def last(self) -> Value:
        """The value now; None if there is none."""
        return self.values[-1] if self.values else None

    def within(self, window: Window) -> dict[str, list[Any]] | None:
        """What a page needs: the value that holds as the window begins, and the changes inside; None if it is
        never known there."""
        steps: list[int] = []
        values: list[Value] = []
        for step, value in zip(self.steps, self.values, strict=True):
            if step >= window.end:
                break
            if step <= window.first:
                steps, values = [-1 if step < window.first else 0], [value]
            else:
                steps.append(step - window.first)
                values.append(value)
        return {"steps": steps, "values": values} if steps else None


@define
class Tracks(Generic[Key]):
    """Tracks by what they are about."""

    by_key: dict[Key, Track] = field(factory=dict)

    def set(self, key: Key, step: int, value: Value) -> None:
        """`Track.set` for the track of `key`. step: of the change; value: from then on."""
        self.by_key.setdefault(key, Track()).set(step, value)

    def last(self, key: Key) -> Value:
        """The value now; None if there is none."""
        track = self.by_key.get(key)
        return track.last if track is not None else None

    def within(self, window: Window, key: Key) -> dict[str, list[Any]] | None:
        """`Track.within` for the track of `key`; None if it was never set. window: the steps that are
        shown."""
        track = self.by_key.get(key)
        return track.within(window) if track is not None else None

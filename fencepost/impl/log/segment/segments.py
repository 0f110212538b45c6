"""The segments of a log in memory, in order.

Owns which segment holds an offset. Must not know the content of a segment.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from attrs import define

from fencepost.impl.log.segment.segment import Segment


@define(eq=False)
class SegmentList:
    """all: ascending by base offset, never empty."""

    all: list[Segment]

    def __len__(self) -> int:
        return len(self.all)

    @property
    def first(self) -> Segment:
        """The oldest one."""
        return self.all[0]

    @property
    def active(self) -> Segment:
        """The last segment, which is appended to."""
        return self.all[-1]

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """The segment that holds `offset` (the first one if `offset` is before all) and the later ones."""
        start = max(0, bisect_right(self.all, offset, key=lambda segment: segment.base_offset) - 1)
        return iter(self.all[start:])

    def add(self, segment: Segment) -> None:
        """Add a segment at the end."""
        assert segment.base_offset > self.active.base_offset, (segment.base_offset, self.active.base_offset)
        self.all.append(segment)

    def remove(self, segment: Segment) -> None:
        """Remove a segment from the list."""
        self.all.remove(segment)

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace several neighbouring segments by one.

        Args:
            old: the segments to remove from the list.
            new: the segment that takes their place.
        """
        start = self.all.index(old[0])
        assert self.all[start : start + len(old)] == list(old), "neighbours"
        self.all[start : start + len(old)] = [new]

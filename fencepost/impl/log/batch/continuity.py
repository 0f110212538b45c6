"""Which offset a batch may begin with, after the one before it.

Owns the only check that the base offset of a batch gets: it stands outside the checksum, so that a broker can
stamp it. Must not know files.
"""

from attrs import define

from fencepost.impl.log.batch.batch_file import Frame


class DiscontinuityError(Exception):
    """A batch that does not continue the one before: its offset is not under the checksum. position: where
    the file must end."""

    def __init__(self, position: int) -> None:
        self.position = position
        super().__init__(position)


@define
class Continuity:
    """Which offset the next batch may begin with. expected: exactly this one; None where there may be gaps.
    floor: at least this one. jumped: (floor, position) of the last batch before which there was a gap: if the
    next one goes back behind the gap, it was the offset of that one that rotted."""

    expected: int | None
    floor: int
    jumped: tuple[int, int] | None = None

    def follow(self, batch: Frame, position: int) -> None:
        """The next batch, which begins at this byte of the file. Raises DiscontinuityError."""
        base = batch.base_offset
        if self.expected is not None and base != self.expected:
            raise DiscontinuityError(position)
        if base < self.floor:
            back = self.jumped is not None and base >= self.jumped[0]
            raise DiscontinuityError(self.jumped[1] if back and self.jumped else position)
        self.jumped = (self.floor, position) if base > self.floor else None
        self.floor = batch.last_offset + 1
        if self.expected is not None:
            self.expected = self.floor

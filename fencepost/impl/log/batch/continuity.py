"""Valid base offsets of a batch, after the batch before it.

Owns the only check of a batch's base offset. The checksum does not cover that field, so that a broker can set
it. Must not know files.
"""

from attrs import define

from fencepost.impl.log.batch.batch_file import Frame


class DiscontinuityError(Exception):
    """A batch that does not continue the one before; the checksum does not cover its base offset. position:
    where the file must end."""

    def __init__(self, position: int) -> None:
        self.position = position
        super().__init__(position)


@define
class Continuity:
    """The valid base offsets of the next batch.

    Attributes:
        expected: exactly this one; None if gaps are allowed.
        floor: at least this one.
        jumped: (floor, position) of the last batch with a gap before it. If the next batch is below the gap,
            the offset of that batch was damaged.
    """

    expected: int | None
    floor: int
    jumped: tuple[int, int] | None = None

    def follow(self, batch: Frame, position: int) -> None:
        """Accept the next `batch`, which begins at the byte `position` of the file. Raises
        DiscontinuityError."""
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

"""The syncs of one file: what a process asked for, and when the disk did it.

Owns these two facts for the simulated and the mounted disk. Must not know content or faults.
"""

from attrs import define

NEVER = -1


@define(eq=False)
class Syncs:
    """The syncs that a process called for one file. The kernel's own write-back is none."""

    # Bytes at the beginning that a call covered, whether the disk obeyed, lied or failed. At most the size.
    asked: int = 0
    # Moments of the disk (Names.moment) of the last sync that made new content durable, and the one before
    # it; NEVER: there was none.
    last: int = NEVER
    before_last: int = NEVER

    def called(self, size: int) -> None:
        """A process called for a sync of `size` bytes, which is the whole file."""
        self.asked = size

    def obeyed(self, moment: int) -> None:
        """The disk made new content durable at this `moment`."""
        self.before_last, self.last = self.last, moment

    def changed(self, position: int) -> None:
        """A process wrote or cut at this `position`: what follows it was not asked for."""
        self.asked = min(self.asked, position)

    def settled(self, size: int) -> None:
        """After a power loss: nothing of the `size` bytes that are left is only in memory."""
        self.asked = size

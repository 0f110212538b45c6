"""The disks of an embedded cluster, which are simulated: what systems.system.FaultyDisks asks for.

Owns the translation to the simulated world. Must not know what a disk keeps (sim/disk.py).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from fencepost.sim.disk_faults import DiskCall
from fencepost.systems.system import FaultyDisks, PowerLost

if TYPE_CHECKING:
    from fencepost.sim.world import World

MICROSECONDS = 1_000
"""In a millisecond."""


@frozen(kw_only=True)
class EmbeddedDisks(FaultyDisks):
    """The disks of all brokers. A simulated disk lies as a whole, and fails in one call."""

    world: "World"
    # Calls something in the thread of the world.
    do: Callable[..., Any]
    brokers: tuple[int, ...]
    # Grows with each power loss.
    lost: Sequence[PowerLost]

    def lie(self, broker: int, below: str = "") -> None:
        """Syncs of a broker return and make nothing durable. below: of no account: of the whole disk."""
        self.do(self.world.lie_about_syncs, broker)

    def fail(
        self, broker: int, call: DiskCall, *, nth: int = 1, times: int | None = 1, below: str = ""
    ) -> None:
        """EIO for the `nth` call from now. broker: of the disk; call: the kind; times, below: of no
        account."""
        self.do(self.world.fail_disk, broker, call, nth)

    def fill(self, broker: int, room_bytes: int = 0) -> None:
        """The disk of a broker is full once room_bytes more are written."""
        self.do(self.world.fill_disk, broker, room_bytes)

    def slow(self, broker: int, milliseconds: int) -> None:
        """Each sync of a broker takes longer by so many milliseconds."""
        self.do(self.world.slow_syncs, broker, milliseconds * MICROSECONDS)

    def write_back(self) -> None:
        """Nothing: the reference brokers sync the folders that they make."""

    def heal(self, broker: int | None = None) -> None:
        """End the faults of one disk or of all."""
        for each in self.brokers if broker is None else (broker,):
            self.do(self.world.heal_disk, each)

    def power_losses(self) -> Sequence[PowerLost]:
        """Every power loss so far."""
        return tuple(self.lost)

"""The content of one file of a simulated disk: as a process sees it, and its durable part.

Owns the unsynced writes of a file and their fate. Must not know names, costs, or which fault happened.
sim/disk.py has the rules.
"""

from collections.abc import Sequence

from attrs import Factory, define, frozen

from fencepost.sim.disk_syncs import Syncs


@frozen
class LostWrite:
    """An append of this many bytes that a failed fsync lost. Processes still read it from the page cache; no
    later fsync writes it."""

    size: int


Write = bytes | int | LostWrite
"""The bytes of an append, the new size of a truncation, or a lost append."""


@define(eq=False)
class FileContent:
    """A file without its name."""

    # As a process sees it.
    content: bytearray = Factory(bytearray)
    # What is certainly on the disk.
    durable: bytearray = Factory(bytearray)
    # The writes since then, in order. content = durable with all of unsynced applied, unless some are lost.
    unsynced: list[Write] = Factory(list)
    # That were called.
    syncs: Syncs = Factory(Syncs)

    def shown(self) -> bytes:
        """The content, as a process sees it."""
        return bytes(self.content)

    def sure(self) -> bytes:
        """The bytes at the beginning that no power loss changes."""
        return bytes(self.durable[: self.rottable()])

    def sync(self) -> None:
        """Make all content durable, except what an earlier sync lost: that becomes a hole of zeros before
        later writes."""
        self.unsynced = self._write_back(self.unsynced)

    def fail_sync(self, written: int) -> None:
        """The first `written` unsynced writes are durable; later appends are lost although their pages count
        as clean."""
        lost = [
            LostWrite(len(write)) if isinstance(write, bytes) else write for write in self.unsynced[written:]
        ]
        self.unsynced = [*self._write_back(self.unsynced[:written]), *lost]

    def settle(self, kept: int, torn_to: int | None, lengths: Sequence[bool] = ()) -> None:
        """Keep the first `kept` unsynced writes, cut the next one to `torn_to` bytes, drop the others.
        lengths: keep the length of as many appends after `kept`, up to a truncation, and the data of these,
        or else zeros; then none is torn."""
        writes = self.unsynced[:kept]
        for write, whole in zip(self.unsynced[kept:], lengths, strict=False):
            if isinstance(write, int):
                break
            writes.append(write if whole and isinstance(write, bytes) else bytes(_length(write)))
        if torn_to and not lengths:
            torn = self.unsynced[kept]
            assert isinstance(torn, bytes), "only an append can be torn"
            writes.append(torn[:torn_to])
        self._write_back(writes)
        self.content = bytearray(self.durable)
        self.unsynced.clear()
        self.syncs.settled(len(self.content))

    def flip(self, position: int, bit: int) -> None:
        """Flip the bit `bit` of the byte at `position`, which is below `rottable`."""
        self.durable[position] ^= 1 << bit
        self.content[position] ^= 1 << bit

    def rottable(self) -> int:
        """How many bytes at the beginning are durable and still visible."""
        return min([len(self.durable), *(write for write in self.unsynced if isinstance(write, int))])

    def _write_back(self, writes: list[Write]) -> list[Write]:
        """Make writes durable. Returns the lost ones at their end, which have no size on the disk until
        something is written after them."""
        end = len(writes)
        while end and isinstance(writes[end - 1], LostWrite):
            end -= 1
        for write in writes[:end]:
            if isinstance(write, int):
                del self.durable[write:]
            else:
                self.durable += write if isinstance(write, bytes) else bytes(write.size)
        return writes[end:]


def _length(write: bytes | LostWrite) -> int:
    return len(write) if isinstance(write, bytes) else write.size

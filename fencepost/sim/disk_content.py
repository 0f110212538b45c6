"""What one file of a simulated disk holds: as a process sees it, and what of that is durable.

Owns the unsynced writes of a file and what becomes of them. Must not know names, costs, or which fault
struck. The rules stand in sim/disk.py.
"""

from attrs import Factory, define, frozen


@frozen
class LostWrite:
    """An append of this many bytes that a failed fsync gave up: processes still read it from the page cache,
    no later fsync writes it."""

    size: int


Write = bytes | int | LostWrite
"""The bytes of an append, the new size of a truncation, or a lost append."""


@define(eq=False)
class FileContent:
    """A file, whatever its name. content: as a process sees it. durable: what is surely on the platter.
    unsynced: the writes since then, in order; content = durable with all of unsynced applied, as long as none
    is lost."""

    content: bytearray = Factory(bytearray)
    durable: bytearray = Factory(bytearray)
    unsynced: list[Write] = Factory(list)

    def sync(self) -> None:
        """All of it is durable, except what an earlier sync lost: that is a hole of zeros under whatever was
        written after it."""
        self.unsynced = self._write_back(self.unsynced)

    def fail_sync(self, written: int) -> None:
        """The first `written` unsynced writes reached the platter; the appends after them are lost although
        their pages count as clean."""
        lost = [
            LostWrite(len(write)) if isinstance(write, bytes) else write for write in self.unsynced[written:]
        ]
        self.unsynced = [*self._write_back(self.unsynced[:written]), *lost]

    def settle(self, kept: int, torn_to: int | None) -> None:
        """Keep the first `kept` unsynced writes, cut the next one to `torn_to` bytes, forget the others."""
        writes = self.unsynced[:kept]
        if torn_to:
            torn = self.unsynced[kept]
            assert isinstance(torn, bytes), "only an append can be torn"
            writes.append(torn[:torn_to])
        self._write_back(writes)
        self.content = bytearray(self.durable)
        self.unsynced.clear()

    def flip(self, position: int, bit: int) -> None:
        """Turn over one bit, below `rottable` bytes."""
        self.durable[position] ^= 1 << bit
        self.content[position] ^= 1 << bit

    def rottable(self) -> int:
        """How many bytes at the beginning are on the platter and still seen."""
        return min([len(self.durable), *(write for write in self.unsynced if isinstance(write, int))])

    def _write_back(self, writes: list[Write]) -> list[Write]:
        """Make writes durable; answers the lost ones at their end, which have no size on the platter until
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

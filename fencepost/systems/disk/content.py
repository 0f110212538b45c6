"""The content of one file of a mounted disk: as processes see it, and its durable part.

Owns the unsynced writes of a file and their fate. Must not know names or which fault happened. The rules are
those of sim/disk_content.py: after a power loss a file is its durable content plus a prefix of its unsynced
writes, and the last one kept may be torn. Processes of this machine write anywhere in a file (an index is
mapped into memory), so that a write has a position here, and content is kept in pages: Kafka makes indexes
10 MB long before it writes them.
"""

from attrs import Factory, define

from fencepost.sim.disk_syncs import Syncs

PAGE = 4096
Write = tuple[int, bytes] | int
"""The position and bytes of a write, or the new size of a truncation."""


@define(eq=False)
class Pages:
    """Bytes with holes, which read as zeros."""

    size: int = 0
    # By number, each PAGE long.
    pages: dict[int, bytearray] = Factory(dict)

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`."""
        end = min(position + size, self.size)
        found = []
        while position < end:
            number, start = divmod(position, PAGE)
            stop = min(PAGE, start + end - position)
            page = self.pages.get(number)
            found.append(bytes(stop - start) if page is None else bytes(page[start:stop]))
            position += stop - start
        return b"".join(found)

    def apply(self, write: Write) -> None:
        """Carry out a write."""
        if isinstance(write, int):
            self._truncate(write)
            return
        position, data = write
        place = 0
        while place < len(data):
            number, start = divmod(position + place, PAGE)
            part = data[place : place + PAGE - start]
            page = self.pages.get(number)
            if page is None:
                page = self.pages[number] = bytearray(PAGE)
            page[start : start + len(part)] = part
            place += len(part)
        self.size = max(self.size, position + len(data))

    def _truncate(self, size: int) -> None:
        if size < self.size:
            last, start = divmod(size, PAGE)
            for number in [
                number for number in self.pages if number > last or (number == last and not start)
            ]:
                del self.pages[number]
            if start and last in self.pages:
                self.pages[last][start:] = bytes(PAGE - start)
        self.size = size

    def copy(self) -> "Pages":
        """The same bytes."""
        return Pages(self.size, {number: bytearray(page) for number, page in self.pages.items()})


@define(eq=False)
class StoredFile:
    """A file without its name."""

    # As processes see it.
    content: Pages = Factory(Pages)
    # What is certainly on the disk.
    durable: Pages = Factory(Pages)
    # The writes since then, in order. content = durable with all of unsynced applied, unless a failed sync
    # lost some.
    unsynced: list[Write] = Factory(list)
    # That were called.
    syncs: Syncs = Factory(Syncs)
    mtime_ns: int = 0
    mode: int = 0o644

    def write(self, write: Write) -> None:
        """A process writes."""
        self.content.apply(write)
        self.unsynced.append(write)
        self.syncs.changed(write if isinstance(write, int) else write[0])

    def shown(self) -> bytes:
        """The content, as a process sees it."""
        return self.content.read(0, self.content.size)

    def sure(self) -> bytes:
        """The bytes at the beginning that no power loss changes."""
        touched = (write if isinstance(write, int) else write[0] for write in self.unsynced)
        return self.durable.read(0, min([self.durable.size, *touched]))

    def sync(self) -> None:
        """Make all content durable, except what an earlier sync lost."""
        self._write_back(len(self.unsynced))
        self.unsynced.clear()

    def fail_sync(self, written: int) -> None:
        """The first `written` unsynced writes are durable. The others are lost although their pages count as
        clean: processes still read them, and no later sync writes them."""
        self._write_back(written)
        self.unsynced.clear()

    def settle(self, kept: int, torn_to: int) -> None:
        """The power has failed: keep the first `kept` unsynced writes, of the next one `torn_to` bytes, and
        nothing else."""
        self._write_back(kept)
        if torn_to:
            torn = self.unsynced[kept]
            assert not isinstance(torn, int), "only a write of bytes can be torn"
            self.durable.apply((torn[0], torn[1][:torn_to]))
        self.content = self.durable.copy()
        self.unsynced.clear()
        self.syncs.settled(self.content.size)

    def _write_back(self, writes: int) -> None:
        for write in self.unsynced[:writes]:
            self.durable.apply(write)
